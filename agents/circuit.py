"""The circuit breaker of one remote service, as one instance of its agent sees it (AGT-8)."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import NoReturn

from pybreaker import STATE_CLOSED, STATE_OPEN, CircuitBreaker, CircuitBreakerError, CircuitMemoryStorage

from core.errors import CircuitOpenError, RejectedError, TransientError
from core.ports import Clock

ONE_TRIES = timedelta(seconds=1)
"""How long others wait while one call tries whether the circuit may close."""


class Circuit:
    """Opens when the service fails for one order after another; one order that fails again and again counts once.

    So a fault of one order stops nobody else, and ends in `Error` by its own count of failures.
    """

    def __init__(self, *, orders: int, open_for: timedelta, clock: Clock) -> None:
        self._storage = CircuitMemoryStorage(STATE_CLOSED)
        self._breaker = CircuitBreaker(
            fail_max=orders,
            reset_timeout=open_for.total_seconds(),
            state_storage=self._storage,
            throw_new_error_on_trip=False,
        )
        self._open_for = open_for
        self._clock = clock
        self._failed: set[str] = set()
        """Orders for which the service failed since it last worked."""
        self._trying = False

    @property
    def open_until(self) -> datetime | None:
        """Until when no call is made; None while the circuit is closed."""
        opened_at = self._storage.opened_at if self._breaker.current_state == STATE_OPEN else None
        return opened_at + self._open_for if opened_at else None

    @contextmanager
    def guard(self, order_id: str) -> Iterator[None]:
        """Watch one call; raises `CircuitOpenError` instead of letting it begin while the circuit is open.

        When the time is over, one call at a time may try: if it succeeds, the circuit is closed again.
        """
        trial = self.admit()
        self._trying = trial
        try:
            yield
        except TransientError as fault:
            self._has_failed(order_id, fault, trial=trial)
            raise
        except RejectedError:  # the service works, and says no
            self._works()
            raise
        else:
            self._works()
        finally:
            self._trying = self._trying and not trial

    def admit(self) -> bool:
        """Return whether a call that began now would be the one that tries; raises `CircuitOpenError`."""
        if (until := self.open_until) is None:
            return False
        if (left := until - self._clock()) > timedelta():
            raise CircuitOpenError("the circuit is open: the service fails for one order after another", left)
        if self._trying:
            raise CircuitOpenError("the circuit is open, and one call tries whether the service works again", ONE_TRIES)
        return True

    def _has_failed(self, order_id: str, fault: TransientError, *, trial: bool) -> None:
        if order_id in self._failed and not trial:
            return
        self._failed.add(order_id)

        def fail() -> NoReturn:
            raise fault

        with suppress(TransientError, CircuitBreakerError):
            self._breaker.call(fail)

    def _works(self) -> None:
        self._failed.clear()
        with suppress(CircuitBreakerError):  # it was opened while this call was under way, and stays so for its time
            self._breaker.call(lambda: None)
