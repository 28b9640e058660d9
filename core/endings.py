"""What becomes of an order when a step has failed for good and nothing runs any more (SCH-8, SCH-12, SUP-3)."""

from dataclasses import replace

from core import alerts
from core.changes import Change, HistoryEntry, transition
from core.compensation import turn_back
from core.orders import OnFailure, Outcome, ProcessState, Snapshot, Step, StepState


def give_up(before: Snapshot, after: Snapshot, entry: HistoryEntry) -> Change:
    """Return the end of an order, or the request to undo it, as the policy of the failed steps says."""
    failed = after.in_state(StepState.FAILED)
    if any(step.on_failure is OnFailure.UNDO for step in failed):
        return ask_for_undo(before, after, _first(failed), entry)
    return end(before, after, Outcome.FAILED, _first(failed), entry)


def _first(failed: tuple[Step, ...]) -> Step:
    """Return the step that is named as the cause: one that asks for an undo, if there is one."""
    return next((step for step in failed if step.on_failure is OnFailure.UNDO), failed[0])


def ask_for_undo(before: Snapshot, after: Snapshot, cause: Step, entry: HistoryEntry) -> Change:
    """Return the request to undo the order: it stands in the state, and any scheduler may take it (UND-1)."""
    reason = f"{cause.name}: {cause.reason}"
    after = turn_back(after, entry.at).with_state(
        process_state=ProcessState.PENDING, locked_by=None, complete_by=None, reason=reason
    )
    return transition(before, after, replace(entry, event="undo-requested", detail=reason))


def end(before: Snapshot, after: Snapshot, outcome: Outcome, cause: Step | None, entry: HistoryEntry) -> Change:
    """Set the order to `Error`, and tell the operators (SCH-8, ALR-1)."""
    reason = cause.reason if cause else after.state.reason
    after = after.with_state(
        process_state=ProcessState.ERROR, locked_by=None, complete_by=None, outcome=outcome, reason=reason
    )
    name = cause.name if cause else ""
    entry = replace(entry, event=str(outcome), detail=f"{name}: {reason}" if name else str(reason))
    return transition(before, after, entry, events=(alerts.order_ended(after, name, entry.at),))
