"""Which alerts are closed because what they tell of is over. It is looked up; nothing is written."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from core import alerts
from core.agenda import Kind
from core.alerts import Alert
from core.changes import Event
from core.errors import AppError
from core.keys import ABOUT_ORDER
from operators.owed import Look, Owed
from stores.sweeps import Sweep, SweepLog

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Closing:
    """Compares alerts with what is still owed."""

    owed: Owed
    sweeps: SweepLog

    async def closed(self, found: Sequence[Alert]) -> Collection[str]:
        """Return the keys of those that are closed, of alerts that were just read; none if that cannot be looked up.

        What is owed is read after the alerts were: an order whose alert is here was in `Error` before. So an alert may
        be taken for open too long, and never for closed too soon.
        """
        events = [alert.event for alert in found]
        try:
            swept = await self.sweeps.last() if any(each.subject == alerts.SUPERVISOR for each in events) else None
            owed = await self.owed.look() if any(each.subject.startswith(ABOUT_ORDER) for each in events) else None
        except (AppError, ExceptionGroup) as error:
            log.warning("alerts.not_compared", extra={"why": repr(error)})
            return ()
        return {alert.key for alert in found if is_over(alert.event, owed, swept)}


def is_over(event: Event, owed: Look | None, swept: Sweep | None) -> bool:
    """Whether it is certain that what the event tells of is over.

    Nothing is owed to an order that was undone completely: its alert only informs, and is closed from the beginning.
    Alerts of other types than these stay open until somebody takes them.
    """
    if event.type == alerts.STALLED and event.subject == alerts.SUPERVISOR:
        return swept is not None and swept.at > event.at
    if owed is None or not event.subject.startswith(ABOUT_ORDER):
        return False
    order_id = event.subject.removeprefix(ABOUT_ORDER)
    if event.type == alerts.STALLED:
        return owed.is_over(Kind.PENDING, order_id, since=event.at)
    return event.type in (alerts.ORDER_FAILED, alerts.ORDER_UNDONE) and owed.is_over(Kind.ERROR, order_id)
