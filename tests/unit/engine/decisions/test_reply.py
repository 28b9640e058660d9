"""The scheduler's decision about an agent's reply (SCH-5, SCH-6, SCH-8)."""

from datetime import timedelta

import pytest

from engine.decisions.reply import Delivery, RefusedReply, receive
from engine.decisions.results import length_of
from engine.declarations.workflow import WorkflowDefinition, Workflows
from engine.domain import events as e
from engine.domain.attempts import FailureOrigin, NotAttemptedReason, ReplyOutcome
from engine.domain.causes import Cause, Code
from engine.domain.derive import changed
from engine.domain.effects import Done, InDoubt
from engine.domain.errors import NewerWorkflowError
from engine.domain.messages import REPLIES
from engine.domain.orders import Hold, InError, Pending, Processed, Processing
from engine.domain.states import (
    BackingOff,
    Completed,
    Deferred,
    Failed,
    Running,
    Skipped,
    Undoing,
    Undone,
    UndoPending,
    Waiting,
)
from engine.domain.statuses import Direction, Outcome
from engine.domain.submitted_order import MAX_KEPT, OnFailure
from engine.domain.verbs import start
from tests.support.engine_records import HOUR, KEY, NOW, ORDER_ID, TIMEOUT, order, running, step
from tests.support.engine_scheduling import CAPACITY, agent, definition, kinds, only_step, scheduler

UP = NOW + TIMEOUT
LATER = NOW + HOUR
BY = Processing("scheduler-1")
KEEPS = definition(result_fields=("reference",))
BANK = {"bank": agent("bank", remembers_refusals=True, answer_within=HOUR)}
REMEMBERS = scheduler(KEEPS, agents=BANK)


OF_OUTCOME = {
    "failed": {"origin": FailureOrigin.SERVICE},
    "notAttempted": {"reason": NotAttemptedReason.BUSY},
}


def reply(outcome="completed", **changes):
    own = {"order_id": ORDER_ID, "step": "pay", "action": "do", "attempt": 1, "complete_by": UP}
    return REPLIES[ReplyOutcome(outcome)](**own | OF_OUTCOME.get(outcome, {}) | changes)


DONE = reply()


def received(*steps, by=None, at=NOW, over="bank", reply=DONE, **changes):
    it = order(*(steps or (running(),)), **{"state": BY} | changes)
    delivery = Delivery(reply, over)
    return receive(changed(it, it, NOW), delivery, at, CAPACITY, by or scheduler())


def cause_of(next_version):
    """The cause that the history has of the failure of the step."""
    return next(event.cause for event in next_version.events if isinstance(event, e.StepFailed))


def test_a_valid_reply_completes_the_step_and_the_order_goes_on():
    """SCH-5: what the workflow keeps of the result is there for later steps."""
    done = received(by=REMEMBERS, reply=reply(result={"reference": "r", "other": 1}))
    assert only_step(done).effect == Done(key=KEY, result={"reference": "r"})
    assert done.after.state == Processed()
    assert kinds(done) == [e.StepCompleted, e.OrderProcessed]
    both = scheduler(definition(), definition("ship"))
    more = received(running(), step(name="ship", after=("pay",)), by=both)
    assert isinstance(more.after.step("ship").state, Running)


REFUSED = {
    "for a step that is not there": ({"step": "x"}, {}, Code.REPLY_FOR_UNKNOWN_STEP),
    "of another attempt": ({"attempt": 2}, {}, Code.REPLY_OUTDATED),
    "over another queue": ({}, {"over": "bank-2"}, Code.REPLY_FROM_OTHER_AGENT),
    "to an undo": ({"action": "undo"}, {}, Code.REPLY_NOT_AWAITED),
    "too late": ({}, {"at": LATER}, Code.REPLY_LATE),
}


@pytest.mark.parametrize("why", REFUSED)
def test_any_other_reply_changes_nothing(why):
    """SCH-6: it is recorded once, however often it comes."""
    content, delivery, code = REFUSED[why]
    refused = received(reply=reply(**content), **delivery)
    assert isinstance(refused, RefusedReply)
    assert refused.event.cause.code is code
    assert refused.note_id == received(reply=reply(**content), **delivery).note_id


def test_refused_replies_are_the_same_by_what_they_say():
    """SCH-6: how their JSON is written makes no difference, and a missing reason is no word."""

    def note(**changes):
        return received(at=LATER, reply=reply(**changes)).note_id

    one = note(result={"amount": 10, "reference": "r"})
    assert note(result={"reference": "r", "amount": 10.0}) == one
    assert note(result={"reference": "r", "amount": "10"}) != one
    assert note(outcome="failed", detail="None") != note(outcome="failed")
    assert note(outcome="deferred") != note()
    assert note(outcome="failed", detail="x") != note(outcome="notAttempted", detail="x")
    assert note(instance="one") == note(instance="another")


def test_a_reply_in_the_tolerance_counts():
    """SCH-6, FLT-9."""
    assert only_step(received(at=UP + timedelta(seconds=1))).state == Completed()


def test_only_a_newer_app_can_act_on_a_reply_for_its_workflow():
    """FLT-12; nobody can once the workflow, or the step, is gone."""
    with pytest.raises(NewerWorkflowError):
        received(workflow_version=2)
    newer = scheduler(
        workflows=Workflows(WorkflowDefinition(name="claim", version=2, steps=(KEEPS,)))
    )
    assert received(by=newer).event.cause.code is Code.REPLY_AFTER_RETIREMENT
    assert received(by=scheduler(definition("x"))).event.cause.code is Code.STEP_REMOVED


def test_a_refusal_gives_the_order_up():
    """SCH-8; an order goes on without an optional step (SCH-13)."""
    failed = received(reply=reply("failed", detail="card declined"))
    assert only_step(failed).cause.facts["detail"] == "card declined"
    assert failed.after.state == InError(Outcome.FAILED)
    assert cause_of(failed) == only_step(failed).cause
    optional = received(running(on_failure=OnFailure.CONTINUE), reply=reply("failed"))
    assert isinstance(only_step(optional).state, Skipped)
    assert kinds(optional) == [e.StepFailed, e.OptionalStepFailed, e.OrderProcessed]


def test_the_cause_of_a_refusal_has_the_type_and_the_code_of_the_service():
    """They name the group of the cause; a gateway's word is none of the service."""
    named = {"type": "card_error", "code": "expired"}
    refused = only_step(received(reply=reply("failed", detail="no", **named)))
    assert refused.cause.facts == {"detail": "no", **named}
    gateway = received(reply=reply("failed", detail="no", origin=FailureOrigin.REQUEST, **named))
    assert only_step(gateway).cause.facts == {"detail": "no"}
    assert cause_of(gateway) == only_step(gateway).cause
    silent = only_step(received(reply=reply("failed")))
    assert silent.cause.facts == {"detail": ""}


def test_a_refusal_is_for_good_where_the_service_remembers_it():
    """AGT-3: it is the service's own word."""
    failed = reply("failed", detail="no")
    assert only_step(received(by=REMEMBERS, reply=failed)).effect.refused_for_good
    assert not only_step(received(reply=failed)).effect.refused_for_good
    gateway = reply("failed", detail="404", origin=FailureOrigin.REQUEST, in_doubt=True)
    decided = only_step(received(by=REMEMBERS, reply=gateway))
    assert decided.effect == InDoubt(key=KEY)
    assert (decided.cause.code, decided.state.operator_decides) == (Code.CALL_REJECTED, True)


def test_a_result_that_cannot_be_kept_is_no_refusal():
    """AGT-3: the service did the work, also where it remembers refusals."""
    long = received(by=REMEMBERS, reply=reply(result={"reference": "x" * MAX_KEPT}))
    assert only_step(long).effect == InDoubt(key=KEY)
    assert only_step(long).cause.code is Code.RESULT_TOO_LONG
    assert cause_of(long) == only_step(long).cause


@pytest.mark.parametrize(
    ("character", "units"), [("x", 1), ("é", 1), ("茶", 1), ("\u2028", 1), ("🍵", 2)]
)
def test_a_result_is_measured_in_the_unit_of_the_row_that_keeps_it(character, units):
    """Bugs 32: not as ASCII, in which a Chinese character takes six."""
    fit = (MAX_KEPT - len('{"reference":""}')) // units
    for count, effect in ((fit, False), (fit + 1, True)):
        result = {"reference": character * count}
        assert (length_of(result) > MAX_KEPT) == effect
        step = only_step(received(by=REMEMBERS, reply=reply(result=result)))
        assert isinstance(step.effect, InDoubt) == effect


def test_accepted_work_is_requested_again():
    """AGT-11: until the time that the agent declares."""
    accepted = reply("deferred", retry_after=3600.0)
    deferred = received(by=REMEMBERS, reply=accepted)
    assert only_step(deferred).state == Deferred(LATER)
    assert only_step(deferred).answer_by == LATER
    assert deferred.after.state == Pending()
    assert kinds(deferred) == [e.AttemptDeferred, e.Requeued]
    assert not only_step(deferred).effect.unanswered
    accepted = reply("deferred", retry_after=3600.0, in_doubt=True)
    assert only_step(received(by=REMEMBERS, reply=accepted)).effect.unanswered


def test_a_request_that_was_not_made_comes_again():
    """AGT-8: after the pause that the agent names, but for that of one instance's circuit."""
    waits = received(reply=reply("notAttempted", detail="busy", retry_after=3600.0))
    assert only_step(waits).state == BackingOff(LATER)
    assert kinds(waits) == [e.NotAttempted, e.Requeued]
    circuit = reply(
        "notAttempted", detail="open", retry_after=3600.0, reason=NotAttemptedReason.CIRCUIT_OPEN
    )
    assert only_step(received(reply=circuit)).not_before < LATER


def test_a_reply_that_no_call_was_made_may_say_no_reason():
    """AGT-8: the fact is there in any case, as that of a refusal is."""
    (event,) = received(reply=reply("notAttempted")).events[:1]
    assert event.cause == Cause(Code.NOT_ATTEMPTED, {"detail": ""})


def test_an_order_on_hold_waits_for_its_release():
    """Engine 28: that is no lack of capacity."""
    held = received(running(), step(name="b"), hold=Hold("grace", "look", NOW))
    assert held.events[-1] == e.Requeued(held_by="grace")
    assert held.after.state == Pending()


def test_a_step_that_ran_when_its_order_turned_back_is_undone():
    """UND-1: whatever the reply says; one without an undo stays as it ended."""
    assert isinstance(only_step(received(direction=Direction.UNDO)).state, Undoing)
    kept = received(running(undoable=False), direction=Direction.UNDO, reply=reply("failed"))
    assert isinstance(only_step(kept).state, Failed)
    assert kept.after.state == InError(Outcome.UNDONE)
    optional = running(undoable=False, on_failure=OnFailure.CONTINUE)
    back = received(optional, direction=Direction.UNDO, reply=reply("failed"))
    assert kinds(back) == [e.StepFailed, e.OrderEnded]


def test_a_reply_to_an_undo_ends_it():
    """UND-5: a refusal is never for good here, for nothing is done again."""
    undoing = start(step(UndoPending(), effect=Done(key=KEY)), KEY, UP)
    back = {"by": REMEMBERS, "direction": Direction.UNDO}
    undone = received(undoing, reply=reply(action="undo", attempt=2), **back)
    assert isinstance(only_step(undone).state, Undone)
    assert undone.after.state == InError(Outcome.UNDONE)
    refused = received(undoing, reply=reply("failed", action="undo", attempt=2), **back)
    assert only_step(refused).effect == Done(key=KEY)
    assert refused.after.state == InError(Outcome.UNDO_INCOMPLETE)


def test_a_reply_to_a_pending_order_starts_nothing():
    """Another step timed out: the next claim goes on."""
    both = received(running(), step(name="b"), state=Pending())
    assert (both.after.state, both.after.step("b").state) == (Pending(), Waiting())
    assert isinstance(both.after.step("pay").effect, Done)
