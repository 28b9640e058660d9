"""Which alerts are closed because what they tell of is over. It is looked up; nothing is written."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from core.agenda import Kind
from core.alerts import SUPERVISOR, WHILE_OWED, Alert
from core.changes import Event
from core.ports import Clock
from operators.owed import Orders, Owed
from stores.sweeps import Sweep, SweepLog

ORDER = "orders/"


@dataclass(frozen=True, kw_only=True)
class Closing:
    """Compares alerts with what is still owed."""

    owed: Owed
    sweeps: SweepLog
    clock: Clock

    async def closed(self, alerts: Sequence[Alert]) -> Collection[str]:
        """Return the keys of those that are closed, of alerts that were just read; raises `UnavailableError`.

        What is owed is read after the alerts were: an order whose alert is here was in `Error` before. So an alert may
        be taken for open too long, and never for closed too soon.
        """
        events, now = [alert.event for alert in alerts], self.clock()
        owed = {kind: await self.owed.orders(kind, now) for kind in _kinds(events)}
        swept = await self.sweeps.last() if any(event.subject == SUPERVISOR for event in events) else None
        return {alert.key for alert in alerts if is_over(alert.event, owed, swept)}


def _kinds(events: Iterable[Event]) -> Collection[Kind]:
    about_orders = (event for event in events if event.subject.startswith(ORDER))
    return {WHILE_OWED[event.type] for event in about_orders if event.type in WHILE_OWED}


def is_over(event: Event, owed: Mapping[Kind, Orders], swept: Sweep | None) -> bool:
    """Whether it is certain that what the event tells of is over."""
    if event.type not in WHILE_OWED:
        return False
    if event.subject == SUPERVISOR:
        return swept is not None and swept.at > event.at
    orders = owed.get(WHILE_OWED[event.type])
    return orders is not None and orders.are_without(event.subject.removeprefix(ORDER))
