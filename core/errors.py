"""One family of errors with a few meanings; they become HTTP answers, replies or poison messages only at the edge."""

from datetime import timedelta


class AppError(Exception):
    """Something went wrong in the order system."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").strip())


class ConflictError(AppError):
    """Another writer changed the order first, or the row exists already."""


class UnavailableError(AppError):
    """A store, queue or service could not be reached, or its answer was lost: the effect is unknown."""


class NoRightError(UnavailableError):
    """The app's identity may not do this: a role is missing, or was given so lately that it is not known yet."""


class QueueRefusedError(UnavailableError):
    """The queue does not exist, may not be used, or is full: trying again helps only once somebody has mended that."""


class NewerWorkflowError(AppError):
    """The order follows a workflow that this version of the app does not know yet: a newer one has to go on with it."""


class UnreadableRowError(AppError):
    """A row holds what no version of the app writes, or only a newer one does: somebody has to mend it."""


class UnknownOrderError(AppError):
    """No order with this id is recorded."""


class UnknownMessageError(AppError):
    """No such message is kept."""


class InvalidError(AppError):
    """The input is not acceptable; `faults` names everything that is wrong with it, never only the first."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


class UnknownLengthError(AppError):
    """The length of the body is not known: send it with a Content-Length, and not in chunks."""


class UnknownNameError(InvalidError):
    """All that is wrong is that the input names what this version of the app does not know: a newer one may."""


class NewerMessageError(UnknownNameError):
    """The message is of a newer version of the app, or has a value that only a newer one knows (FLT-12)."""


class RefusedError(AppError):
    """The request is well-formed, but makes no sense in the state that the order is in."""


class CutOffError(RuntimeError):
    """Something was cancelled that nobody had asked to stop; whether it had an effect is unknown."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} was cancelled, and nobody had asked for that")


class TransientError(AppError):
    """The remote service failed in a way that may pass: worth another try."""

    def __init__(self, message: str | None = None, *, at_door: bool = False) -> None:
        super().__init__(message)
        self.at_door = at_door
        """Whether it is no word of the service: a gateway or a proxy before it turned the call away."""


class NotTriedError(AppError):
    """The agent may not call its service now (AGT-8); `retry_after` says when to come again."""

    def __init__(self, reason: str, retry_after: timedelta, *, in_doubt: bool = False) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
        self.in_doubt = in_doubt
        """Whether a call was made that may have had its effect (UND-2)."""


class CircuitOpenError(NotTriedError):
    """The agent makes no calls at all now, since its service fails for one order after another (AGT-8)."""


class AskedToWaitError(CircuitOpenError):
    """The service itself asked not to be called for a while, by nobody (`Retry-After`)."""


class RejectedError(AppError):
    """Trying again cannot help: the remote service refused for good (AGT-6), or what is asked of it is wrong."""

    def __init__(
        self, message: str | None = None, *, in_doubt: bool = False, for_operator: bool = False
    ) -> None:
        super().__init__(message)
        self.in_doubt = in_doubt
        """Whether it may have been done all the same (UND-2)."""
        self.for_operator = for_operator
        """Whether it is no word of the service, so that an operator has to look at it, whatever the step's policy."""
