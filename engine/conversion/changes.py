"""A change with the records of today, for those who still read them."""

from dataclasses import dataclass

from core.changes import Change, HistoryEntry
from core.messages import BusMessage
from core.orders import Snapshot
from core.orders import Step as StepToday
from engine.conversion.records import to_old


@dataclass(frozen=True, kw_only=True, slots=True)
class OldChange:
    """A change for those who still read the records of today."""

    before: Snapshot | None
    after: Snapshot
    entry: HistoryEntry
    messages: tuple[BusMessage, ...] = ()

    def changed_steps(self) -> tuple[StepToday, ...]:
        """Return the steps that differ from before."""
        before = self.before.steps if self.before else ()
        return tuple(step for step in self.after.steps if step not in before)


def old_change(change: Change) -> OldChange:
    """Return the change with the records of today."""
    return OldChange(
        before=to_old(change.before) if change.before else None,
        after=to_old(change.after),
        entry=change.entry,
        messages=change.messages,
    )
