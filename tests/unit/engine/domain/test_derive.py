"""What follows from an order's steps: its times, its lock, its place and its work items."""

from dataclasses import replace

import pytest

from engine.domain import verbs
from engine.domain.derive import amended, changed, derive
from engine.domain.effects import Done, InDoubt
from engine.domain.orders import Derived, Hold, InError, Pending, Processed, Processing
from engine.domain.states import (
    AwaitingExternalEvent,
    BackingOff,
    Completed,
    CoolingDown,
    Deferred,
    Delayed,
    Failed,
    Scheduled,
    UndoFailed,
    UndoPending,
    Waiting,
)
from engine.domain.statuses import Direction, Outcome
from engine.domain.submitted_order import Priority
from engine.domain.work_index import list_of
from tests.support.engine_records import (
    DECLINED,
    HOUR,
    KEY,
    NOT_BEGUN,
    NOW,
    TIMED_OUT,
    TIMEOUT,
    external,
    in_doubt,
    order,
    running,
    step,
)

LATER = NOW + HOUR
UP = NOW + TIMEOUT
BEFORE = NOW - HOUR
BY = Processing("scheduler-1")
HOLD = Hold("grace", "look", BEFORE)


def derived(after, before=None, now=NOW):
    return derive(before or after, after, now)


# The documented columns


def test_the_complete_by_time_of_a_handled_order_is_that_of_its_first_step():
    """SCH-2: with several steps running, the earliest of theirs."""
    later = verbs.start(step(name="b"), KEY, LATER)
    assert derived(order(later, running("a"), state=BY)).complete_by == UP


def test_the_complete_by_time_of_a_pending_order_is_that_of_the_attempt_to_come():
    """SUP-3: data of the steps that are tried again, the latest of theirs; whatever runs beside them."""
    again = in_doubt(Waiting(TIMED_OUT, retry_by=UP), name="a")
    later = in_doubt(Delayed(LATER, TIMED_OUT, retry_by=LATER), name="b")
    assert derived(order(again, later, running("c"))).complete_by == LATER
    assert derived(order(step(), running("c"))).complete_by is None


def test_no_complete_by_time_is_left_where_nothing_is_tried_again():
    """D1: after a failure, on the way back, and once the order has ended."""
    again = in_doubt(Waiting(TIMED_OUT, retry_by=UP), name="a")
    assert derived(order(again, step(Failed(DECLINED), "b"))).complete_by is None
    back = step(UndoPending(Waiting(TIMED_OUT, retry_by=LATER)), "b", effect=Done(key=KEY))
    assert derived(order(again, back, direction=Direction.UNDO)).complete_by == LATER
    assert derived(order(again, state=InError(Outcome.FAILED))).complete_by is None


def test_an_order_is_locked_while_an_agent_has_a_request_of_it():
    """SCH-2; nobody handles one that only waits for an external event, or is pending (ANS-1)."""
    waiting = external(AwaitingExternalEvent(UP))
    assert derived(order(running(), waiting, state=BY)).locked_by == "scheduler-1"
    assert derived(order(waiting, state=BY)).locked_by is None
    assert derived(order(running(), state=Pending())).locked_by is None


def test_the_time_before_which_nothing_starts_is_there_while_it_is_to_come():
    """SUB-9."""
    dated = order(step(), not_before=LATER)
    assert derived(dated).not_before == LATER
    assert derived(dated, now=LATER).not_before is None


# Since when it is ready


def test_an_order_keeps_its_age_after_an_attempt_without_a_result():
    """The queue is fair: it was there before."""
    before = order(running(), state=BY, ready_since=BEFORE)
    lost = before.with_steps(verbs.expire(running(), NOW, TIMED_OUT)).requeue()
    assert derived(lost, before).ready_since == BEFORE


def test_an_order_counts_anew_after_progress_or_an_operators_action():
    """A step has come to a result, the order goes on, turns back, or is released."""
    before = order(running(), step(name="b"), ready_since=BEFORE)
    progress = before.with_steps(verbs.complete(running(), {}))
    assert derived(progress, before).ready_since == NOW
    error = order(in_doubt(Failed(DECLINED)), state=InError(Outcome.FAILED), ready_since=BEFORE)
    assert derived(error.resume(), error).ready_since == NOW
    back = replace(before, direction=Direction.UNDO)
    assert derived(back, before).ready_since == NOW
    held = replace(before, hold=HOLD)
    assert derived(held.release(), held).ready_since == NOW
    assert derived(held, before).ready_since == BEFORE


def test_a_new_order_is_ready_since_it_was_recorded():
    """SUB-2: or from its chosen time on (SUB-9)."""
    new = changed(None, order(step(), ready_since=BEFORE), NOW)
    assert (new.version, new.derived.ready_since) == (1, NOW)
    dated = changed(None, order(step(), not_before=LATER), NOW)
    assert dated.derived.ready_since == LATER


def test_an_action_that_leaves_an_order_in_error_changes_no_age():
    """Engine 29 f: the order waits for its operator since it failed."""
    failed = order(in_doubt(Failed(DECLINED)), state=InError(Outcome.FAILED), ready_since=BEFORE)
    settled = failed.with_steps(verbs.settle_not_done(in_doubt(Failed(DECLINED))))
    assert derived(settled, failed).ready_since == BEFORE


def test_an_order_is_ready_from_its_chosen_time_on():
    """Such a wait is no delay."""
    dated = order(step(Scheduled(LATER)), ready_since=BEFORE)
    assert derived(dated).ready_since == LATER


def test_a_pause_is_a_delay():
    """SCH-16: the order keeps its place; not while its service owes an answer to accepted work."""
    pausing = in_doubt(BackingOff(LATER, NOT_BEGUN))
    assert derived(order(pausing, ready_since=BEFORE)).ready_since == BEFORE
    owes = replace(pausing, effect=InDoubt(key=KEY, answer_by=LATER + HOUR))
    assert derived(order(owes, ready_since=BEFORE)).ready_since == LATER


def test_no_time_of_a_clock_that_is_ahead_is_kept():
    """Engine 24: an order that is ready since the future, by this clock, is ready since now."""
    ahead = order(step(), ready_since=LATER)
    assert derived(ahead).ready_since == NOW


# The next version


def test_a_transition_makes_the_next_version():
    """Its time is that of the host that decides."""
    before = order(step(), version=3)
    after = changed(before, before.claimed_by("scheduler-1"), LATER)
    assert (after.version, after.updated_at) == (4, LATER)


def test_an_order_that_is_over_is_on_hold_no_more():
    """It would be listed for ever; one in error waits for its operator, and for the release."""
    held = order(step(Completed()), state=BY, hold=HOLD)
    assert changed(held, held.complete(), NOW).hold is None
    assert changed(held, held.end(Outcome.FAILED, DECLINED), NOW).hold == HOLD


def test_an_erasure_changes_no_time():
    """Engine 29 f: neither the age of the order nor its retention starts anew, whatever is given."""
    before = order(step(Completed()), state=Processed(), version=7)
    given = {"updated_at": LATER, "derived": Derived(ready_since=LATER)}
    after = amended(before, replace(before, reply_to="erased", **given))
    assert (after.version, after.updated_at) == (8, NOW)
    assert replace(after.derived, work_items=()) == before.derived
    assert after.reply_to == "erased"


# Work items


def keys(after, before=None, now=NOW):
    return [
        item.key.removesuffix(f"|{after.order_id}")
        for item in derived(after, before, now).work_items
    ]


AT = "2026-01-31T08:15:00.000000Z"
AT_UP = "2026-01-31T08:15:30.000000Z"
AT_LATER = "2026-01-31T09:15:00.000000Z"


def test_a_pending_order_has_a_place_in_the_lane_of_its_agent():
    """SCH-1, SCH-11: by its priority, and by its age."""
    assert keys(order(step())) == [f"!pending|1|bank|{AT}"]
    assert keys(order(step(), priority=Priority.HIGH)) == [f"!pending|0|bank|{AT}"]


def test_an_order_has_a_place_in_the_lane_of_every_agent_that_it_needs():
    """Engine 7: an agent without capacity does not keep a step of another agent from its start."""
    two = order(
        step(name="ship", capability="carrier"),
        step(name="pay", capability="bank"),
        external(name="approve"),
        step(name="refund", capability="bank"),
    )
    assert keys(two) == [f"!pending|1|-|{AT}", f"!pending|1|carrier|{AT}", f"!pending|1|bank|{AT}"]


def test_an_order_has_no_place_for_an_agent_whose_step_cannot_start():
    """Engine 7: the step runs, or others come first."""
    two = order(running("pay"), step(name="ship", capability="carrier", after=("pay",)), state=BY)
    assert keys(two) == [f"!running|{AT_UP}"]
    beside = order(running("pay"), step(name="ship", capability="carrier"), state=BY)
    assert keys(beside) == [f"!pending|1|carrier|{AT}", f"!running|{AT_UP}"]


def test_every_lane_has_the_time_of_its_own_step():
    """SUB-9: the order is claimed for the one that may start now."""
    two = order(step(name="pay"), step(Scheduled(LATER), "ship", capability="carrier"))
    assert keys(two) == [f"!pending|1|bank|{AT}", f"!pending|1|carrier|later|{AT_LATER}"]
    items = derived(two).work_items
    assert [item.not_before for item in items] == [None, LATER]


def test_a_step_that_pauses_keeps_its_place():
    """SCH-16: only its time says that it may not be claimed yet."""
    pausing = order(in_doubt(BackingOff(LATER, NOT_BEGUN)), ready_since=BEFORE)
    (item,) = derived(pausing).work_items
    assert item.key == f"!pending|1|bank|2026-01-31T07:15:00.000000Z|{pausing.order_id}"
    assert item.not_before == LATER


@pytest.mark.parametrize(
    "state", [Delayed(LATER, TIMED_OUT), CoolingDown(LATER, TIMED_OUT), Deferred(LATER)]
)
def test_any_other_time_comes_after_those_without_one(state):
    """The lane is read from those that may be claimed."""
    assert keys(order(in_doubt(state))) == [f"!pending|1|bank|later|{AT_LATER}"]


def test_an_order_of_which_nothing_is_left_needs_a_claim_without_an_agent():
    """The claim ends it."""
    assert keys(order(step(Completed()))) == [f"!pending|1|-|{AT}"]


def test_what_runs_and_what_is_awaited_is_checked_at_its_time():
    """SUP-2: the first of each; an external event is not due while the order is on hold (OPR-7)."""
    later = verbs.start(step(name="b"), KEY, LATER)
    both = order(later, running("a"), external(AwaitingExternalEvent(LATER)), state=BY)
    assert keys(both) == [f"!running|{AT_UP}", f"!waiting|{AT_LATER}"]
    held = replace(both, hold=HOLD)
    assert keys(held) == [f"!running|{AT_UP}", "!held|2026-01-31T07:15:00.000000Z"]


def test_what_waits_for_an_operator_is_listed_since_it_does():
    """OPR-1."""
    failed = order(step(Failed(DECLINED)), state=InError(Outcome.FAILED))
    stuck = order(in_doubt(UndoFailed(DECLINED)), state=InError(Outcome.UNDO_INCOMPLETE))
    assert keys(failed) == keys(stuck) == [f"!error|{AT}"]


def test_what_is_over_is_listed_by_the_time_of_its_end():
    """It keeps that place whatever happens later, such as an erasure."""
    before = order(step(Completed()), state=BY)
    ended = changed(before, before.complete(), NOW)
    (item,) = ended.derived.work_items
    assert item.key.startswith("_ended|processed|")
    assert amended(ended, ended).derived.work_items == (item,)
    back = order(state=InError(Outcome.UNDONE))
    assert derived(back).work_items[0].key.startswith("_ended|undone|")


OPEN = {
    "pending": order(step()),
    "pending, one runs": order(running(), step(name="b", after=("pay",))),
    "pending, one runs beside": order(running(), step(name="b")),
    "two lanes": order(step(), step(name="ship", capability="carrier")),
    "runs": order(running(), state=BY),
    "runs and could start": order(running(), step(name="b", capability="carrier"), state=BY),
    "waits": order(external(AwaitingExternalEvent(UP)), state=BY),
    "runs and waits": order(running(), external(AwaitingExternalEvent(UP)), state=BY),
    "turned back while one runs": order(running(), direction=Direction.UNDO),
    "held": order(step(), hold=HOLD),
    "held while it runs": order(running(), hold=HOLD, state=BY),
    "held while it waits": order(external(AwaitingExternalEvent(UP)), hold=HOLD, state=BY),
    "in error": order(step(Failed(DECLINED)), state=InError(Outcome.FAILED)),
    "in error and held": order(step(Failed(DECLINED)), state=InError(Outcome.FAILED), hold=HOLD),
    "over": order(step(Completed()), state=Processed()),
}
LISTS = {
    "pending": "!pending",
    "pending, one runs": "!running",
    "pending, one runs beside": "!pending",
    "two lanes": "!pending",
    "runs": "!running",
    "runs and could start": "!running",
    "waits": "!waiting",
    "runs and waits": "!waiting",
    "turned back while one runs": "!running",
    "held": "!held",
    "held while it runs": "!held",
    "held while it waits": "!held",
    "in error": "!error",
    "in error and held": "!error",
    "over": "_ended",
}


@pytest.mark.parametrize("name", OPEN)
def test_every_order_is_in_exactly_one_list(name):
    """Engine 22: also a pending one of which a step runs and none may start."""
    after = OPEN[name]
    first = [item.key.partition("|")[0] for item in derived(after).work_items if item.is_first]
    assert [kind for kind in first if kind == list_of(after)] == [LISTS[name]]
    assert len(first) == len({*first})
