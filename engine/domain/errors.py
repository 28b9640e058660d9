"""The errors of the app, with a small number of meanings.

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
    """Another writer changed the order first, or the row already exists."""


class UnavailableError(AppError):
    """No answer came from a store, queue or service, so the effect of the call is unknown."""


class AccessDeniedError(UnavailableError):
    """The app's identity lacks a role for this, or the role has not taken effect yet."""


class QueueRefusedError(UnavailableError):
    """The queue does not exist, is disabled or is full. Repair it before you try again."""


class ChannelAwayError(UnavailableError):
    """A channel to people did not take a message. It may take the message after `retry_after`."""

    def __init__(self, why: str, retry_after: timedelta = timedelta()) -> None:
        super().__init__(why)
        self.retry_after = retry_after


class ChannelRefusedError(AppError):
    """A channel to people will never take this message, or its settings are wrong."""


class OutOfTimeError(AppError):
    """The function ran out of time. What it has written stays."""


class NewerWorkflowError(AppError):
    """The order follows a workflow that only a newer version of the app knows."""


class CausedError(AppError):
    """Nothing was done. `cause` says why."""

    def __init__(self, cause: Cause) -> None:
        facts = json.dumps(dict(cause.facts), default=str)
        super().__init__(f"{cause.code} {facts}" if cause.facts else str(cause.code))
        self.cause = cause


class UnreadableRowError(CausedError):
    """A row cannot be read. It needs a repair, or a newer version of the app."""


class UnknownOrderError(AppError):
    """No order with this id is recorded."""


class InvalidCallbackUrlError(AppError):
    """The callback URL is not valid, or is no longer valid."""


class TooManyTriesError(AppError):
    """Too many calls used a wrong callback URL. Wait before you try again."""


class TooManyCallsError(AppError):
    """The caller makes too many calls, and has to wait for `retry_after` seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__()
        self.retry_after = retry_after


class UnknownAgentError(AppError):
    """The app has no agent of this name."""


class UnknownMessageError(AppError):
    """No such message is kept."""


@dataclass(frozen=True, slots=True)
class InputFault:
    """One fault of an input, as a code with facts.

    `engine.words.errors` has the texts for people.
    """

    place: str
    """The field, such as `lines.0.name`, or an empty text for the whole input."""
    code: str
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """JSON values. None of them repeats the input."""
    message: str = field(default="", compare=False)
    """The message of the library that found the fault, for the log."""

    def within(self, place: str) -> "InputFault":
        return replace(self, place=f"{place}.{self.place}" if self.place else place)

    def as_json(self) -> Mapping[str, Any]:
        """Return the fault as JSON, for use as a fact of a cause."""
        return {"place": self.place, "code": self.code, "facts": self.facts}

    def __str__(self) -> str:
        facts = json.dumps(dict(self.facts), default=str) if self.facts else ""
        shown = self.message or " ".join(filter(None, (self.code, facts)))
        return f"{self.place}: {shown}" if self.place else shown


class InvalidError(AppError):
    """The input is not acceptable. `faults` lists all of its faults, and not only the first.

    A fault that a business found is a text in the words of the business.
    """

    def __init__(self, faults: Sequence[InputFault | str]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = list(faults)

    def within(self, place: str) -> list[InputFault | str]:
        return [
            f"{place}.{fault}" if isinstance(fault, str) else fault.within(place)
            for fault in self.faults
        ]

    def as_facts(self) -> list[Any]:
        """Return the faults as JSON, for use as a fact of a cause."""
        return [fault if isinstance(fault, str) else fault.as_json() for fault in self.faults]


class NotSignedInError(AppError):
    """Nobody is signed in."""


class NotAllowedError(AppError):
    """The signed-in user may not do this. The user needs `role`."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self.role = role


class UnknownLengthError(AppError):
    """The length of the body is unknown. Send a Content-Length, and no chunks."""


class UnknownNameError(InvalidError):
    """The only fault of the input is a name that a newer version of the app may know."""


class OtherVersionError(UnknownNameError):
    """The message has another version, or a value that only a newer app knows (FLT-12)."""


def as_one(errors: Sequence[InvalidError]) -> InvalidError:
    """Return one error with the faults of all errors.

    The result is an `OtherVersionError` if any error is. It is an `UnknownNameError` only if all
    errors are.
    """
    faults = list(chain.from_iterable(error.faults for error in errors))
    # This version cannot judge a message of another version, so this error comes first.
    if any(isinstance(error, OtherVersionError) for error in errors):
        return OtherVersionError(faults)
    unknown = all(isinstance(error, UnknownNameError) for error in errors)
    return UnknownNameError(faults) if unknown else InvalidError(faults)


class RefusedError(CausedError):
    """The request is valid, but not possible in the present state of the order."""


class WorkCancelledError(RuntimeError):
    """Work was cancelled, although nobody requested a stop. Its effect is unknown."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} was cancelled, and nobody had asked for that")


class TransientError(AppError):
    """The remote service failed in a way that may pass, so a retry may help."""


class CallTimeoutError(TransientError):
    """The remote service did not answer in the time of the call, or no time was left for a call."""


class GatewayError(TransientError):
    """A gateway or a proxy rejected the call before it reached the service."""


class NotAttemptedError(AppError):
    """The agent may not call its service before `retry_after` has passed (AGT-8)."""

    def __init__(self, reason: NotAttemptedReason, detail: str, retry_after: timedelta) -> None:
        super().__init__(detail)
        self.reason = reason
        self.retry_after = retry_after


class ThrottledError(AppError):
    """The service requested that all callers wait. The call may have had its effect (UND-2)."""

    def __init__(self, detail: str, retry_after: timedelta) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class DeferredError(AppError):
    """The service accepted the call and finishes the work later. Ask again with the same key."""

    def __init__(self, detail: str | None = None, *, retry_after: timedelta) -> None:
        super().__init__(detail)
        self.retry_after = retry_after
        """The time to wait before the next request."""


class AnswersLaterError(AppError):
    """The service accepted the call, and will answer through the callback URL (ANS-8)."""


class PermanentError(AppError):
    """The call failed, and no retry can help (AGT-6)."""

    origin: ClassVar[FailureOrigin]


class RejectedError(PermanentError):
    """The service itself refused the request."""

    origin = FailureOrigin.SERVICE

    def __init__(
        self, detail: str | None = None, *, identifiers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.identifiers = identifiers or {}
        """The `type` and the `code` of the refusal, if the service gave them."""


class InvalidRequestError(PermanentError):
    """The request is invalid, so the service did nothing. A repeated request would fail too."""

    origin = FailureOrigin.REQUEST


class InvalidResultError(PermanentError):
    """The service may have done the work, but no reply can carry its answer."""

    origin = FailureOrigin.RESULT
