"""What becomes of a step whose request the bus has not taken: it waits, and no failure is counted (FLT-8)."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta

from core.changes import Change, HistoryEntry, transition
from core.compensation import after_a_failure, to_be_undone
from core.messages import request_id
from core.orders import Direction, ProcessState, Snapshot, Step, StepState

PAUSE = timedelta(seconds=2)
"""Before another try: the next one will hardly fare better at once."""


def put_back(
    order: Snapshot, unsent: Collection[str], actor: str, now: datetime, *, certain: bool = True
) -> Change | None:
    """Return the order with the steps waiting whose requests, by their message ids, the bus has not taken.

    Those that have certainly not arrived wait at once: there is no reply that this could compete with. The others run
    until their time is up, since a reply may come. None if none is to wait.

    If their time is up, either the supervisor is first or this is. Should a request arrive after all, its reply is to
    an attempt that does not run, and the next attempt bears the same key.
    """
    over = [step for step in order.running() if certain or (step.complete_by and step.complete_by <= now)]
    back = [_waiting(step, order, now, certain=certain) for step in over if _id(order, step) in unsent]
    if not back:
        return None
    after = order.with_steps(*back)
    what = ", ".join(f"{step.name} attempt {step.attempts}" for step in back)
    how = "was not sent" if certain else "may not have been sent"
    entry = HistoryEntry(at=now, actor=actor, event="put-back", detail=f"{what} {how}: Service Bus is away")
    was_held = order.state.process_state is ProcessState.PROCESSING
    if was_held and order.state.direction is Direction.FORWARD and after.in_state(StepState.FAILED):
        return after_a_failure(order, after, replace(entry, event="not-sent"))
    after = after.with_state(process_state=ProcessState.PENDING, locked_by=None, complete_by=None)
    return transition(order, after, entry if was_held else replace(entry, event="waits"))


def _waiting(step: Step, order: Snapshot, now: datetime, *, certain: bool) -> Step:
    in_doubt = step.in_doubt or not certain
    waiting = replace(step, complete_by=None, not_before=now + PAUSE, in_doubt=in_doubt)
    if step.state is StepState.UNDOING:
        return waiting
    waiting = replace(waiting, state=StepState.NOT_STARTED)
    return to_be_undone(waiting) if order.state.direction is Direction.UNDO else waiting


def _id(order: Snapshot, step: Step) -> str:
    """Return the id of the request for the attempt that runs."""
    return request_id(order.order_id, step.name, step.attempts, "undo" if step.state is StepState.UNDOING else "do")
