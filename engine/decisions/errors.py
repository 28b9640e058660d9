"""The errors of decisions about what somebody wants of an order."""

from core.errors import AppError
from engine.domain.causes import Cause


class ActionRefusedError(AppError):
    """The action makes no sense for the step; `cause` says why."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause.code)
        self.cause = cause
