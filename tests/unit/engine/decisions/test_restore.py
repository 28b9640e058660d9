"""An order that is restored from a copy: what may have happened since is in doubt."""

from dataclasses import replace
from datetime import timedelta

import pytest

from engine.decisions import restore
from engine.decisions.actions import settle
from engine.decisions.actions.action import OperatorCommand
from engine.domain import events as e
from engine.domain.deadlines import DeadlineState
from engine.domain.effects import Done, InDoubt, NotDone, Reverted, UndoInDoubt
from engine.domain.keys import sortable
from engine.domain.orders import InError, Processed, Processing, WorkItem
from engine.domain.states import (
    AwaitingExternalEvent,
    Completed,
    ConditionPending,
    Failed,
    NothingToUndo,
    Running,
    Scheduled,
    Skipped,
    SkipReason,
    UndoFailed,
    Undoing,
    Undone,
    UndoPending,
    Waiting,
)
from engine.domain.statuses import Direction, Outcome
from engine.domain.verbs import request_undo
from tests.support.due_orders import OPEN, UNDO
from tests.support.engine_records import (
    DECLINED,
    HOUR,
    KEY,
    NOW,
    TIMEOUT,
    external,
    in_doubt,
    order,
    refused,
    running,
    step,
)
from tests.support.engine_scheduling import TOLERANCE, agent, only_step

AT = NOW - HOUR
MINUTE = timedelta(minutes=1)
BANK = agent("bank")
FORGETFUL = replace(BANK, keys_last=HOUR)
SETTLED = OperatorCommand(
    operator="grace", note="", arguments=settle.SettleArguments(was_done=True)
)


def restored(*steps, agents=(BANK,), **changes):
    copied = restore.Copied(at=AT, agents=agents, clock_tolerance=TOLERANCE)
    return restore.decide(order(*steps, **changes), copied, "the tables are gone", NOW)


def key_after(step, *agents):
    return only_step(restored(step, agents=agents)).key


def test_a_restored_order_keeps_its_age_and_wakes_nobody():
    """OPR-11: polls find it by its work items."""
    it = order(step(), version=4, updated_at=AT, ready_since=AT, etag="old")
    it = replace(it, derived=replace(it.derived, work_items=(WorkItem(key="!pending"),)))
    copied = restore.Copied(at=AT, agents=(BANK,), clock_tolerance=TOLERANCE)
    made = restore.decide(it, copied, "gone", NOW)
    assert (made.before.etag, made.before.derived.work_items) == (None, ())
    assert (made.after.version, made.after.updated_at) == (5, AT)
    assert made.after.derived.ready_since == AT
    assert len(made.after.derived.work_items) == 1
    assert made.messages == ()
    assert made.events == (e.Restored(copied_at=AT, note="gone"),)


@pytest.mark.parametrize("state", [Waiting(), ConditionPending(), Scheduled(NOW)])
def test_a_step_may_have_been_done_since_the_copy(state):
    """OPR-11: so it is undone with the order (UND-2), and an operator can settle it."""
    found = only_step(restored(step(state)))
    assert (found.state, found.counts.attempts) == (state, 1)
    assert found.effect == InDoubt(key=replace(KEY, agent="bank", provider="bank"))
    assert isinstance(request_undo(found).state, UndoPending)
    failed = order(found, state=InError(Outcome.FAILED))
    done = settle.ACTION.apply(failed, SETTLED, NOW)
    assert only_step(done).state == Completed()


def test_a_step_that_ran_or_was_done_may_have_been_undone_since():
    """OPR-11: its result and its attempts are kept."""
    ran = only_step(restored(running()))
    assert isinstance(ran.state, Running)
    assert isinstance(ran.effect, InDoubt)
    assert ran.counts.attempts == 1
    done = step(Completed(), effect=Done(key=KEY, result={"receipt": "r-1"}))
    found = only_step(restored(done))
    assert found.effect == UndoInDoubt(key=KEY, result={"receipt": "r-1"})
    assert found.state == Completed()


@pytest.mark.parametrize(
    "kept",
    [
        refused(Failed(DECLINED)),
        step(UndoFailed(DECLINED), effect=UndoInDoubt(key=KEY)),
        refused(NothingToUndo(DECLINED)),
        step(Skipped(SkipReason.OPERATOR)),
        step(Undone(), effect=Reverted(key=KEY)),
        external(AwaitingExternalEvent(NOW + TIMEOUT)),
    ],
)
def test_what_only_an_operator_changes_or_no_service_does_stays_as_it_was(kept):
    """OPR-11."""
    assert only_step(restored(kept, state=Processing("scheduler-1"))) == kept


def test_an_order_that_had_ended_is_restored_as_it_was():
    """OPR-11: nothing of it starts by itself."""
    done = step(Completed(), effect=Done(key=KEY))
    assert only_step(restored(done, state=Processed())) == done
    back = restored(done, state=InError(Outcome.UNDO_INCOMPLETE), direction=Direction.UNDO)
    assert only_step(back) == done


def test_only_the_provider_that_may_have_been_called_is_called_again():
    """AGT-3: if it may be one of several, an operator decides (AGT-12)."""
    sharing = replace(agent("other"), provider="psp"), replace(BANK, provider="psp")
    assert key_after(step(), *sharing).provider == "psp"
    unknown = key_after(step(), BANK, agent("other"))
    assert (unknown.provider, unknown.known_until) == (None, AT)
    known = key_after(refused(Waiting()), BANK, agent("other"), agent("ship", "carrier"))
    assert (known.provider, known.generation) == ("psp", 0)
    second = step(Waiting(), effect=NotDone(key=replace(KEY, generation=1)))
    assert key_after(second, BANK).generation == 1
    assert key_after(step(), BANK, agent("ship", "carrier")).provider == "bank"


def test_a_key_counts_from_the_copy_for_as_long_as_its_services_remember_it():
    """AGT-12: from the first request, if that was before the copy."""
    assert key_after(step(), BANK).known_until is None
    assert key_after(step(), FORGETFUL).known_until == AT + HOUR
    briefly = replace(agent("other"), provider="bank", keys_last=MINUTE)
    assert key_after(step(), FORGETFUL, briefly).known_until == AT + MINUTE
    for tried in (running(key=replace(KEY, known_until=AT)), in_doubt(Waiting())):
        assert key_after(tried, FORGETFUL).known_until == tried.key.known_until
    done = step(Completed(), effect=Done(key=replace(KEY, provider="bank", known_until=NOW + HOUR)))
    assert key_after(done, FORGETFUL).known_until == AT + HOUR


def test_an_undo_waits_until_no_request_since_the_copy_takes_effect():
    """UND-2: the last one may have been sent just before the store was lost."""
    late = step(late_effect_window=HOUR)
    assert key_after(late, BANK).effects_final_at == NOW + TIMEOUT + TOLERANCE + HOUR
    for state in (UndoPending(), Undoing(NOW)):  # an undo changes nothing that could come late
        back = step(state, effect=Done(key=KEY), late_effect_window=HOUR)
        assert key_after(back, BANK).effects_final_at is None


@pytest.mark.proves("OPR-11", "SCH-17")
def test_a_restored_order_keeps_its_deadline():
    """A supervisor finds it by its row."""
    after = restored(step(), deadline=OPEN).after
    assert after.deadline == OPEN
    (row,) = (item.key for item in after.derived.work_items if item.key.startswith("!due"))
    assert row == f"!due|{sortable(OPEN.due_soon_at)}|{after.order_id}"


@pytest.mark.proves("OPR-11", "SCH-17")
def test_a_deadline_that_has_passed_since_the_copy_does_not_count():
    """The order may have been over in time, so it is not undone for its lateness."""
    past = replace(UNDO, due_by=NOW, due_soon_at=NOW)
    after = restored(step(), deadline=past).after
    assert after.deadline == replace(past, state=DeadlineState.LIFTED)
    assert [item.key for item in after.derived.work_items if item.key.startswith("!due")] == []
    late = replace(past, state=DeadlineState.PASSED)
    assert restored(step(), deadline=late).after.deadline == late
