"""What operators do to an order in `Error`: whether it makes sense, and how the order goes on."""

from dataclasses import replace
from datetime import timedelta

from engine.decisions.actions.action import OperatorCommand
from engine.decisions.operator_actions import BY_NAME
from engine.domain import events as e
from engine.domain.causes import Cause, Code
from engine.domain.effects import Done, InDoubt, NotDone, UndoInDoubt
from engine.domain.orders import InError, Pending, Processed
from engine.domain.states import (
    BackingOff,
    Completed,
    Deferred,
    Failed,
    NothingToUndo,
    RequestCancelled,
    Skipped,
    SkipReason,
    UndoFailed,
    Undone,
    UndoPending,
    Waiting,
)
from engine.domain.statuses import Direction, Outcome
from engine.domain.steps import Counts
from engine.features.external_events.steps import with_callback_token
from tests.support.engine_records import (
    DECLINED,
    KEY,
    NOW,
    TIMED_OUT,
    TIMEOUT,
    external,
    in_doubt,
    order,
    refused,
    step,
)
from tests.support.engine_scheduling import only_step

NOTE = "looked there"
RESUBMIT, SKIP, RETRY, SETTLE = map(
    BY_NAME.get, ("resubmit", "skip", "retry-with-new-key", "settle")
)
FAILED = Failed(DECLINED)
TRIED = Counts(attempts=3, failures=2, cooldowns=1)
KNOWN = replace(KEY, known_until=NOW + TIMEOUT + timedelta(seconds=1))
FORGOTTEN = replace(KEY, known_until=NOW + TIMEOUT)


def failed_order(*steps, **changes):
    own = {"state": InError(Outcome.FAILED), "cause": DECLINED, "failures": 2}
    return order(*steps, **own | changes)


def stuck(*steps):
    """An order that could not be undone."""
    return failed_order(*steps, state=InError(Outcome.UNDO_INCOMPLETE), direction=Direction.UNDO)


def code_of(cause):
    return cause and cause.code


OVER = failed_order(step(Undone()), state=InError(Outcome.UNDONE), direction=Direction.UNDO)

TWO = failed_order(step(FAILED, "a"), step(Failed(TIMED_OUT), "b"))
"""An order of which two steps have failed."""


def acted(action, order, **arguments):
    """What comes of an action on the order; with a time other than NOW as `now`."""
    now = arguments.pop("now", NOW)
    command = OperatorCommand(operator="grace", note=NOTE, arguments=action.asks(**arguments))
    return action.apply(order, command, now)


def why_not(action, order):
    return action.why_not(order, NOW)


def why_not_now(action, order, **arguments):
    return action.why_not_now(order, action.asks(**arguments), NOW)


def names(action, order):
    return [step.name for step in action.steps(order, NOW)]


# Resubmit


def test_a_resubmitted_order_starts_its_failed_steps_afresh():
    """OPR-3: its attempts go on counting, and what is completed stays so."""
    done = step(Completed(), "a", effect=Done(key=KEY))
    failed = step(FAILED, "b", effect=NotDone(key=KEY), counts=TRIED)
    it = failed_order(done, failed)
    assert why_not(RESUBMIT, it) is None
    again = acted(RESUBMIT, it)
    assert again.after.state == Pending()
    assert (again.after.cause, again.after.failures) == (None, 0)
    assert again.after.step("a") == done
    assert again.after.step("b").state == Waiting()
    assert again.after.step("b").counts == Counts(attempts=3)
    assert again.events == (e.ActionTaken(action=e.Action.RESUBMIT, note=NOTE),)
    assert len(again.messages) == 1


def test_a_resubmit_gives_a_refused_key_its_next_generation():
    """AGT-3."""
    failed = step(FAILED, effect=NotDone(key=KEY, refused_for_good=True))
    assert only_step(acted(RESUBMIT, failed_order(failed))).key.generation == 1


def test_a_resubmit_asks_somebody_outside_again():
    """SCH-12: the answer that they had been asked for is awaited again."""
    cancelled = with_callback_token(replace(external(RequestCancelled()), counts=TRIED), "t")
    again = acted(RESUBMIT, failed_order(refused(FAILED), cancelled))
    assert again.after.step("approve").state == Waiting()
    assert again.after.step("approve").callback_token is None


def test_a_resubmit_lets_an_undo_go_on():
    """UND-4: only what may stand is undone again, and nobody outside is asked."""
    may_stand = step(UndoFailed(DECLINED), "a", effect=UndoInDoubt(key=KEY))
    nothing = refused(NothingToUndo(DECLINED), name="b")
    cancelled = replace(external(RequestCancelled()), counts=TRIED)
    again = acted(RESUBMIT, stuck(may_stand, nothing, cancelled)).after
    assert again.step("a").state == UndoPending()
    assert (again.step("b"), again.step("approve")) == (nothing, cancelled)
    assert again.direction is Direction.UNDO


def test_an_order_is_resubmitted_only_in_error():
    """OPR-3: and not once it is over."""
    assert code_of(why_not(RESUBMIT, order(step()))) is Code.NOT_IN_ERROR
    processed = why_not(RESUBMIT, order(state=Processed()))
    assert processed.facts == {"action": e.Action.RESUBMIT, "state": "Processed"}
    assert code_of(why_not(RESUBMIT, OVER)) is Code.NOTHING_TO_RESUME


def test_no_step_in_doubt_is_resubmitted_whose_key_may_be_forgotten():
    """AGT-12: it could be done twice. Of a step that was certainly not done, nothing is known to forget."""
    old = step(FAILED, "a", effect=InDoubt(key=FORGOTTEN))
    fresh = step(FAILED, "b", effect=InDoubt(key=KNOWN))
    certain = step(FAILED, "c", effect=NotDone(key=FORGOTTEN))
    assert why_not(RESUBMIT, failed_order(fresh, certain)) is None
    cause = why_not(RESUBMIT, failed_order(old, fresh, certain))
    assert (cause.code, cause.facts) == (
        Code.KEYS_FORGOTTEN,
        {"steps": ["a"], "is_undo": False},
    )
    back = stuck(step(UndoFailed(DECLINED), effect=UndoInDoubt(key=FORGOTTEN)))
    assert why_not(RESUBMIT, back).facts["is_undo"]


# Skip


def test_an_order_goes_on_without_a_skipped_step():
    """OPR-4."""
    it = failed_order(in_doubt(FAILED))
    assert why_not(SKIP, it) is None
    skipped = acted(SKIP, it)
    assert only_step(skipped).state == Skipped(SkipReason.OPERATOR)
    assert only_step(skipped).effect == InDoubt(key=KEY)  # it is undone with the order (UND-2)
    assert skipped.after.state == Pending()
    assert (skipped.after.cause, skipped.after.failures) == (None, 0)
    taken = {"action": e.Action.SKIP, "step": "pay", "note": NOTE}
    assert skipped.events == (e.StepActionTaken(**taken, resumes=True),)
    assert len(skipped.messages) == 1


def test_an_order_stays_in_error_while_another_step_has_failed():
    """OPR-4: for the cause of that step."""
    skipped = acted(SKIP, TWO, step="a")
    assert skipped.after.state == TWO.state
    assert (skipped.after.cause, skipped.after.updated_at) == (TIMED_OUT, NOW)
    assert not skipped.events[0].resumes
    assert skipped.messages == ()


def test_one_of_several_failed_steps_has_to_be_named():
    """And no other step may be."""
    several = why_not_now(SKIP, TWO)
    assert several == Cause(Code.SEVERAL_STEPS, {"action": e.Action.SKIP, "steps": ["a", "b"]})
    other = why_not_now(SKIP, TWO, step="c")
    assert other == Cause(Code.NO_SUCH_STEP, {"action": e.Action.SKIP, "steps": ["a", "b"]})


def test_no_step_is_skipped_whose_result_another_one_needs():
    """OPR-4: unless that is finished, or the order is undone."""
    failed, needing = step(FAILED, "a"), step(name="b", uses=("a",))
    it = failed_order(failed, needing)
    cause = Cause(Code.RESULT_NEEDED, {"needed": {"a": ["b"]}})
    assert why_not(SKIP, it) == why_not_now(SKIP, it, step="a") == cause
    assert names(SKIP, it) == []
    finished = replace(needing, state=Skipped(SkipReason.OPERATOR))
    assert why_not(SKIP, failed_order(failed, finished)) is None
    free = step(FAILED, "c")
    both = failed_order(failed, needing, free)
    assert why_not(SKIP, both) is None
    assert names(SKIP, both) == ["c"]
    back = step(UndoFailed(DECLINED), "a", effect=UndoInDoubt(key=KEY))
    assert why_not(SKIP, stuck(back, needing)) is None


def test_a_step_whose_undo_failed_is_skipped():
    """UND-4: one that was never done is none of them."""
    back = step(UndoFailed(DECLINED), "a", effect=UndoInDoubt(key=KEY))
    it = stuck(back, refused(NothingToUndo(DECLINED), name="b"))
    assert names(SKIP, it) == ["a"]
    skipped = acted(SKIP, it)
    assert skipped.after.direction is Direction.UNDO
    assert skipped.after.state == Pending()


def test_a_step_is_skipped_only_in_an_order_that_has_failed():
    """OPR-4: an order may also be in error although no step of it failed."""
    assert code_of(why_not(SKIP, order(step()))) is Code.NOT_IN_ERROR
    assert code_of(why_not(SKIP, OVER)) is Code.NOTHING_TO_RESUME
    assert code_of(why_not(SKIP, failed_order(step()))) is Code.NO_SUCH_STEP


# Retry with a new key

OLD = step(FAILED, "a", effect=InDoubt(key=FORGOTTEN), counts=TRIED)


def test_a_step_that_was_not_done_is_done_under_its_next_key():
    """AGT-12: at any provider, and nothing of it is in doubt any more."""
    it = failed_order(OLD)
    assert why_not(RETRY, it) is None
    again = acted(RETRY, it)
    found = only_step(again)
    assert (found.state, found.counts) == (Waiting(), Counts(attempts=3))
    assert isinstance(found.effect, NotDone)
    assert (found.key.generation, found.key.provider) == (1, None)
    assert (again.after.state, again.after.failures) == (Pending(), 0)
    taken = {"action": e.Action.RETRY_WITH_NEW_KEY, "step": "a", "note": NOTE}
    assert again.events == (e.StepActionTaken(**taken, resumes=True),)
    assert len(again.messages) == 1


def test_a_retry_with_a_new_key_waits_for_another_failed_step():
    """AGT-12."""
    both = failed_order(OLD, step(Failed(TIMED_OUT), "b"))
    again = acted(RETRY, both, step="a")
    assert again.after.state == both.state
    assert again.after.cause == TIMED_OUT
    assert not again.events[0].resumes


def test_only_a_step_whose_key_may_be_forgotten_gets_a_new_one():
    """AGT-12: any other step in doubt is asked again under its own key."""
    known = step(FAILED, "b", effect=InDoubt(key=KNOWN))
    fresh = why_not(RETRY, failed_order(known))
    assert code_of(fresh) is Code.NO_KEY_FORGOTTEN
    assert why_not_now(RETRY, failed_order(OLD, known)) is None
    assert names(RETRY, failed_order(OLD, known)) == ["a"]
    cause = why_not_now(RETRY, failed_order(OLD, known), step="b")
    assert cause.facts == {"action": e.Action.RETRY_WITH_NEW_KEY, "steps": ["a"]}


def test_no_step_gets_a_new_key_in_an_undo_or_an_order_that_has_not_failed():
    """AGT-12: nothing of it would be found to undo under the new key."""
    back = step(UndoFailed(DECLINED), effect=UndoInDoubt(key=FORGOTTEN))
    assert code_of(why_not(RETRY, stuck(back))) is Code.BEING_UNDONE
    assert code_of(why_not(RETRY, order(step()))) is Code.NOT_IN_ERROR


# Settle

DONE = {"was_done": True, "answer": {"receipt": "r-1"}}
NOT_DONE = {"was_done": False}
CONFIRMED = {"was_done": False, "confirm_late_effect": True}
IN_DOUBT = step(FAILED, "a", effect=InDoubt(key=KEY))


def settled(it, found, name=None, now=NOW):
    return acted(SETTLE, it, **found, step=name, now=now)


def test_a_step_that_was_found_done_is_completed_with_its_result():
    """OPR-12: and the order goes on."""
    it = failed_order(IN_DOUBT)
    assert why_not(SETTLE, it) is None
    after = settled(it, DONE)
    assert only_step(after).state == Completed()
    assert only_step(after).effect == Done(key=KEY, result={"receipt": "r-1"})
    assert (after.after.state, after.after.cause) == (Pending(), None)
    (event,) = after.events
    assert (event.was_done, event.resumes, event.late_effect_possible) == (True, True, False)
    assert (event.step, event.note, event.action) == ("a", NOTE, e.Action.SETTLE)
    assert len(after.messages) == 1


def test_an_empty_result_is_one_too():
    """OPR-12: a step may have been done without any field that is kept."""
    assert only_step(settled(failed_order(IN_DOUBT), {"was_done": True})).result == {}


def test_an_order_of_which_another_step_has_failed_stays_in_error():
    """OPR-12."""
    both = failed_order(IN_DOUBT, step(Failed(TIMED_OUT), "b"))
    after = settled(both, DONE)
    assert after.after.state == both.state
    assert after.after.cause == TIMED_OUT
    assert not after.events[0].resumes


def test_a_step_that_was_found_not_done_leaves_the_order_to_another_action():
    """OPR-12: any provider may do it then."""
    it = failed_order(IN_DOUBT)
    after = settled(it, NOT_DONE)
    assert (after.after.state, after.after.cause, after.after.failures) == (it.state, DECLINED, 2)
    assert only_step(after).state == FAILED
    assert only_step(after).effect == NotDone(key=replace(KEY, provider=None))
    (event,) = after.events
    assert (event.was_done, event.resumes, event.late_effect_possible) == (False, False, False)
    assert (event.step, event.note) == ("a", NOTE)
    assert after.messages == ()


def test_a_step_counts_as_not_done_only_once_no_call_can_take_effect():
    """OPR-12, UND-2, AGT-11: unless the operator confirms it. That it was done is known at any time."""
    final_at = NOW + TIMEOUT
    late = replace(IN_DOUBT, effect=InDoubt(key=replace(KEY, effects_final_at=final_at)))
    accepted = step(Deferred(), "a", effect=InDoubt(key=KEY, answer_by=final_at))
    for doubtful in (late, accepted):
        it = failed_order(doubtful)
        cause = why_not_now(SETTLE, it, **NOT_DONE)
        assert cause.code is Code.LATE_EFFECT_POSSIBLE
        assert cause.facts == {"step": "a", "until": final_at.isoformat()}
        assert why_not_now(SETTLE, it, **CONFIRMED) is why_not_now(SETTLE, it, **DONE) is None
        assert settled(it, CONFIRMED).events[0].late_effect_possible
        assert not settled(it, NOT_DONE, now=final_at).events[0].late_effect_possible
        assert only_step(settled(it, DONE)).state == Completed()


def test_any_step_in_doubt_can_be_settled():
    """OPR-12: also one that was skipped as done, or that waits for another attempt."""
    skipped = step(Skipped(SkipReason.OPERATOR), "b", effect=InDoubt(key=KEY))
    deferred = step(Deferred(NOW), "c", effect=InDoubt(key=KEY))
    certain = step(FAILED, "d", effect=NotDone(key=KEY))
    it = failed_order(skipped, deferred, certain)
    assert names(SETTLE, it) == ["b", "c"]
    assert isinstance(settled(it, NOT_DONE, "b").after.step("b").state, Failed)
    assert settled(it, NOT_DONE, "c").after.step("c").state == BackingOff(NOW)
    assert why_not_now(SETTLE, it, **DONE, step="d").code is Code.NO_SUCH_STEP
    assert why_not_now(SETTLE, it, **DONE).code is Code.SEVERAL_STEPS


def test_nothing_is_settled_in_an_undo_or_an_order_that_has_not_failed():
    """OPR-12."""
    back = step(UndoFailed(DECLINED), effect=UndoInDoubt(key=KEY))
    assert code_of(why_not(SETTLE, stuck(back))) is Code.BEING_UNDONE
    waiting = order(in_doubt(Waiting(TIMED_OUT)))
    facts = {"action": e.Action.SETTLE, "state": "Pending"}
    assert why_not(SETTLE, waiting) == Cause(Code.NOT_IN_ERROR, facts)
    certain = failed_order(refused(FAILED))
    assert code_of(why_not(SETTLE, certain)) is Code.NOTHING_IN_DOUBT
