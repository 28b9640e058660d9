"""The circuit breaker of a remote service (AGT-8)."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from engine.domain.errors import (
    AcceptedError,
    AnswersLaterError,
    CircuitOpenError,
    RejectedError,
    ThrottledError,
    TransientError,
)
from engine.domain.messages import MAX_RETRY_AFTER_SECONDS
from engine.ports import Clock

GROWS_BY, GROWS_TO = 1.5, 10
"""Factor by which the open time grows after each failed trial, and its maximum in all.

Each trial is an attempt of an order and appears in its history, which an outage of a day should not
fill.
"""

LONGEST_OPEN = timedelta(seconds=MAX_RETRY_AFTER_SECONDS)
"""The longest open time, however much it has grown: a reply can ask for no longer pause (AGT-8)."""

ONE_TRIES = timedelta(seconds=1)
"""Delay of other requests while one call tries whether the circuit may close."""


class CircuitBreaker:
    """Opens when the service fails for several orders; repeated failures of one order count once.

    So a fault of one order stops no others: that order ends in `Error` by its own failure count. If
    the service asks the agent to wait, the circuit opens at once, for that time.
    """

    def __init__(self, *, orders: int, open_for: timedelta, clock: Clock) -> None:
        self._orders = orders
        self._open_for = open_for
        self._clock = clock
        self._tries_failed = 0
        self._failed: set[str] = set()
        """Orders for which the service has failed since its last success."""
        self._trying = False
        self.open_until: datetime | None = None
        """Until when no call is made; None while the circuit is closed."""
        self.asked_until: datetime | None = None
        """Until when the service asked for that; None if it has not since its last success."""

    @contextmanager
    def guard(self, order_id: str) -> Iterator[None]:
        """Watch one call; raises `CircuitOpenError` before it begins if the circuit is open.

        After the open time, one call at a time is a trial: its success closes the circuit.
        """
        trial = self.admit()
        self._trying = trial
        try:
            yield
        except ThrottledError as asked:
            self._waits(asked.retry_after)
            raise
        except TransientError:
            self._fails(order_id, trial=trial)
            raise
        except (RejectedError, AcceptedError, AnswersLaterError):
            # The service works, and says no, or later.
            self._works(trial=trial)
            raise
        else:
            self._works(trial=trial)
        finally:
            self._trying = self._trying and not trial

    def admit(self) -> bool:
        """Return whether a call that began now would be the trial; raises `CircuitOpenError`."""
        if self.open_until is None:
            return False
        if self.asked_until and (left := self.asked_until - self._clock()) > timedelta():
            raise ThrottledError("the circuit is open: the service asks not to be called", left)
        if (left := self.open_until - self._clock()) > timedelta():
            why = "the circuit is open: the service fails for one order after another"
            raise CircuitOpenError(why, left)
        if self._trying:
            why = "the circuit is open, and one call tries whether the service works again"
            raise CircuitOpenError(why, ONE_TRIES)
        return True

    def _waits(self, retry_after: timedelta) -> None:
        until = self._clock() + retry_after
        self.asked_until = max(until, self.asked_until or until)
        self.open_until = max(until, self.open_until or until)

    def _fails(self, order_id: str, *, trial: bool) -> None:
        self._failed.add(order_id)
        if trial or (self.open_until is None and len(self._failed) >= self._orders):
            growth = min(GROWS_TO, GROWS_BY**self._tries_failed)
            self.open_until = self._clock() + min(self._open_for * growth, LONGEST_OPEN)
            self._tries_failed += 1

    def _works(self, *, trial: bool) -> None:
        # A circuit that has opened during this call stays open.
        if trial or self.open_until is None:
            self._failed.clear()
            self._tries_failed = 0
            self.open_until = self.asked_until = None
