"""The errors of decisions, each of which says why by a cause."""

from engine.domain.causes import Cause
from engine.domain.errors import AppError


class CausedError(AppError):
    """Nothing is decided; `cause` says why."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause.code)
        self.cause = cause


class ActionRefusedError(CausedError):
    """The action makes no sense for the step."""
