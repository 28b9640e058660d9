"""The verbs of a step: what each makes of its state, its effect and its counts."""

from dataclasses import replace
from datetime import timedelta

import pytest

from engine.domain import verbs
from engine.domain.causes import Cause, Code
from engine.domain.effects import Done, InDoubt, NotDone, Reverted, UndoInDoubt
from engine.domain.states import (
    BackingOff,
    Completed,
    ConditionPending,
    CoolingDown,
    Deferred,
    Delayed,
    Failed,
    LateEffectsPossible,
    NothingToUndo,
    Running,
    Skipped,
    SkipReason,
    UndoFailed,
    Undoing,
    Undone,
    UndoPending,
    Waiting,
)
from engine.domain.steps import Counts
from engine.domain.submitted_order import OnFailure
from tests.support.engine_records import (
    DECLINED,
    HOUR,
    KEY,
    NOT_BEGUN,
    NOW,
    OVERLOADED,
    TIMED_OUT,
    TIMEOUT,
    external,
    in_doubt,
    refused,
    running,
    step,
)

LATER = NOW + HOUR
UP = NOW + TIMEOUT
"""When the time of an attempt is up that started at `NOW`."""
RESULT = {"reference": "r-1"}
MOMENT = timedelta(seconds=1)
FIRST, SECOND = "first", "second"
LATE = replace(KEY, effects_final_at=LATER)


def done(**changes):
    return verbs.complete(running(**changes), RESULT)


def undoing(effect=None, **changes):
    """A step whose undo has just started."""
    before = step(UndoPending(), effect=effect or Done(key=KEY, result=RESULT), **changes)
    return verbs.start(before, KEY, UP)


# Starting


def test_a_start_counts_an_attempt_and_keeps_its_key_before_the_request_goes_out():
    """SCH-3: it says when the attempt is up, and under which key; nothing is known to be done."""
    started = running()
    assert started.state == Running(UP)
    assert started.counts == Counts(attempts=1)
    assert started.effect == NotDone(key=KEY)
    assert (started.agent, started.started_at) == ("bank", NOW)


def test_a_further_start_keeps_what_is_known_under_the_key_of_this_attempt():
    """A doubt stays a doubt, at the agent that is asked now."""
    other = replace(KEY, agent="bank-2")
    again = verbs.start(in_doubt(BackingOff(NOW, NOT_BEGUN)), other, UP)
    assert again.effect == InDoubt(key=other)
    assert again.counts.attempts == 2
    assert again.cause is None
    assert again.not_before is None


def test_a_start_keeps_what_a_newer_version_has_added():
    """FLT-12."""
    newer = replace(step(), unknown={"Colour": "red"})
    assert verbs.start(newer, KEY, UP).unknown == {"Colour": "red"}


def test_the_start_of_an_undo_keeps_the_result_that_it_needs():
    """UND-3."""
    assert undoing().state == Undoing(UP)
    assert undoing().result == RESULT


def test_a_callback_token_stays_as_it_is():
    """ANS-6: whoever has the URL of an earlier attempt can still answer."""
    first = verbs.start(step(), KEY, UP, callback_token=FIRST)
    waits = verbs.not_attempted(first, NOW, retry_after=HOUR)
    assert verbs.start(waits, KEY, UP, callback_token=SECOND).callback_token == FIRST


# Replies


def test_a_completion_ends_every_doubt_and_keeps_the_result():
    """SCH-5, UND-3."""
    tried = replace(in_doubt(Running(UP)), counts=Counts(attempts=3, failures=1, uncounted=2))
    completed = verbs.complete(tried, RESULT)
    assert completed.state == Completed()
    assert completed.effect == Done(key=KEY, result=RESULT)
    assert completed.counts == Counts(attempts=3, failures=1)


def test_a_completed_undo_keeps_the_result_of_what_was_undone():
    """The reply to an undo has no result of its own."""
    undone = verbs.complete(undoing(), {})
    assert undone.state == Undone()
    assert undone.effect == Reverted(key=KEY, result=RESULT)
    assert verbs.complete(undoing(InDoubt(key=KEY)), {}).result is None


def test_accepted_work_is_requested_again_until_the_service_has_to_finish():
    """AGT-11: the first acceptance says by when, and no failure is counted."""
    accepted = verbs.defer(running(), NOW, retry_after=MOMENT, answer_within=HOUR)
    assert accepted.state == Deferred(NOW + MOMENT)
    assert accepted.effect == InDoubt(key=KEY, unanswered=False, answer_by=LATER)
    assert accepted.counts == Counts(attempts=1, uncounted=1)
    again = verbs.start(accepted, KEY, UP + MOMENT)
    again = verbs.defer(again, NOW + MOMENT, retry_after=MOMENT, answer_within=HOUR)
    assert again.answer_by == LATER
    assert again.counts.uncounted == 2


def test_a_service_that_has_accepted_may_be_called_again_without_a_pause():
    """Its reply names none, and the back-off has passed."""
    accepted = verbs.defer(running(), UP, retry_after=0 * HOUR, answer_within=HOUR)
    assert accepted.state == Deferred(None)
    assert accepted.not_before is None


def test_work_that_is_accepted_late_has_its_effect_late():
    """UND-2: no undo starts before the service has to have finished, and its late calls too."""
    late = verbs.start(step(late_effect_window=HOUR), LATE, UP)
    accepted = verbs.defer(late, NOW, retry_after=MOMENT, answer_within=2 * HOUR)
    assert accepted.key.effects_final_at == NOW + 3 * HOUR
    short = verbs.defer(late, NOW, retry_after=MOMENT, answer_within=-HOUR)
    assert short.key.effects_final_at == LATER
    none = verbs.defer(running(), NOW, retry_after=MOMENT, answer_within=HOUR)
    assert none.key.effects_final_at is None


@pytest.mark.parametrize("unanswered", [True, False])
def test_an_earlier_call_without_an_answer_is_another_doubt_than_an_acceptance(unanswered):
    """The final word on accepted work ends the doubt of the acceptance alone (AGT-11)."""
    accepted = verbs.defer(
        running(), NOW, retry_after=MOMENT, answer_within=HOUR, unanswered=unanswered
    )
    final = verbs.refuse(verbs.start(accepted, KEY, UP), DECLINED)
    expected = InDoubt(key=KEY) if unanswered else NotDone(key=KEY)
    assert final.effect == expected
    assert final.may_be_done is unanswered


def test_an_accepted_undo_that_is_refused_leaves_what_was_done():
    """The step stands, and its result with it."""
    accepted = verbs.defer(undoing(), NOW, retry_after=MOMENT, answer_within=HOUR)
    assert accepted.state == UndoPending(Deferred(NOW + MOMENT))
    assert accepted.effect == UndoInDoubt(key=KEY, result=RESULT, unanswered=False, answer_by=LATER)
    final = verbs.refuse(verbs.start(accepted, KEY, UP), DECLINED)
    assert final.state == UndoFailed(DECLINED)
    assert final.effect == Done(key=KEY, result=RESULT)


def test_an_attempt_that_was_not_made_is_repeated_after_a_growing_pause():
    """AGT-8, SCH-16: no failure is counted, and nothing is in doubt."""
    waits = verbs.not_attempted(running(), NOW, retry_after=0 * HOUR)
    assert waits.state == BackingOff(NOW + timedelta(seconds=0.25))
    assert waits.effect == NotDone(key=KEY)
    again = verbs.start(waits, KEY, UP)
    again = verbs.not_attempted(again, NOW, retry_after=0 * HOUR)
    assert again.not_before == NOW + timedelta(seconds=0.5)
    assert again.counts == Counts(attempts=2, uncounted=2)
    assert again.is_backing_off


def test_the_pause_that_a_service_asks_for_is_kept():
    """AGT-8: the step goes back to wait until then."""
    waits = verbs.not_attempted(running(), NOW, retry_after=HOUR)
    assert waits.state == BackingOff(LATER)


def test_a_pause_that_has_passed_is_none():
    """The attempt took longer than the back-off."""
    waits = verbs.not_attempted(running(), UP, retry_after=0 * HOUR)
    assert waits.state == Waiting()


def test_an_attempt_that_was_not_made_may_follow_a_call_without_an_answer():
    """UND-2."""
    waits = verbs.not_attempted(running(), NOW, retry_after=HOUR, unanswered=True)
    assert waits.effect == InDoubt(key=KEY)


def test_a_service_that_owes_an_answer_is_waited_for_also_when_it_was_not_called():
    """It keeps no place in the queue: its answer is not overdue (SCH-16)."""
    accepted = step(effect=InDoubt(key=KEY, unanswered=False, answer_by=LATER))
    waits = verbs.not_attempted(verbs.start(accepted, KEY, UP), NOW, retry_after=HOUR)
    assert waits.state == Deferred(LATER)
    assert not waits.is_backing_off


def test_a_refusal_gives_the_step_up():
    """SCH-8: its rule decides what follows."""
    failed = verbs.refuse(running(), DECLINED)
    assert failed.state == Failed(DECLINED)
    assert failed.effect == NotDone(key=KEY)
    assert not failed.may_be_done


def test_a_refusal_for_good_leaves_no_doubt_under_its_key():
    """AGT-3: the service would refuse a key of which it did the work no more."""
    failed = verbs.refuse(in_doubt(Running(UP)), DECLINED, for_good=True)
    assert failed.effect == NotDone(key=KEY, refused_for_good=True)


def test_a_refusal_after_a_call_without_an_answer_leaves_a_doubt():
    """UND-2."""
    assert verbs.refuse(running(), DECLINED, unanswered=True).effect == InDoubt(key=KEY)
    assert verbs.refuse(in_doubt(Running(UP)), DECLINED).effect == InDoubt(key=KEY)


def test_a_failure_that_is_not_the_services_word_is_no_answer_to_accepted_work():
    """AGT-11: an operator decides, and the work may still be done."""
    accepted = step(Running(UP), effect=InDoubt(key=KEY, unanswered=False, answer_by=LATER))
    failed = verbs.fail(accepted, DECLINED, operator_decides=True)
    assert failed.state == Failed(DECLINED, operator_decides=True)
    assert failed.effect == InDoubt(key=KEY, answer_by=LATER)


def test_an_undo_that_cannot_be_requested_leaves_the_effect_in_doubt():
    """UND-4: also of a step that certainly was not done, for nobody has asked there."""
    failed = verbs.fail(step(UndoPending(), effect=NotDone(key=KEY)), DECLINED)
    assert failed.state == UndoFailed(DECLINED)
    assert failed.effect == InDoubt(key=KEY)


def test_a_step_whose_request_cannot_be_made_has_no_effect():
    """Nothing was sent."""
    failed = verbs.fail(step(), DECLINED)
    assert failed.state == Failed(DECLINED)
    assert failed.key is None


def test_an_order_goes_on_without_a_step_that_is_optional():
    """SCH-13; but an operator decides about a failure that is not the service's own word."""
    optional = running(on_failure=OnFailure.CONTINUE)
    assert verbs.refuse(optional, DECLINED).state == Skipped(SkipReason.FAILED, DECLINED)
    decided = verbs.fail(optional, DECLINED, operator_decides=True)
    assert decided.state == Failed(DECLINED, operator_decides=True)
    back = verbs.refuse(undoing(on_failure=OnFailure.CONTINUE), DECLINED)
    assert back.state == UndoFailed(DECLINED)


def test_an_undo_that_is_refused_fails_unless_nothing_was_done():
    """UND-4, UND-5."""
    assert verbs.refuse(undoing(), DECLINED).state == UndoFailed(DECLINED)
    nothing = verbs.refuse(undoing(NotDone(key=KEY)), DECLINED)
    assert nothing.state == NothingToUndo(DECLINED)


def test_a_long_text_of_a_service_is_cut_where_a_step_keeps_it():
    """A row has room for 32 Ki characters; the history has the whole text."""
    long = Cause(Code.REFUSED, {"detail": "x" * 1000, "code": "n"})
    kept = verbs.refuse(running(), long).cause
    assert kept == long.shortened() != long


# Time-outs


def test_a_lost_answer_leaves_the_effect_in_doubt_and_the_step_to_be_tried_again():
    """SUP-3, UND-2."""
    lost = verbs.expire(running(), NOW, TIMED_OUT)
    assert lost.effect == InDoubt(key=KEY)
    assert lost.state == Waiting(TIMED_OUT, retry_by=UP)
    assert lost.counts == Counts(attempts=1, failures=1)


def test_the_next_attempt_may_be_delayed():
    """SUP-3: requests that fail together come apart; its complete-by time counts from its start."""
    lost = verbs.expire(running(), NOW, TIMED_OUT, delay=HOUR)
    assert lost.state == Delayed(LATER, TIMED_OUT, retry_by=LATER + TIMEOUT)


def test_a_counted_failure_ends_the_row_of_uncounted_ones():
    """SCH-16."""
    before = replace(running(), counts=Counts(attempts=4, uncounted=3, unbegun=2))
    assert verbs.expire(before, NOW, TIMED_OUT).counts == Counts(attempts=4, failures=1)


def test_a_step_fails_when_its_failures_reach_the_threshold():
    """SUP-3: with a threshold of 2 it is tried twice."""
    fault = Cause(Code.TIMED_OUT, {"fault": "503"})
    once = verbs.expire(running(), NOW, TIMED_OUT)
    twice = verbs.expire(verbs.start(once, KEY, UP), NOW, fault, operator_decides=True)
    reached = Cause(Code.THRESHOLD_REACHED, {"step": "pay", "failures": 2, "fault": "503"})
    assert twice.state == Failed(reached, operator_decides=True)
    assert twice.effect == InDoubt(key=KEY)


def test_a_step_cools_down_at_its_threshold_until_it_has_done_so_often_enough():
    """SUP-3: it starts afresh each time, and its attempts go on."""
    rules = {"threshold": 1, "cooldown": HOUR, "max_cooldowns": 1}
    cooling = verbs.expire(running(**rules), NOW, TIMED_OUT)
    assert cooling.state == CoolingDown(LATER, TIMED_OUT, retry_by=LATER + TIMEOUT)
    assert cooling.counts == Counts(attempts=1, cooldowns=1)
    assert isinstance(verbs.expire(verbs.start(cooling, KEY, UP), NOW, TIMED_OUT).state, Failed)


def test_an_undo_waits_and_fails_as_a_step_does():
    """UND-4; its result stays, for the next try needs it."""
    lost = verbs.expire(undoing(), NOW, TIMED_OUT)
    assert lost.state == UndoPending(Waiting(TIMED_OUT, retry_by=UP))
    assert lost.effect == UndoInDoubt(key=KEY, result=RESULT)
    again = verbs.expire(verbs.start(lost, KEY, UP), NOW, TIMED_OUT)
    assert isinstance(again.state, UndoFailed)


def test_an_attempt_that_nobody_is_known_to_have_begun_counts_as_no_failure():
    """SUP-3, SCH-16; it may have been done all the same."""
    waits = verbs.expire_uncounted(running(), NOW, NOT_BEGUN, unbegun=1)
    until = NOW + timedelta(seconds=0.25)
    assert waits.state == BackingOff(until, NOT_BEGUN, retry_by=until + TIMEOUT)
    assert waits.counts == Counts(attempts=1, uncounted=1, unbegun=1)
    assert waits.effect == InDoubt(key=KEY)
    passed = verbs.expire_uncounted(running(), UP, NOT_BEGUN, unbegun=1)
    assert passed.state == Waiting(NOT_BEGUN, retry_by=UP + TIMEOUT)


def test_an_attempt_that_was_begun_may_count_as_no_failure_either():
    """SUP-3: its reply may wait; that ends the row of requests that nobody began (SUP-9)."""
    before = replace(running(), counts=Counts(attempts=3, uncounted=2, unbegun=2))
    waits = verbs.expire_uncounted(before, NOW, TIMED_OUT, unbegun=0)
    assert waits.counts == Counts(attempts=3, uncounted=3)
    assert waits.state == BackingOff(waits.not_before, TIMED_OUT, waits.retry_by)
    assert waits.effect == InDoubt(key=KEY)


GIVEN_UP = Cause(Code.NO_AGENT_BEGAN, {"step": "pay", "agent": "bank", "attempts": 12})


@pytest.mark.parametrize(
    ("rules", "state"),
    [
        ({}, Failed(GIVEN_UP)),
        ({"on_failure": OnFailure.UNDO}, Failed(GIVEN_UP, operator_decides=True)),
        ({"on_failure": OnFailure.CONTINUE}, Skipped(SkipReason.FAILED, GIVEN_UP)),
        (
            {"cooldown": HOUR, "max_cooldowns": 1},
            CoolingDown(LATER, GIVEN_UP, retry_by=LATER + TIMEOUT),
        ),
    ],
)
def test_a_step_that_no_agent_begins_is_given_up_by_its_rule_but_for_the_undo(rules, state):
    """SUP-9: it may have been done all the same."""
    before = replace(running(**rules), counts=Counts(attempts=12, uncounted=11, unbegun=11))
    given_up = verbs.give_up_unbegun(before, NOW, GIVEN_UP)
    assert given_up.state == state
    cooldowns = int(isinstance(state, CoolingDown))
    assert given_up.counts == Counts(attempts=12, cooldowns=cooldowns)
    assert given_up.effect == InDoubt(key=KEY)


def test_an_undo_that_no_agent_begins_is_given_up_too():
    """SUP-9, UND-4."""
    assert verbs.give_up_unbegun(undoing(), NOW, GIVEN_UP).state == UndoFailed(GIVEN_UP)


@pytest.mark.proves("SUP-3", "SCH-16", "UND-2")
def test_a_time_out_at_an_overloaded_agent_counts_as_no_failure():
    """The call was sent, so it is in doubt; a fresh start forgets the number of these attempts."""
    waits = verbs.expire_overloaded(running(), UP, OVERLOADED)
    assert waits.state == Waiting(OVERLOADED, retry_by=UP + TIMEOUT)
    assert waits.counts == Counts(attempts=1, uncounted=1, overloaded=1)
    assert waits.effect == InDoubt(key=KEY)
    soon = verbs.expire_overloaded(running(), NOW, OVERLOADED)
    until = NOW + timedelta(seconds=0.25)
    assert soon.state == BackingOff(until, OVERLOADED, retry_by=until + TIMEOUT)
    counted = verbs.expire(verbs.start(waits, KEY, UP), NOW, TIMED_OUT)
    assert counted.counts == Counts(attempts=2, failures=1, overloaded=1)
    assert verbs.request_undo(counted).counts == Counts(attempts=2)


@pytest.mark.proves("SUP-3", "UND-4")
def test_an_undo_waits_for_an_overloaded_agent_too():
    """It may have been undone."""
    waits = verbs.expire_overloaded(undoing(), UP, OVERLOADED)
    assert waits.state == UndoPending(Waiting(OVERLOADED, retry_by=UP + TIMEOUT))
    assert waits.effect == UndoInDoubt(key=KEY, result=RESULT)


def test_a_step_that_expires_while_its_order_turns_back_is_undone_and_not_tried_again():
    """UND-2: it counts from its own beginning."""
    turned = verbs.expire_in_undo(running(), NOW)
    assert turned.state == UndoPending(Waiting(None, retry_by=UP))
    assert turned.effect == InDoubt(key=KEY)
    assert turned.counts == Counts(attempts=1)
    late = verbs.expire_in_undo(verbs.start(step(), LATE, UP), NOW)
    assert late.state == UndoPending(LateEffectsPossible(LATER, retry_by=LATER + TIMEOUT))


def test_a_step_without_an_undo_that_expires_while_its_order_turns_back_only_waits():
    """Nothing is to be undone; the doubt about it stays on record."""
    left = verbs.expire_in_undo(running(undoable=False), NOW)
    assert (left.state, left.effect) == (Waiting(), InDoubt(key=KEY))


# The undo


def test_what_was_ever_tried_is_undone():
    """UND-2: even after a refusal, the same request may have been delivered twice."""
    for before in (done(), verbs.refuse(running(), DECLINED), in_doubt(Waiting(TIMED_OUT))):
        tried = Counts(attempts=1, failures=1, uncounted=1, cooldowns=1)
        turned = verbs.request_undo(replace(before, counts=tried))
        assert turned.state == UndoPending()
        assert turned.counts == Counts(attempts=1)


def test_what_was_never_tried_or_has_no_undo_stays_as_it_is():
    """There is nothing to undo."""
    for before in (step(), step(ConditionPending()), done(undoable=False), external()):
        assert verbs.request_undo(before) is before


def test_an_undo_waits_until_no_call_can_take_effect_any_more():
    """UND-2: also that of a completed step, of which another request may be on its way."""
    late = verbs.complete(verbs.start(step(), LATE, UP), RESULT)
    assert verbs.request_undo(late).state == UndoPending(LateEffectsPossible(LATER))


def test_accepted_work_is_in_doubt_once_its_order_turns_back():
    """Nobody asks for its answer any more, and it may still be done."""
    accepted = verbs.defer(running(), NOW, retry_after=MOMENT, answer_within=HOUR)
    assert verbs.request_undo(accepted).effect == InDoubt(key=KEY)


def test_the_end_of_a_key_counts_only_where_something_may_have_been_done():
    """AGT-12: where certainly nothing was done, the undo may come after the key was forgotten."""
    key = replace(KEY, known_until=LATER)
    kept = (
        step(Completed(), effect=Done(key=key)),
        step(Waiting(), effect=InDoubt(key=key)),
        step(Skipped(SkipReason.OPERATOR), effect=NotDone(key=key)),
    )
    assert {verbs.request_undo(before).key.known_until for before in kept} == {LATER}
    certain = step(Failed(DECLINED), effect=NotDone(key=key))
    assert verbs.request_undo(certain).key.known_until is None


# Actions of operators


def test_a_resubmit_lets_the_step_start_afresh():
    """OPR-3: its attempts stay, for they identify stale replies; a former callback URL ends."""
    counts = Counts(attempts=3, failures=2, cooldowns=1)
    failed = replace(in_doubt(Failed(DECLINED)), counts=counts, callback_token=FIRST)
    fresh = verbs.reset(failed)
    assert (fresh.state, fresh.counts) == (Waiting(), Counts(attempts=3))
    assert fresh.callback_token is None
    assert fresh.effect == InDoubt(key=KEY)


def test_a_resubmit_waits_no_longer_for_an_answer_that_the_service_owes():
    """The doubt stays."""
    failed = step(Failed(DECLINED), effect=InDoubt(key=KEY, unanswered=False, answer_by=LATER))
    assert verbs.reset(failed).effect == InDoubt(key=KEY)


def test_a_step_that_was_refused_for_good_is_done_under_its_next_key():
    """AGT-3: its service would refuse the former one again."""
    failed = step(Failed(DECLINED), effect=NotDone(key=KEY, refused_for_good=True))
    fresh = verbs.reset(failed)
    assert fresh.effect == NotDone(key=replace(KEY, generation=1, provider=None))


def test_a_step_whose_condition_could_not_be_evaluated_is_evaluated_after_a_resubmit():
    """SCH-14: any other failed step was evaluated."""
    failed = verbs.fail(step(ConditionPending()), DECLINED)
    assert verbs.reset(failed).state == ConditionPending()


def test_a_resubmitted_undo_starts_afresh():
    """UND-4."""
    stuck = step(
        UndoFailed(DECLINED), effect=UndoInDoubt(key=KEY), counts=Counts(attempts=3, failures=2)
    )
    fresh = verbs.reset(stuck)
    assert (fresh.state, fresh.counts) == (UndoPending(), Counts(attempts=3))
    assert fresh.effect == UndoInDoubt(key=KEY)


def test_a_skipped_step_counts_as_done():
    """OPR-4: an operator says so; it has no cause any more."""
    skipped = verbs.skip(step(Failed(DECLINED)))
    assert skipped.state == Skipped(SkipReason.OPERATOR)
    assert skipped.cause is None
    assert skipped.skipped_as_done
    assert skipped.may_be_done


def test_an_operator_ends_a_doubt_that_was_done():
    """OPR-12 (engine 5): with the answer that is kept."""
    settled = verbs.settle_done(in_doubt(Failed(DECLINED)), RESULT)
    assert (settled.state, settled.effect) == (Completed(), Done(key=KEY, result=RESULT))


def test_an_operator_ends_a_doubt_that_was_not_done():
    """OPR-12 (engine 5): the order stays in error, and any provider may do the step."""
    key = replace(KEY, known_until=LATER)
    failed = step(Failed(DECLINED), effect=InDoubt(key=key, answer_by=LATER), pivot=True)
    settled = verbs.settle_not_done(failed)
    assert settled.state == Failed(DECLINED)
    assert settled.effect == NotDone(key=replace(KEY, provider=None))
    assert not settled.may_be_done


def test_a_step_that_was_skipped_as_done_and_was_not_has_failed():
    """OPR-12; one that the order goes on without stays skipped."""
    skipped = verbs.settle_not_done(in_doubt(Skipped(SkipReason.OPERATOR)))
    assert skipped.state == Failed(Cause(Code.FOUND_NOT_DONE))
    optional = in_doubt(Skipped(SkipReason.FAILED, DECLINED))
    assert verbs.settle_not_done(optional).state == optional.state
    restored = step(Completed(), effect=UndoInDoubt(key=KEY, result=RESULT))
    assert verbs.settle_not_done(restored).state == Failed(Cause(Code.FOUND_NOT_DONE))
    assert verbs.settle_done(restored, RESULT).state == Completed()


def test_a_step_whose_accepted_work_was_not_done_only_backs_off():
    """OPR-12: its service owes no answer any more."""
    owes = InDoubt(key=KEY, unanswered=False, answer_by=LATER)
    settled = verbs.settle_not_done(step(Deferred(LATER), effect=owes))
    assert settled.state == BackingOff(LATER)
    assert verbs.settle_not_done(step(Deferred(None), effect=owes)).state == Waiting()


def test_what_no_request_was_sent_for_is_in_no_doubt():
    """An external step, for example: a verb that asks for its key is a fault of ours."""
    with pytest.raises(ValueError, match="approve"):
        verbs.settle_not_done(external(Failed(DECLINED)))


def test_a_step_that_starts_afresh_by_an_operator_has_no_complete_by_time_from_before():
    """SUP-3: no supervisor asked for its attempt."""
    waiting = verbs.expire(running(), NOW, TIMED_OUT, delay=HOUR)
    assert verbs.without_retry_by(waiting).state == Delayed(LATER, TIMED_OUT)
    back = verbs.expire(undoing(), NOW, TIMED_OUT)
    assert verbs.without_retry_by(back).state == UndoPending(Waiting(TIMED_OUT))
    assert verbs.without_retry_by(refused(Deferred(LATER))).state == Deferred(LATER)
