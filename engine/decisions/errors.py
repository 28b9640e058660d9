"""The errors of decisions, each of which says why by a cause."""

from engine.domain.errors import RefusedError


class ActionRefusedError(RefusedError):
    """The action makes no sense for the step."""
