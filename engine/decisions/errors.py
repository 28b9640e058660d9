"""The errors of decisions. Each of them has a cause."""

from engine.domain.errors import RefusedError


class ActionRefusedError(RefusedError):
    """The action is not possible for the step."""
