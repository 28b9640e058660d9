"""The circuit breaker of a remote service (AGT-8)."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from engine.domain.attempts import NotAttemptedReason
from engine.domain.errors import (
    AnswersLaterError,
    CallTimeoutError,
    DeferredError,
    NotAttemptedError,
    PermanentError,
    ThrottledError,
    TransientError,
)
from engine.domain.messages import MAX_RETRY_AFTER_SECONDS
from engine.ports import Clock

GROWS_BY, GROWS_TO = 1.5, 10
"""Factor by which the open time grows after each failed probe, and its maximum in all.

Each probe is an attempt of an order and appears in its history, which an outage of a day should not
fill.
"""

LONGEST_OPEN = timedelta(seconds=MAX_RETRY_AFTER_SECONDS)
"""The longest open time, however much it has grown: a reply can ask for no longer pause (AGT-8)."""

PROBE_DELAY = timedelta(seconds=1)
"""Delay of other requests while a half-open probe decides whether the circuit closes."""


class ProbeTimeoutError(CallTimeoutError):
    """The half-open probe had no answer in its time: the attempt ends as a time-out (AGT-8)."""


class CircuitBreaker:
    """Opens when the service fails for several orders; repeated failures of one order count once.

    So a fault of one order stops no others: that order ends in `Error` by its own failure count. If
    the service asks the agent to wait, the circuit opens at once, for that time.
    """

    def __init__(self, *, orders: int, open_for: timedelta, clock: Clock) -> None:
        self._orders = orders
        self._open_for = open_for
        self._clock = clock
        self._probes_failed = 0
        self._failed: set[str] = set()
        """Orders for which the service has failed since its last success."""
        self._probing = False
        self._failing_until: datetime | None = None
        """Until when no call is made since calls failed; None after a success."""
        self.throttled_until: datetime | None = None
        """Until when the service asked for that; None if it has not since its last success.

        A half-open probe that succeeds leaves a pause that the service asked for meanwhile.
        """

    @property
    def open_until(self) -> datetime | None:
        """Until when no call is made; None while the circuit is closed."""
        return max(filter(None, (self._failing_until, self.throttled_until)), default=None)

    @contextmanager
    def guard(self, order_id: str) -> Iterator[None]:
        """Watch one call; raises `NotAttemptedError` before it begins if the circuit is open.

        After the open time, one call at a time is a half-open probe: its success closes it. Raises
        `ProbeTimeoutError` if that call has no answer in its time.
        """
        is_probe = self.admit()
        self._probing = is_probe
        try:
            yield
        except ThrottledError as throttled:
            self._waits(throttled.retry_after)
            raise
        except TransientError as fault:
            self._fails(order_id, is_probe=is_probe)
            if is_probe and isinstance(fault, CallTimeoutError):
                raise ProbeTimeoutError(str(fault)) from fault
            raise
        except (PermanentError, DeferredError, AnswersLaterError):
            # The service works, and says no, or later.
            self._works(is_probe=is_probe)
            raise
        else:
            self._works(is_probe=is_probe)
        finally:
            self._probing = self._probing and not is_probe

    def admit(self) -> bool:
        """Return whether a call that began now would be the probe; raises `NotAttemptedError`."""
        if self.open_until is None:
            return False
        if left := self._left_of(self.throttled_until):
            why = "the circuit is open: the service is throttling calls"
            raise NotAttemptedError(NotAttemptedReason.THROTTLED, why, left)
        if left := self._left_of(self._failing_until):
            why = "the circuit is open: the service fails for one order after another"
            raise NotAttemptedError(NotAttemptedReason.CIRCUIT_OPEN, why, left)
        if self._probing:
            why = "the circuit is half-open: one call checks whether the service works again"
            raise NotAttemptedError(NotAttemptedReason.CIRCUIT_OPEN, why, PROBE_DELAY)
        return True

    def _left_of(self, until: datetime | None) -> timedelta:
        """Return the rest of an open time; zero if it is over."""
        return max(until - self._clock(), timedelta()) if until else timedelta()

    def _waits(self, retry_after: timedelta) -> None:
        until = self._clock() + retry_after
        self.throttled_until = max(until, self.throttled_until or until)

    def _fails(self, order_id: str, *, is_probe: bool) -> None:
        self._failed.add(order_id)
        if is_probe or (self.open_until is None and len(self._failed) >= self._orders):
            growth = min(GROWS_TO, GROWS_BY**self._probes_failed)
            self._failing_until = self._clock() + min(self._open_for * growth, LONGEST_OPEN)
            self._probes_failed += 1

    def _works(self, *, is_probe: bool) -> None:
        # A circuit that has opened during this call stays open.
        if is_probe or self.open_until is None:
            self._failed.clear()
            self._probes_failed = 0
            self._failing_until = None
            # A probe begins after every pause, so one that is left was asked for since.
            if not self._left_of(self.throttled_until):
                self.throttled_until = None
