"""Activities: operations that are functions of the business and not called over HTTP.

They are for services that have a client library.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from engine.domain.errors import InvalidError
from engine.domain.exact_models import read_as
from engine.domain.messages import faults_of

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """The arguments of one call of an activity."""

    key: str
    """The idempotency key, which is the same in every attempt (AGT-3)."""
    order_id: str
    step: str
    seconds_left: float
    """Seconds until the answer of the function no longer counts, measured from its start."""
    callback_url: str | None = field(default=None, repr=False)
    """The address at which the service can answer later without a key of the app."""
    result: Mapping[str, Any] = field(default_factory=dict)
    """In an undo, the kept answer of the step. It is empty if there was none."""
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The settings that the agent declares for its functions, by name. Some may be secrets."""

    def kept(self, model: type[M]) -> M:
        """Return the kept answer of the step that is undone.

        Raises `InvalidError` if the answer does not fit the model.
        """
        try:
            return read_as(model, self.result, extra="ignore")
        except ValidationError as error:
            raise InvalidError(faults_of(error)) from None


class NonRetryable(Exception):  # noqa: N818 - what the service said
    """The service refused, and no retry can help. Operators see the reason.

    A reason that is not a text is converted to one.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        # Whatever its reason is, a refusal stays a refusal.
        self.reason = str(reason)


class Retryable(Exception):  # noqa: N818 - what the service said
    """The call failed in a way that may pass.

    `after` is the pause that the service requests. Raises `TypeError` if it is not a `timedelta`.
    """

    def __init__(self, after: timedelta | None = None, *, reason: str = "try again") -> None:
        super().__init__(reason)
        self.after, self.reason = _checked(after), str(reason)


class DeferredResult(Exception):  # noqa: N818 - what the service said
    """The service accepted the call and finishes the work later.

    After the time `after`, the agent calls it again with the same key. Without `after`, the service
    calls back at `Call.callback_url`. The agent then calls again only if no callback came within
    the agent's `answer_within`, or, if that is not set, within the time of the attempt.

    Raises `TypeError` if `after` is not a `timedelta`.
    """

    def __init__(self, after: timedelta | None = None, *, reason: str = "accepted") -> None:
        super().__init__(reason)
        self.after, self.reason = _checked(after), str(reason)


def _checked(after: timedelta | None) -> timedelta | None:
    if after is not None and not isinstance(after, timedelta):
        raise TypeError(f"after: expected a timedelta such as timedelta(seconds=5), not {after!r}")
    return after


@dataclass(frozen=True, kw_only=True, slots=True)
class ActivityFunction:
    """An operation that is a function of the business."""

    name: str
    """The module and the name of the function, for the log."""
    read: Callable[[Mapping[str, Any]], Any]
    """Makes the argument of the function from the content of a request. Raises `InvalidError`."""
    work: Callable[[Call, Any], Any]
    """The function. It raises `NonRetryable`, `Retryable`, `DeferredResult` or any other error."""
    write: Callable[[Any], Mapping[str, Any]]
    """Makes the result from the return value of `work`. Raises `TypeError` if the value has another
    type."""
    in_thread: bool
    """Whether `work` is a plain function, which may block. Otherwise it returns an awaitable."""
