"""Operations that are functions of the business, for services that have a library of their own."""

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
    """One call of a function."""

    key: str
    """The idempotency key, which is the same in every attempt (AGT-3)."""
    order_id: str
    step: str
    seconds_left: float
    """How long the function has from its beginning on; then its answer counts no more."""
    callback_url: str | None = field(default=None, repr=False)
    """The link over which the service can answer later, without a key of the app."""
    result: Mapping[str, Any] = field(default_factory=dict)
    """In an undo, the kept answer of what is to be undone: empty if there was none."""
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The settings that the agent declares for its functions, by name; some may be secrets."""

    def kept(self, model: type[M]) -> M:
        """Return the kept answer of what is to be undone; raises `InvalidError`."""
        try:
            return read_as(model, self.result, extra="ignore")
        except ValidationError as error:
            raise InvalidError(faults_of(error)) from None


class NonRetryable(Exception):  # noqa: N818 - what the service said
    """The service refused for good; operators read the reason.

    A reason that is no text is shown as one: a refusal stays a refusal.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = str(reason)


class Retryable(Exception):  # noqa: N818 - what the service said
    """The call failed in a way that may pass.

    With `after`, the service asks to be left alone for so long. Raises TypeError for one that is no
    `timedelta`.
    """

    def __init__(self, after: timedelta | None = None, *, reason: str = "try again") -> None:
        super().__init__(reason)
        self.after, self.reason = _checked(after), str(reason)


class DeferredResult(Exception):  # noqa: N818 - what the service said
    """The service has accepted the call; the agent calls it again later, with the same key.

    Without a time the service calls back over `Call.callback_url`. The agent calls again only if no
    callback came in the agent's `answer_within`, or else in the time of the attempt. Raises
    TypeError for a time that is no `timedelta`.
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
    """An operation that is a function."""

    name: str
    """The function by its module and name, for the log."""
    read: Callable[[Mapping[str, Any]], Any]
    """Makes what is asked from the content of a request; raises `InvalidError`."""
    work: Callable[[Call, Any], Any]
    """Does it; raises `NonRetryable`, `Retryable`, `DeferredResult`, or anything else."""
    write: Callable[[Any], Mapping[str, Any]]
    """Makes the result from what `work` returned; raises TypeError if that is something else."""
    in_thread: bool
    """Whether `work` is a plain function, which may wait; else it returns an awaitable."""
