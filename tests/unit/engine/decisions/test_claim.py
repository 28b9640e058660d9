"""The scheduler's decision about an order that waits (SCH-1 to SCH-3)."""

from dataclasses import replace

import pytest

from engine.decisions.claim import claim
from engine.decisions.requests import (
    MAX_BYTES,
    BrokenRequestError,
    RequestMaker,
    idempotency_key,
)
from engine.decisions.transitions import NotClaimed
from engine.declarations.workflow import WorkflowDefinition, Workflows
from engine.domain import events as e
from engine.domain.causes import Cause, Code, step_failed
from engine.domain.deadlines import Deadline, WhenLate
from engine.domain.derive import changed
from engine.domain.effects import Answered, Done, InDoubt, NotDone, NothingSent, UndoInDoubt
from engine.domain.errors import InputFault
from engine.domain.messages import AgentRequest, OrderReady, decode
from engine.domain.orders import Hold, InError, Pending, Processed, Processing
from engine.domain.states import (
    AwaitingExternalEvent,
    BackingOff,
    Completed,
    ConditionPending,
    CoolingDown,
    Deferred,
    Failed,
    RequestCancelled,
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
from engine.domain.statuses import Direction, NotClaimable, Outcome
from engine.domain.steps import StepKind
from engine.domain.submitted_order import OnFailure
from engine.features.external_events.callback_urls import CallbackUrls
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
from tests.support.engine_scheduling import (
    CAPACITY,
    TOLERANCE,
    agent,
    definition,
    kinds,
    only_step,
    scheduler,
)

LATER = NOW + HOUR
FIRST = "first"
URLS = CallbackUrls(address="https://app", new_token=lambda: FIRST)


def broken(_order, _results):
    raise KeyError("claimNumber")


def claimed(*steps, by=None, now=NOW, capacity=CAPACITY, **changes):
    it = order(*steps, **changes)
    return claim(changed(it, it, NOW), now, capacity, by or scheduler())


def undone(*steps, **more):
    return claimed(*steps, direction=Direction.UNDO, **more)


def test_a_claim_starts_the_ready_steps_in_one_write():
    """SCH-2, SCH-3: the request carries the complete-by time that is recorded."""
    next_version = claimed(step())
    assert next_version.after.state == Processing("scheduler-1")
    assert next_version.after.derived.locked_by == "scheduler-1"
    assert only_step(next_version).state == Running(NOW + TIMEOUT)
    assert only_step(next_version).key == KEY
    assert kinds(next_version) == [e.Claimed, e.StepStarted]
    (message,) = next_version.messages
    request = decode(AgentRequest, message.body)
    assert (request.complete_by, request.attempt) == (NOW + TIMEOUT, 1)
    assert request.idempotency_key == f"{next_version.after.order_id}:pay"
    assert message.queue == "bank-requests"


def test_what_cannot_be_claimed_is_left():
    """SCH-1: nothing is written."""
    assert claimed(step(), state=Processed()) == NotClaimed(NotClaimable.ENDED)
    assert claimed(step(), not_before=LATER) == NotClaimed(NotClaimable.NOT_YET)
    assert claimed(step(), capacity={}) == NotClaimed(NotClaimable.NO_CAPACITY)
    doubtful = in_doubt(Waiting(TIMED_OUT))
    elsewhere = claimed(doubtful, capacity={"bank": ("other-bank",)})
    assert elsewhere == NotClaimed(NotClaimable.NO_CAPACITY_AT_ITS_OWN)


def test_the_step_that_waits_longest_says_why_nothing_starts():
    """SCH-1: an agent of its capability has capacity, but not one that leads to its provider."""
    by = scheduler(definition(), definition("ship", capability="carrier"))
    longer = in_doubt(BackingOff(NOW - HOUR, NOT_BEGUN))
    left = claimed(
        step(name="ship", capability="carrier"), longer, by=by, capacity={"bank": ("other-bank",)}
    )
    assert left == NotClaimed(NotClaimable.NO_CAPACITY_AT_ITS_OWN)


def test_a_step_of_an_agent_without_capacity_does_not_hold_up_another():
    """Engine 7: the order is claimed for the step that can start, and keeps its place for the other."""
    by = scheduler(definition(), definition("ship", capability="carrier"))
    two = (step(), step(name="ship", capability="carrier"))
    next_version = claimed(*two, by=by, capacity={"carrier": ("carrier",)})
    assert isinstance(next_version.after.step("ship").state, Running)
    keys = [item.key for item in next_version.after.derived.work_items]
    assert len([key for key in keys if "|bank|" in key]) == 1


def test_a_step_that_was_tried_stays_with_the_provider_that_has_its_key():
    """AGT-3: after an attempt without a result another agent of that provider is preferred."""
    failed = in_doubt(Waiting(TIMED_OUT))
    assert only_step(claimed(failed)).agent == "bank-2"
    assert only_step(claimed(failed, capacity={"bank": ("bank",)})).agent == "bank"
    second = replace(KEY, agent="bank-2")
    assert only_step(undone(step(UndoPending(), effect=Done(key=second)))).agent == "bank-2"
    owes = step(Deferred(None), effect=InDoubt(key=second, answer_by=LATER))
    assert only_step(claimed(owes)).agent == "bank-2"
    free = step(effect=NotDone(key=replace(second, provider=None)))
    assert only_step(claimed(free, capacity={"bank": ("other-bank",)})).agent == "other-bank"


@pytest.mark.parametrize("effect", [NotDone, InDoubt])
def test_a_step_whose_provider_is_gone_goes_nowhere_else(effect):
    """AGT-3 (engine 1): an operator finds out there, whatever the rule of the step says.

    For a while it is left to a newer app, which may have an agent that leads there (FLT-12).
    """
    gone = replace(KEY, provider="former")
    left = step(effect=effect(key=gone), on_failure=OnFailure.UNDO)
    assert claimed(left) == NotClaimed(NotClaimable.UNKNOWN_PROVIDER)
    next_version = claimed(left, now=LATER + TOLERANCE)
    failed = only_step(next_version)
    assert (failed.cause.code, failed.state.operator_decides) == (Code.PROVIDER_GONE, True)
    assert failed.effect == InDoubt(key=gone)
    assert next_version.after.state == InError(Outcome.FAILED)
    assert next_version.messages == ()


def test_an_agent_of_the_provider_for_another_capability_leads_to_no_step():
    """AGT-3: it does not know how to ask about this one."""
    agents = {offer.name: offer for offer in (agent("other-bank"), agent("till", "till"))}
    by = scheduler(providers={"other-bank": "other", "till": "psp"}, agents=agents)
    left = step(effect=InDoubt(key=replace(KEY, provider="psp")))
    failed = only_step(claimed(left, by=by, now=LATER + TOLERANCE))
    assert failed.cause.code is Code.PROVIDER_GONE


def test_a_scheduler_that_takes_over_claims_no_order_a_second_time():
    """ANS-1: while only an external event is awaited, the order is processed, and nobody handles it."""
    free = claimed(external(AwaitingExternalEvent(LATER)), step(), state=Processing("scheduler-2"))
    assert kinds(free) == [e.StepStarted]


def test_a_step_whose_provider_is_gone_is_not_evaluated_again():
    """AGT-3, SCH-14: its condition was met; a restored step may be in doubt before its turn."""
    gone = InDoubt(key=replace(KEY, provider="former"))
    restored = step(ConditionPending(), effect=gone)
    by = scheduler(definition(condition=is_small))
    failed = only_step(claimed(restored, by=by, now=LATER + TOLERANCE))
    assert failed.cause.code is Code.PROVIDER_GONE
    assert not failed.state.condition_pending


def test_an_undo_whose_provider_is_gone_is_undone_nowhere_else():
    """AGT-3 (engine 1): the effect may stand."""
    gone = replace(KEY, provider="former")
    back = undone(step(UndoPending(), effect=Done(key=gone)), now=LATER + TOLERANCE)
    assert isinstance(only_step(back).state, UndoFailed)
    assert only_step(back).cause.facts["is_undo"]
    assert back.after.state == InError(Outcome.UNDO_INCOMPLETE)


def test_no_request_goes_out_for_a_key_that_may_be_forgotten():
    """AGT-12 (engine 4): an operator finds out there."""
    soon = replace(KEY, known_until=NOW + TIMEOUT)
    failed = only_step(claimed(step(Waiting(TIMED_OUT), effect=InDoubt(key=soon))))
    assert (failed.cause.code, failed.state.operator_decides) == (Code.KEY_FORGOTTEN, True)
    assert failed.cause.facts["known_until"] == soon.known_until.isoformat()
    assert not failed.cause.facts["is_undo"]
    assert failed.counts.attempts == 1
    back = step(UndoPending(), effect=UndoInDoubt(key=soon))
    assert only_step(undone(back)).cause.facts["is_undo"]


def test_the_key_of_an_attempt_counts_for_as_long_as_its_service_says():
    """AGT-12, UND-2."""
    by = scheduler(agents={"bank": agent("bank", keys_last=HOUR)})
    started = only_step(claimed(step(late_effect_window=HOUR), by=by))
    assert started.key.known_until == LATER
    assert started.key.effects_final_at == NOW + TIMEOUT + TOLERANCE + HOUR


def test_a_step_whose_request_cannot_be_made_fails_by_its_rule():
    """SCH-8: nothing of the attempt is recorded."""
    failed = only_step(claimed(step(), by=scheduler(definition(request=broken))))
    assert (failed.cause.code, failed.counts.attempts) == (Code.REQUEST_FAILED, 0)
    assert failed.cause.facts["error"] == "KeyError 'claimNumber'"
    assert not failed.state.operator_decides
    assert only_step(claimed(step(name="gone"))).cause.code is Code.STEP_REMOVED
    large = scheduler(definition(request=lambda *_: {"a": "x" * 200_000}))
    assert only_step(claimed(step(), by=large)).cause.code is Code.REQUEST_FAILED


def test_no_personal_value_is_in_the_cause_of_a_broken_request():
    """ANS-5."""

    def names_a_person(order, _results):
        raise KeyError(order.payload["customer"]["email"])

    it = order(step())
    payload = {"customer": {"name": "Ada", "email": "ada@example.com"}, "items": []}
    it = replace(it, submitted=replace(it.submitted, payload=payload))
    by = scheduler(definition(request=names_a_person))
    next_version = claim(changed(it, it, NOW), NOW, CAPACITY, by)
    assert "ada@" not in only_step(next_version).cause.facts["error"]


def is_large(_order, _results):
    return False


def is_small(_order, _results):
    return True


def tomorrow(_order, _results):
    return LATER


def test_conditions_are_evaluated_when_the_turn_of_a_step_comes():
    """SCH-14, SCH-15: one that is skipped lets others follow in the same claim."""
    by = scheduler(
        definition("a", condition=is_large),
        definition("b", after=("a",), start_at=tomorrow),
        definition("c", after=("b",), condition=is_large),
    )
    pending = [
        step(ConditionPending(), name, after=after)
        for name, after in (("a", ()), ("b", ("a",)), ("c", ("b",)))
    ]
    next_version = claimed(*pending, by=by)
    first, *others = (one.state for one in next_version.after.steps)
    assert first.reason is SkipReason.CONDITION
    assert others == [Scheduled(LATER), ConditionPending()]
    assert kinds(next_version) == [e.Claimed, e.SkippedByCondition, e.StepScheduled, e.Requeued]
    assert next_version.events[-1] == e.Requeued(until=LATER, is_chosen=True)


def test_the_conditions_of_steps_that_are_not_ready_or_were_removed_hold_up_no_other():
    """SCH-14: a step that the workflow has no more fails when its request is to be made."""
    by = scheduler(
        definition("a"),
        definition("b", after=("a",), condition=is_large),
        definition("c", condition=is_large),
    )
    later = step(ConditionPending(), "b", after=("a",))
    next_version = claimed(step(name="a"), later, step(ConditionPending(), "c"), by=by)
    assert next_version.after.step("b").state == ConditionPending()
    assert next_version.after.step("c").state.reason is SkipReason.CONDITION
    gone = claimed(step(ConditionPending(), "gone"))
    assert only_step(gone).cause.code is Code.STEP_REMOVED


def test_a_condition_that_is_met_is_recorded_with_the_start_alone():
    """A claim that starts nothing writes nothing."""
    by, pending = scheduler(definition(condition=is_small)), step(ConditionPending())
    assert isinstance(only_step(claimed(pending, by=by)).state, Running)
    assert claimed(pending, by=by, capacity={}) == NotClaimed(NotClaimable.NO_CAPACITY)
    at_once = scheduler(definition(start_at=lambda *_: None))
    assert isinstance(only_step(claimed(pending, by=at_once)).state, Running)


@pytest.mark.parametrize("returned", [None, "yes", 1])
def test_a_condition_that_is_no_answer_fails_its_step(returned):
    """SCH-14: a resubmit evaluates it again."""

    def is_odd(_order, _results):
        return returned

    failed = only_step(
        claimed(step(ConditionPending()), by=scheduler(definition(condition=is_odd)))
    )
    assert failed.cause.code is Code.CONDITION_FAILED
    assert failed.cause.facts["function"] == "condition is_odd"
    assert failed.state.condition_pending


@pytest.mark.parametrize(
    "returned", ["soon", NOW.replace(tzinfo=None), NOW.replace(year=1999), NOW.replace(year=2100)]
)
def test_a_start_time_that_is_no_time_fails_its_step(returned):
    """SCH-15: tables and calendars hold the others."""
    by = scheduler(definition(start_at=lambda *_: returned))
    assert only_step(claimed(step(ConditionPending()), by=by)).cause.code is Code.CONDITION_FAILED


APPROVE = definition(
    "approve", kind=StepKind.EXTERNAL, capability="outside", compensation=None, timeout=HOUR
)


def test_an_early_refusal_counts_once_the_condition_is_met():
    """ANS-3, SCH-14, engine 29 h: whatever the start time is; an optional step is skipped."""
    early = external(ConditionPending(DECLINED))
    needed = scheduler(replace(APPROVE, condition=is_small, start_at=tomorrow))
    refused = claimed(early, by=needed)
    assert only_step(refused).state == Failed(DECLINED, condition_pending=True)
    assert refused.after.state == InError(Outcome.FAILED)
    assert kinds(refused) == [e.Claimed, e.StepFailed, e.OrderEnded]
    unneeded = claimed(early, by=scheduler(replace(APPROVE, condition=is_large)))
    assert only_step(unneeded).state.reason is SkipReason.CONDITION
    optional = external(ConditionPending(DECLINED), on_failure=OnFailure.CONTINUE)
    skipped = claimed(optional, by=needed)
    assert only_step(skipped).state == Skipped(SkipReason.FAILED, DECLINED)
    assert skipped.after.state == Processed()


def test_an_external_event_is_awaited_without_an_agent():
    """ANS-1: with a callback URL of its own; nobody handles the order."""
    next_version = claimed(external(), by=scheduler(APPROVE, callbacks=URLS), capacity={})
    awaited = only_step(next_version)
    assert (awaited.state, awaited.callback_token) == (AwaitingExternalEvent(NOW + TIMEOUT), FIRST)
    assert (next_version.messages, next_version.after.derived.locked_by) == ((), None)
    assert next_version.events[-1].generation == 0
    asks = scheduler(replace(APPROVE, request=broken))
    assert only_step(claimed(external(), by=asks)).cause.code is Code.REQUEST_FAILED


def test_a_request_carries_the_callback_url_of_its_step_and_no_undo_does():
    """ANS-6, UND-3."""
    by = scheduler(callbacks=URLS)
    (message,) = claimed(step(), by=by).messages
    assert decode(AgentRequest, message.body).callback_url.endswith(f"/pay?token={FIRST}")
    done = step(UndoPending(), effect=Done(key=KEY, result={"r": 1}))
    (undo,) = undone(done, by=by).messages
    request = decode(AgentRequest, undo.body)
    assert (request.operation, request.callback_url) == ("refund", None)
    assert request.content["result"] == {"r": 1}
    assert URLS.of("b00-1", step()) is None


def test_an_order_ends_when_no_step_is_left():
    """SCH-5, UND-5."""
    done = claimed(step(Completed(), effect=Done(key=KEY)))
    assert (done.after.state, kinds(done)) == (Processed(), [e.Claimed, e.OrderProcessed])
    assert claimed(step(Skipped(SkipReason.OPERATOR))).after.state == Processed()
    back = undone(step(Undone()), cause=DECLINED)
    assert back.after.state == InError(Outcome.UNDONE)
    assert back.events[-1] == e.OrderEnded(outcome=Outcome.UNDONE, cause=DECLINED)
    stuck = undone(in_doubt(UndoFailed(TIMED_OUT)), cause=DECLINED)
    assert stuck.after.state == InError(Outcome.UNDO_INCOMPLETE)
    assert stuck.after.cause == TIMED_OUT
    assert stuck.events[-1].step == "pay"


def test_a_pending_order_with_a_failed_step_is_given_up():
    """SCH-12: once no agent has a step."""
    failed = step(Failed(DECLINED), effect=NotDone(key=KEY))
    assert claimed(failed).after.state == InError(Outcome.FAILED)


def test_an_undo_goes_back_step_by_step():
    """UND-1."""
    first = step(UndoPending(), "a", effect=Done(key=KEY))
    second = step(UndoPending(), "b", effect=Done(key=KEY), after=("a",))
    by = scheduler(definition("a"), definition("b", after=("a",)))
    after = undone(first, second, by=by).after
    assert isinstance(after.step("b").state, Undoing)
    assert isinstance(after.step("a").state, UndoPending)


def test_an_order_on_an_unknown_workflow_waits_for_a_newer_app():
    """FLT-12: for a while."""
    assert claimed(step(), workflow_version=2) == NotClaimed(NotClaimable.UNKNOWN_WORKFLOW)
    late = claimed(step(), now=LATER + TOLERANCE, workflow_version=2)
    assert late.after.cause.code is Code.WORKFLOW_RETIRED


def test_an_order_on_a_retired_workflow_is_ended():
    """FLT-12: once no agent has a step of it (SCH-12)."""
    by = scheduler(
        workflows=Workflows(WorkflowDefinition(name="claim", version=3, steps=(definition(),)))
    )
    assert claimed(step(), by=by).after.state == InError(Outcome.FAILED)
    back = undone(step(UndoPending(), effect=Done(key=KEY)), by=by)
    assert back.after.state == InError(Outcome.UNDO_INCOMPLETE)
    runs = step(Running(LATER), "a", effect=NotDone(key=KEY))
    assert claimed(runs, step(), by=by) == NotClaimed(NotClaimable.RUNS)


def test_the_clock_of_the_last_change_may_be_ahead_by_the_tolerance():
    """FLT-9: the claim never comes before the change; farther ahead it counts for no more."""
    it = order(step())
    near = changed(it, it, NOW + TOLERANCE / 2)
    assert claim(near, NOW, CAPACITY, scheduler()).after.updated_at == NOW + TOLERANCE / 2
    far = changed(it, it, LATER)
    assert claim(far, NOW, CAPACITY, scheduler()).after.updated_at == NOW + TOLERANCE


def test_a_definition_that_changed_under_an_order_is_noted_once():
    """The order goes on with the new one."""
    next_version = claimed(step(fingerprint="former"))
    now = only_step(next_version).rules.fingerprint
    assert now == definition().fingerprint
    noted = e.WorkflowChanged(workflow="claim", version=1, steps=f"pay (now {now})")
    assert next_version.events[-1] == noted
    assert e.WorkflowChanged not in kinds(claimed(step(fingerprint=now)))
    gone = claimed(step(fingerprint=now), step(name="x", fingerprint="f"))
    assert gone.events[-1].steps == "x (gone)"
    assert gone.after.step("x").rules.fingerprint == ""


def test_a_refusal_from_outside_counts_when_the_turn_of_its_step_comes():
    """ANS-3: it is the cause of the step, and of its failure in the history."""
    by = scheduler(definition(condition=lambda _order, _results: True))
    next_version = claimed(step(ConditionPending(DECLINED)), by=by)
    assert only_step(next_version).cause == DECLINED
    assert e.StepFailed(step="pay", attempt=0, cause=DECLINED) in next_version.events


def test_a_request_that_is_too_long_for_a_message_is_a_fault_with_its_length():
    """SCH-8: and the most that a message carries."""
    long = definition(request=lambda _order, _results: {"text": "x" * MAX_BYTES})
    workflow = WorkflowDefinition(name="claim", version=1, steps=(long,))
    maker = RequestMaker(workflow=workflow, personal=tuple, callbacks=None, now=NOW)
    with pytest.raises(BrokenRequestError) as caught:
        maker.request_of(order(running()), running())
    (fault,) = caught.value.__cause__.faults
    length = fault.facts["length"]
    assert fault == InputFault("", "message-too-long", {"length": length, "limit": MAX_BYTES})
    assert MAX_BYTES < length < MAX_BYTES + 1000


def test_a_pausing_order_is_woken_at_the_end_of_its_pause():
    """SCH-16: also while another step runs."""
    by = scheduler(definition(), definition("b"))
    next_version = claimed(step(), in_doubt(BackingOff(LATER, NOT_BEGUN), name="b"), by=by)
    assert isinstance(next_version.after.step("pay").state, Running)
    assert next_version.messages[-1].not_before == LATER
    assert decode(OrderReady, next_version.messages[-1].body).steps == ()


def test_the_key_of_a_step_says_its_generation_from_the_second_on():
    """AGT-3: before the first request there is none to say."""
    known = step(effect=NotDone(key=KEY))
    renewed = step(effect=NotDone(key=replace(KEY, generation=1)))
    keys = [idempotency_key("b00-1", one) for one in (step(), known, renewed)]
    assert keys == ["b00-1:pay", "b00-1:pay", "b00-1:pay:1"]


ASKS = in_doubt(Failed(TIMED_OUT), on_failure=OnFailure.UNDO)
"""A step that a supervisor has given up, and whose rule asks for the undo (SUP-6)."""


def test_a_claim_undoes_an_order_whose_failed_step_asks_for_that():
    """UND-1, SCH-12: an external event that is still awaited does not hold it up."""
    awaited = external(AwaitingExternalEvent(LATER))
    next_version = claimed(ASKS, awaited)
    after = next_version.after
    assert (after.state, after.direction) == (Pending(), Direction.UNDO)
    assert after.cause == step_failed("pay", TIMED_OUT)
    assert after.step("pay").state == UndoPending(Waiting())
    assert after.step("approve").state == RequestCancelled()
    assert kinds(next_version) == [e.Claimed, e.ExternalRequestCancelled, e.UndoRequested]
    assert len(next_version.messages) == 1


def test_a_claim_ends_an_order_that_has_passed_its_pivot_since_a_step_failed():
    """UND-6: an external event that has come meanwhile may be the point of no return."""
    passed = external(Completed(), effect=Answered(result={}), pivot=True)
    next_version = claimed(ASKS, passed)
    assert next_version.after.state == InError(Outcome.FAILED)
    assert next_version.after.step("pay") == ASKS


def test_no_claim_undoes_an_order_on_which_an_agent_works_or_that_is_on_hold():
    """SCH-12, OPR-7."""
    runs = in_doubt(Running(LATER), name="b")
    assert claimed(ASKS, runs) == NotClaimed(NotClaimable.RUNS)
    assert claimed(ASKS, hold=Hold("grace", "look", NOW)) == NotClaimed(NotClaimable.HELD)


# Silent agents (SUP-9)

LONG_AGO = NOW - HOUR - TOLERANCE
AT_THE_BANK = ("bank", "bank-2", "other-bank")
SILENT = dict.fromkeys(AT_THE_BANK, LONG_AGO)


def waited(*steps, silent=SILENT, since=LONG_AGO, capacity=None, by=None, **changes):
    """The claim of an order that has waited since then, while agents are silent."""
    it = order(*steps, ready_since=since, **changes)
    return claim(changed(it, it, NOW), NOW, capacity or {}, by or scheduler(), silent)


def no_agent(attempts=0):
    return Cause(Code.NO_AGENT_BEGAN, {"step": "pay", "agent": "bank", "attempts": attempts})


@pytest.mark.parametrize(
    ("rules", "state", "outcome"),
    [
        ({}, Failed(no_agent()), Outcome.FAILED),
        (
            {"on_failure": OnFailure.UNDO},
            Failed(no_agent(), operator_decides=True),
            Outcome.FAILED,
        ),
        ({"on_failure": OnFailure.CONTINUE}, Skipped(SkipReason.FAILED, no_agent()), None),
        (
            {"max_cooldowns": 1, "cooldown": HOUR},
            CoolingDown(LATER, no_agent(), LATER + TIMEOUT),
            None,
        ),
    ],
)
def test_a_step_whose_agents_are_silent_for_too_long_is_given_up_by_its_rule(rules, state, outcome):
    """The undo alone does not apply: a dead agent must not undo thousands of orders."""
    next_version = waited(step(**rules))
    assert only_step(next_version).state == state
    assert next_version.after.outcome is outcome
    assert [message for message in next_version.messages if "bank" in message.queue] == []


def test_a_step_that_was_never_sent_is_in_no_doubt_and_one_in_doubt_stays_so():
    """An operator may have the first one done again by a resubmit, whatever the service knows."""
    assert only_step(waited(step())).effect == NothingSent()
    assert only_step(waited(in_doubt(Waiting(NOT_BEGUN)))).effect == InDoubt(key=KEY)


WAITS = {
    "the order has waited for less": {"since": LONG_AGO + TOLERANCE},
    "an agent is silent for less": {"silent": SILENT | {"bank-2": NOW - HOUR}},
    "an agent is not silent": {"silent": {"bank": LONG_AGO, "bank-2": LONG_AGO}},
    "nobody is silent": {"silent": {}},
}


@pytest.mark.parametrize("why", WAITS)
def test_a_step_waits_for_as_long_as_not_all_of_its_agents_are_silent_for_too_long(why):
    """An agent that is full, paused or closed is not silent."""
    assert waited(step(), **WAITS[why]) == NotClaimed(NotClaimable.NO_CAPACITY)


def test_a_step_is_given_up_also_when_a_probe_request_could_be_sent():
    """Otherwise an order whose own pauses are longer than those of the agent would never end."""
    next_version = waited(step(), capacity={"bank": ("bank",)})
    assert isinstance(only_step(next_version).state, Failed)


def test_a_step_whose_time_has_not_come_is_not_given_up():
    """A pause, a cooldown and a start time are respected."""
    by = scheduler(definition(), definition("ship", capability="carrier"))
    later, other = step(BackingOff(LATER, NOT_BEGUN)), step(name="ship", capability="carrier")
    next_version = waited(later, other, by=by, capacity={"carrier": ("carrier",)})
    assert next_version.after.step("pay") == later


def test_of_a_step_in_doubt_the_agents_of_its_provider_decide():
    """AGT-3: it may not go to another one, whether or not that is silent."""
    silent = dict.fromkeys(("bank", "bank-2"), LONG_AGO)
    doubtful = in_doubt(Waiting(NOT_BEGUN))
    elsewhere = {"bank": ("other-bank",)}
    assert isinstance(only_step(waited(doubtful, silent=silent, capacity=elsewhere)).state, Failed)
    known = waited(doubtful, silent={"bank": LONG_AGO}, capacity=elsewhere)
    assert known == NotClaimed(NotClaimable.NO_CAPACITY_AT_ITS_OWN)


def test_no_step_is_given_up_for_silent_agents_after_the_deadline():
    """SCH-17: the rule of the deadline decides, once a supervisor has noticed it."""
    deadline = Deadline(due_by=NOW, due_soon_at=LONG_AGO, when_late=WhenLate.UNDO)
    left = waited(step(), deadline=deadline)
    assert left == NotClaimed(NotClaimable.DEADLINE_PASSED)


def test_an_undo_that_no_agent_begins_ends_incomplete():
    """What it would take back may stand, so an operator is alerted."""
    done = step(UndoPending(), effect=Done(key=KEY, result={}))
    next_version = waited(done, direction=Direction.UNDO)
    assert only_step(next_version).state == UndoFailed(no_agent())
    assert next_version.after.state == InError(Outcome.UNDO_INCOMPLETE)


def test_an_undo_that_no_agent_begins_ends_incomplete_also_after_a_refusal():
    """An operator may have skipped the step, because it was done by other means (OPR-4)."""
    refused = step(UndoPending(), effect=NotDone(key=KEY))
    next_version = waited(refused, direction=Direction.UNDO)
    assert only_step(next_version).state == UndoFailed(no_agent())
    assert next_version.after.state == InError(Outcome.UNDO_INCOMPLETE)


def test_a_step_is_given_up_beside_one_that_runs():
    """SCH-12: the order ends when that is over."""
    by = scheduler(definition(), definition("ship", capability="carrier"))
    beside = running(name="ship", capability="carrier")
    next_version = waited(step(), beside, by=by, state=Processing("scheduler-1"))
    assert isinstance(next_version.after.step("pay").state, Failed)
    assert next_version.after.state == Processing("scheduler-1")


def test_a_condition_that_is_met_counts_for_a_step_that_is_given_up():
    """Only a step that is needed fails; after a resubmit it starts."""
    by = scheduler(definition(condition=lambda order, results: True))
    assert only_step(waited(step(ConditionPending()), by=by)).state == Failed(no_agent())
