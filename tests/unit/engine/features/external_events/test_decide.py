"""The decision about an external event (ANS)."""

from dataclasses import replace

import pytest

from engine.domain import events as e
from engine.domain.causes import MAX_LENGTH, Cause, Code
from engine.domain.effects import Answered, Done, InDoubt, NotDone
from engine.domain.orders import InError, Pending, Processed, Processing
from engine.domain.states import (
    AwaitingExternalEvent,
    Completed,
    ConditionPending,
    Deferred,
    Failed,
    RequestCancelled,
    Running,
    Skipped,
    SkipReason,
    UndoPending,
)
from engine.domain.statuses import Direction, Outcome
from engine.domain.submitted_order import ERASED, OnFailure
from engine.features.external_events.decide import (
    EventNotAcceptedError,
    ExternalEvent,
    record,
    why_closed,
)
from tests.support.engine_records import (
    DECLINED,
    HOUR,
    KEY,
    NOW,
    TIMEOUT,
    external,
    in_doubt,
    order,
    running,
    step,
)
from tests.support.engine_scheduling import kinds, only_step

UP = NOW + TIMEOUT
BY = Processing("scheduler-1")
RESULT = {"decision": "yes"}
YES = ExternalEvent(step="approve", result=RESULT)
NO = ExternalEvent(step="approve", refusal="too dear")
AWAITED = external(AwaitingExternalEvent(UP))
LATE = in_doubt(Running(UP), name="approve")
"""A step that runs at a service, which may answer over its callback URL."""


def recorded(*steps, event=YES, **changes):
    return record(order(*steps, **changes), event, NOW)


def refusal(*steps, event=YES, **changes):
    with pytest.raises(EventNotAcceptedError) as error:
        recorded(*steps, event=event, **changes)
    return error.value.cause.code


def test_an_event_completes_its_step_and_the_order_goes_on():
    """ANS-1, ANS-2: also before its turn."""
    for before in (AWAITED, external()):
        next_version = recorded(before, state=BY)
        assert only_step(next_version).effect == Answered(result=RESULT)
        assert next_version.after.state == Pending()
        assert kinds(next_version) == [e.ExternalEventRecorded]
        assert len(next_version.messages) == 1


def test_an_order_waits_for_the_others_of_its_steps():
    """Nothing is to be claimed while an agent has a step, and none is ready."""
    beside = running("pay")
    assert recorded(AWAITED, beside, state=BY).after.state == BY
    ready = recorded(AWAITED, beside, step(name="ship", after=("approve",)), state=BY)
    assert ready.after.state == Pending()


def test_the_same_event_changes_nothing_a_second_time():
    """ANS-3: also after an erasure, or once the step was undone or failed."""
    done = external(Completed(), effect=Answered(result=RESULT))
    assert recorded(done) is None
    erased = {"decision": ERASED}
    personal = external(Completed(), effect=Answered(result=erased), personal=("decision",))
    assert recorded(personal) is None
    failed = only_step(recorded(AWAITED, event=NO))
    assert recorded(failed, event=NO, state=InError(Outcome.FAILED)) is None


def test_sameness_is_what_an_event_says_and_not_how_it_is_written():
    """ANS-3: a longer refusal than is kept, and a result that Python alone calls equal, are others."""
    done = external(Completed(), effect=Answered(result={"said": True, "sum": 10}))
    again = ExternalEvent(step="approve", result={"sum": 10.0, "said": True})
    assert recorded(done, event=again) is None
    other = replace(again, result={"sum": 10, "said": 1})
    assert refusal(done, event=other) is Code.EVENT_AFTER_COMPLETION
    long = "too dear for us".ljust(MAX_LENGTH)
    failed = only_step(recorded(AWAITED, event=replace(NO, refusal=f"{long} this year")))
    ended = {"state": InError(Outcome.FAILED)}
    assert recorded(failed, event=replace(NO, refusal=f"{long} this year"), **ended) is None
    for text in (long, f"{long} next year"):
        other = replace(NO, refusal=text)
        assert refusal(failed, event=other, **ended) is Code.EVENT_AFTER_FAILURE


def test_a_refusal_that_an_agent_has_replied_is_known_and_a_gateway_s_is_not():
    """ANS-3: the service's own word is the same over its callback URL."""
    facts = {"detail": NO.refusal}
    replied = step(Failed(Cause(Code.REFUSED, facts)), "approve", effect=NotDone(key=KEY))
    assert recorded(replied, event=NO) is None
    rejected = step(Failed(Cause(Code.CALL_REJECTED, facts)), "approve", effect=NotDone(key=KEY))
    assert refusal(rejected, event=NO) is Code.EVENT_AFTER_FAILURE


def test_another_event_is_refused_once_the_step_has_come_to_a_result():
    """ANS-3."""
    other = Answered(result={"decision": "no"})
    assert refusal(external(Completed(), effect=other)) is Code.EVENT_AFTER_COMPLETION
    failed = external(Failed(DECLINED))
    assert refusal(failed) is Code.EVENT_AFTER_FAILURE
    assert refusal(failed, event=NO) is Code.EVENT_AFTER_FAILURE
    assert refusal(external(Skipped(SkipReason.OPERATOR))) is Code.EVENT_AFTER_SKIP
    assert refusal(step()) is Code.EVENT_FOR_UNKNOWN_STEP


def test_no_event_of_a_person_counts_once_the_order_turns_back_or_ends():
    """ANS-4, SCH-12."""
    cancelled = external(RequestCancelled())
    assert refusal(cancelled, direction=Direction.UNDO) is Code.EVENT_DURING_UNDO
    assert refusal(cancelled, state=InError(Outcome.FAILED)) is Code.EVENT_AFTER_END
    assert refusal(cancelled, state=Processed()) is Code.EVENT_AFTER_END
    ended = order(cancelled, state=InError(Outcome.FAILED), cause=DECLINED)
    facts = {"state": "Error", "why": DECLINED.as_json()}
    assert why_closed(ended, cancelled) == Cause(Code.EVENT_AFTER_END, facts)
    back = replace(ended, direction=Direction.UNDO)
    why = {"why": DECLINED.as_json()}
    assert why_closed(back, cancelled) == Cause(Code.EVENT_DURING_UNDO, why)


def test_a_refusal_is_a_failure_by_the_rule_of_the_step():
    """ANS-3: it ends the order, undoes it, or lets it go on (SCH-13)."""
    ended = recorded(AWAITED, event=NO, state=BY)
    assert ended.after.state == InError(Outcome.FAILED)
    cause = only_step(ended).cause
    assert cause.facts["detail"] == "too dear"
    assert ended.events[0] == e.StepFailed(step="approve", attempt=0, cause=cause)
    rules = {"on_failure": OnFailure.CONTINUE}
    optional = recorded(external(AwaitingExternalEvent(UP), **rules), event=NO, state=BY)
    assert optional.after.state == Pending()
    assert kinds(optional) == [e.StepFailed, e.OptionalStepFailed]
    beside = recorded(AWAITED, running("pay"), event=NO, state=BY)
    assert beside.after.state == BY


def test_a_refusal_of_a_step_whose_condition_is_pending_is_kept():
    """ANS-3, engine 29 h: the step may not be needed; another event is refused."""
    later = external(ConditionPending(), after=("pay",))
    early = recorded(running("pay"), later, event=NO, state=BY)
    kept = early.after.step("approve")
    assert isinstance(kept.state, ConditionPending)
    assert kept.cause.facts["detail"] == "too dear"
    assert (early.after.state, kinds(early)) == (BY, [e.EarlyRefusalRecorded])
    assert early.events[0].cause == kept.cause
    assert recorded(kept, event=NO) is None
    assert refusal(kept) is Code.EVENT_AFTER_FAILURE
    at_its_turn = recorded(external(ConditionPending()), event=NO, state=BY)
    assert (at_its_turn.after.state, len(at_its_turn.messages)) == (Pending(), 1)


def test_a_service_refuses_over_its_callback_url_what_it_had_accepted():
    """AGT-11: a call that asks again meanwhile may do the work, unless it is refused for good."""
    owes = InDoubt(key=KEY, unanswered=False, answer_by=NOW + HOUR)
    running = step(Running(UP), "approve", effect=owes)
    assert only_step(recorded(running, event=NO)).effect == InDoubt(key=KEY)
    waits = step(Deferred(UP), "approve", effect=owes)
    assert only_step(recorded(waits, event=NO)).effect == NotDone(key=KEY)
    for_good = replace(NO, for_good=True)
    refused = only_step(recorded(running, event=for_good)).effect
    assert refused == NotDone(key=KEY, refused_for_good=True)


def test_the_answer_of_a_service_counts_while_the_order_turns_back():
    """Engine 8, UND-3: as an agent's reply does; its result is kept for the undo."""
    back = recorded(LATE, direction=Direction.UNDO, state=BY)
    assert isinstance(only_step(back).state, UndoPending)
    assert only_step(back).effect == Done(key=KEY, result=RESULT)
    assert back.after.state == Pending()
    refused = recorded(LATE, event=NO, direction=Direction.UNDO, state=BY)
    assert isinstance(only_step(refused).state, UndoPending)
    assert refused.after.direction is Direction.UNDO


def test_no_order_goes_on_without_a_step_while_it_is_undone():
    """SCH-13: the history says so of no refusal, whoever brings it."""
    optional = in_doubt(Running(UP), name="approve", on_failure=OnFailure.CONTINUE)
    assert kinds(recorded(optional, event=NO, direction=Direction.UNDO, state=BY)) == [e.StepFailed]
    assert e.OptionalStepFailed in kinds(recorded(optional, event=NO, state=BY))
