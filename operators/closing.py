"""Which alerts are closed because what they tell of is over. It is looked up; nothing is written."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from core.alerts import SUPERVISOR, WHILE_OWED, Alert
from core.changes import Event
from core.ports import Clock
from operators.owed import Look, Owed
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
        if not any(alert.event.type in WHILE_OWED for alert in alerts):
            return ()
        owed, swept = await self.owed.look(self.clock()), await self.sweeps.last()
        return {alert.key for alert in alerts if is_over(alert.event, owed, swept)}


def is_over(event: Event, owed: Look, swept: Sweep | None) -> bool:
    """Whether it is certain that what the event tells of is over."""
    if event.type not in WHILE_OWED:
        return False
    if event.subject == SUPERVISOR:
        return swept is not None and swept.at > event.at
    order_id = event.subject.removeprefix(ORDER)
    return order_id != event.subject and owed.is_over(WHILE_OWED[event.type], order_id)
