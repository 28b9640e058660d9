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
"""The factor by which the open time grows after each failed probe, and the largest total factor.

Each probe is an attempt of an order, and is in its history. An outage of a day should not fill the
history.
"""

LONGEST_OPEN = timedelta(seconds=MAX_RETRY_AFTER_SECONDS)
"""The longest open time. A reply cannot request a longer pause (AGT-8)."""

PROBE_DELAY = timedelta(seconds=1)
"""The pause of other requests while a half-open probe decides whether the circuit closes."""


class ProbeTimeoutError(CallTimeoutError):
    """The half-open probe timed out, and so does its attempt (AGT-8)."""


class CircuitBreaker:
    """Opens when the service fails for several orders. Repeated failures of an order count once.

    So a fault of one order does not stop other orders: its own failure count ends it in `Error`. If
    the service throttles calls, the circuit opens immediately for the requested time.
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
        """No call is made until this time, because calls failed. None after a success."""
        self.throttled_until: datetime | None = None
        """No call is made until this time, because the service requested it.

        None if it has not requested a pause since its last success. A successful half-open probe
        does not end a pause that the service has requested meanwhile.
        """

    @property
    def open_until(self) -> datetime | None:
        """No call is made until this time. None while the circuit is closed."""
        return max(filter(None, (self._failing_until, self.throttled_until)), default=None)

    @contextmanager
    def guard(self, order_id: str) -> Iterator[None]:
        """Watch a call. Raises `NotAttemptedError` before the call if the circuit is open.

        After the open time, one call at a time is a half-open probe, and its success closes the
        circuit. Raises `ProbeTimeoutError` if the probe times out.
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
        """Return whether a call that begins now is the probe.

        Raises `NotAttemptedError` if none may begin.
        """
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
        """Return the rest of an open time. Zero if it is over."""
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
