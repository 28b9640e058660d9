"""One family of errors with a few meanings.

They become HTTP answers, replies or poison messages only at the edge. The docstring of a class is
the default message of its errors, so it has one line.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import chain
from typing import Any, ClassVar

from engine.domain.attempts import FailureOrigin, NotAttemptedReason
from engine.domain.causes import Cause


class AppError(Exception):
    """Something went wrong in the order system."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").strip())


class ConflictError(AppError):
    """Another writer changed the order first, or the row exists already."""


class UnavailableError(AppError):
    """A store, queue or service was not reached, or its answer was lost: the effect is unknown."""


class AccessDeniedError(UnavailableError):
    """The app's identity lacks a role for this, or the role has not taken effect yet."""


class QueueRefusedError(UnavailableError):
    """The queue does not exist, is disabled or is full: a retry helps only after a repair."""


class ChannelAwayError(UnavailableError):
    """A channel to people did not take a message; it may take it after `retry_after`."""

    def __init__(self, why: str, retry_after: timedelta = timedelta()) -> None:
        super().__init__(why)
        self.retry_after = retry_after


class ChannelRefusedError(AppError):
    """A channel to people will never take this message, or its settings are wrong."""


class OutOfTimeError(AppError):
    """The function took longer than it may; what it has written stays."""


class NewerWorkflowError(AppError):
    """The order follows a workflow that only a newer version of the app knows."""


class CausedError(AppError):
    """Nothing is done; `cause` says why."""

    def __init__(self, cause: Cause) -> None:
        facts = json.dumps(dict(cause.facts), default=str)
        super().__init__(f"{cause.code} {facts}" if cause.facts else str(cause.code))
        self.cause = cause


class UnreadableRowError(CausedError):
    """A row cannot be read by this version of the app: it needs a repair, or a newer version."""


class UnknownOrderError(AppError):
    """No order with this id is recorded."""


class InvalidCallbackUrlError(AppError):
    """The link is not valid, or is no longer valid."""


class TooManyTriesError(AppError):
    """There were too many calls with a wrong link: wait for a while."""


class TooManyCallsError(AppError):
    """A caller makes too many calls, and has to wait for `retry_after` seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__()
        self.retry_after = retry_after


class UnknownAgentError(AppError):
    """The app has no agent of that name."""


class UnknownMessageError(AppError):
    """No such message is kept."""


@dataclass(frozen=True, slots=True)
class InputFault:
    """One fault of an input, as a code with facts; `engine.words.errors` has its words."""

    place: str
    """The field, such as `lines.0.name`; empty for the whole input."""
    code: str
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """JSON values, none of which repeats the input."""
    message: str = field(default="", compare=False)
    """What the library that found it says, for the log."""

    def within(self, place: str) -> "InputFault":
        """Return the fault with its place inside another one."""
        return replace(self, place=f"{place}.{self.place}" if self.place else place)

    def as_json(self) -> Mapping[str, Any]:
        """Return the fault as a fact of a cause."""
        return {"place": self.place, "code": self.code, "facts": self.facts}

    def __str__(self) -> str:
        facts = json.dumps(dict(self.facts), default=str) if self.facts else ""
        shown = self.message or " ".join(filter(None, (self.code, facts)))
        return f"{self.place}: {shown}" if self.place else shown


class InvalidError(AppError):
    """The input is not acceptable; `faults` lists all of its faults, never only the first.

    A fault that a business found is a text in its own words.
    """

    def __init__(self, faults: Sequence[InputFault | str]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = list(faults)

    def within(self, place: str) -> list[InputFault | str]:
        """Return the faults with their places inside another one."""
        return [
            f"{place}.{fault}" if isinstance(fault, str) else fault.within(place)
            for fault in self.faults
        ]

    def as_facts(self) -> list[Any]:
        """Return the faults as a fact of a cause."""
        return [fault if isinstance(fault, str) else fault.as_json() for fault in self.faults]


class NotSignedInError(AppError):
    """Nobody is signed in."""


class NotAllowedError(AppError):
    """Whoever is signed in may not do this, but needs `role`."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self.role = role


class UnknownLengthError(AppError):
    """The length of the body is not known: send it with a Content-Length, and not in chunks."""


class UnknownNameError(InvalidError):
    """The input's only fault is a name that a newer version of the app may know."""


class OtherVersionError(UnknownNameError):
    """The message has another version, or a value that only a newer app knows (FLT-12)."""


def as_one(errors: Sequence[InvalidError]) -> InvalidError:
    """Return one error that names all faults.

    This version cannot judge a message of another one, so `OtherVersionError` comes first; names
    that only a newer version may know count only if nothing else is wrong.
    """
    faults = list(chain.from_iterable(error.faults for error in errors))
    if any(isinstance(error, OtherVersionError) for error in errors):
        return OtherVersionError(faults)
    unknown = all(isinstance(error, UnknownNameError) for error in errors)
    return UnknownNameError(faults) if unknown else InvalidError(faults)


class RefusedError(CausedError):
    """The request is well-formed, but makes no sense in the order's present state."""


class WorkCancelledError(RuntimeError):
    """A piece of work was cancelled without a request to stop it; its effect is unknown."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} was cancelled, and nobody had asked for that")


class TransientError(AppError):
    """The remote service failed in a way that may pass, so another try is worthwhile."""


class CallTimeoutError(TransientError):
    """The remote service gave no answer in the time of the call, or there was none for a call."""


class GatewayError(TransientError):
    """A gateway or a proxy turned the call away before it reached the service."""


class NotAttemptedError(AppError):
    """The agent may not call its service now (AGT-8); `retry_after` is how long to wait."""

    def __init__(self, reason: NotAttemptedReason, detail: str, retry_after: timedelta) -> None:
        super().__init__(detail)
        self.reason = reason
        self.retry_after = retry_after


class ThrottledError(AppError):
    """The service asked all callers to wait; the call itself may have had its effect (UND-2)."""

    def __init__(self, detail: str, retry_after: timedelta) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class DeferredError(AppError):
    """The service has accepted the call, and will do it later: ask again with the same key."""

    def __init__(self, detail: str | None = None, *, retry_after: timedelta) -> None:
        super().__init__(detail)
        self.retry_after = retry_after
        """How long the service asks to wait before it is asked again."""


class AnswersLaterError(AppError):
    """The service has accepted the call, names no time, and has the link to answer it (ANS-8)."""


class PermanentError(AppError):
    """No retry of the call can help (AGT-6)."""

    origin: ClassVar[FailureOrigin]


class RejectedError(PermanentError):
    """The service refused the request, and said so itself."""

    origin = FailureOrigin.SERVICE

    def __init__(
        self, detail: str | None = None, *, identifiers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.identifiers = identifiers or {}
        """The `type` and the `code` by which the service names the refusal, if it does."""


class InvalidRequestError(PermanentError):
    """The request is wrong, and stays wrong if it is sent again; the service did nothing."""

    origin = FailureOrigin.REQUEST


class InvalidResultError(PermanentError):
    """No reply can carry what the service answered; it may have done the work."""

    origin = FailureOrigin.RESULT
