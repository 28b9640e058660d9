"""How an order moves forward."""

import json
from dataclasses import replace

import pytest

from engine.decisions.transitions import NotClaimed, Note
from engine.domain.attempts import NotAttemptedReason
from engine.domain.backoff import SHORTEST
from engine.domain.causes import Cause, Code
from engine.domain.effects import Done, InDoubt
from engine.domain.errors import NewerWorkflowError
from engine.domain.events import Requeued
from engine.domain.messages import AgentRequest, decode
from engine.domain.orders import InError, Pending, Processed, Processing
from engine.domain.states import BackingOff, Completed, Failed, Running, UnderWay, UndoPending
from engine.domain.statuses import NotClaimable, Outcome, ProcessState
from engine.words.history import in_words
from tests.support.acting import alerts_of
from tests.support.builders import (
    LONGEST_UPGRADE,
    NOW,
    ORDER_ID,
    TOLERANCE,
    answer,
    claimed,
    orders,
    other_scheduler,
    refusal,
    scheduler,
    seconds,
    steps,
    supervisor,
    timed_out,
)

COMPLETED = answer(result={"reference": "p-1"})
FAILED = answer(outcome="failed", detail="card declined")


@pytest.mark.proves("SCH-2", "SCH-3")
def test_a_claim_takes_the_order_and_records_the_step_as_running_in_one_change():
    """LockedBy, CompleteBy, ProcessState and the running step are one write before the request."""
    change = scheduler.claim(orders.new(), NOW)
    order, step = change.after, change.after.step("payment")
    assert (order.derived.locked_by, order.state) == ("s1", Processing("s1"))
    assert order.derived.complete_by == NOW + seconds(5)
    assert step.state == Running(NOW + seconds(5))
    assert (step.counts.attempts, order.version) == (1, 2)
    assert change.entry.event == "claimed"


@pytest.mark.proves("SCH-4", "AGT-3")
def test_a_claim_sends_the_agent_what_it_needs_and_nothing_personal():
    """The request names order, step, attempt, key and complete-by time, and carries no customer."""
    (message,) = scheduler.claim(orders.new(), NOW).messages
    request = AgentRequest.model_validate_json(message.body)
    assert message.queue == "payment-requests"
    assert message.reply_to == "payment-responses"
    assert message.message_id == f"{ORDER_ID}:payment:1:do"
    assert message.correlation_id == ORDER_ID
    assert message.time_to_live == seconds(5)
    assert request.idempotency_key == f"{ORDER_ID}:payment"
    assert request.complete_by == NOW + seconds(5)
    assert request.content == {
        "items": [{"sku": "TEA-SENCHA", "quantity": 2}],
        "amount": "28.00",
        "currency": "EUR",
    }
    assert "ada" not in json.dumps(message.body).lower()


NOT_CLAIMED = {
    "processed": (orders.processed(), NotClaimable.ENDED),
    "in error": (orders.in_error(), NotClaimable.ENDED),
    "cooling down": (
        orders.pending(steps=[steps.cooling_down(until=NOW + seconds(1))]),
        NotClaimable.NOT_YET,
    ),
    "all its steps run": (claimed(), NotClaimable.RUNS),
}


@pytest.mark.proves("SCH-1", "SCH-2")
@pytest.mark.parametrize("what", NOT_CLAIMED)
def test_only_an_order_that_may_go_on_can_be_claimed(what):
    """Another one is passed over, and it is said why."""
    order, why = NOT_CLAIMED[what]
    assert other_scheduler.claim(order, NOW) == NotClaimed(why=why)


@pytest.mark.proves("SCH-5")
def test_the_last_valid_reply_makes_the_order_processed():
    """The step keeps its result, the order is handled by nobody and owes nothing."""
    order = orders.recorded(claimed())
    change = scheduler.receive(order, COMPLETED, NOW + seconds(1))
    after, step = change.after, change.after.step("payment")
    assert after.state == Processed()
    assert (after.derived.locked_by, after.derived.complete_by) == (None, None)
    assert (step.state, step.result) == (Completed(), {"reference": "p-1"})
    gone, pending = change.work_items()
    assert gone == [item.key for item in order.derived.work_items]
    assert len(gone) == 1
    assert not [key for key in pending if key.startswith("!")]


@pytest.mark.proves("SCH-5")
def test_a_reply_may_reach_another_scheduler():
    """Whoever gets the reply records it: the conditional write decides."""
    change = other_scheduler.receive(claimed(), COMPLETED, NOW + seconds(1))
    assert change.after.state == Processed()
    assert change.entry.actor == "scheduler/s2"


@pytest.mark.proves("SCH-6")
@pytest.mark.parametrize(
    ("reply", "after_seconds", "why"),
    [
        (answer(attempt=2), 1, "the current attempt is 1"),
        (answer(step="shipping"), 1, "no step shipping"),
        (answer(action="undo"), 1, "the step is Running"),
        (COMPLETED, 6.001, "after the complete-by time"),
    ],
    ids=["another attempt", "unknown step", "an undo nobody asked for", "late"],
)
def test_a_reply_that_is_not_valid_is_recorded_and_changes_nothing(reply, after_seconds, why):
    """A reply counts only for the current attempt of a running step, in time plus tolerance."""
    note = scheduler.receive(claimed(), reply, NOW + seconds(after_seconds))
    assert isinstance(note, Note)
    assert note.entry.event == "reply-refused"
    assert why in in_words(note.entry.events)


@pytest.mark.proves("SCH-6")
@pytest.mark.parametrize("reply", [COMPLETED, FAILED], ids=["completed", "failed"])
def test_a_reply_over_the_queue_of_another_agent_is_recorded_and_changes_nothing(reply):
    """Who may send to one agent's queue can answer for no other, even with everything right."""
    note = scheduler.receive(claimed(), reply, NOW + seconds(1), agent="shipping")
    assert isinstance(note, Note)
    assert note.entry.event == "reply-refused"
    (refused,) = note.entry.events
    assert refused.cause.code == Code.REPLY_FROM_OTHER_AGENT
    assert (refused.cause.facts["agent"], refused.cause.facts["expected"]) == (
        "shipping",
        "payment",
    )
    assert note.note_id != scheduler.receive(claimed(), reply, NOW, agent="inventory").note_id


@pytest.mark.proves("SCH-6", "FLT-6")
def test_a_reply_to_a_former_attempt_is_recorded_and_changes_nothing():
    """It came so late that the step runs again: only the answer to the attempt of now counts."""
    order = claimed()
    again = claimed(supervisor.recover(order, timed_out(order)).after, timed_out(order))
    note = scheduler.receive(again, answer(attempt=1), timed_out(order))
    assert isinstance(note, Note)
    assert "the current attempt is 2" in in_words(note.entry.events)


@pytest.mark.proves("SCH-6")
def test_every_late_reply_is_noted_once():
    """Each copy of a reply to a completed step has one note id, and each other reply its own."""
    order = scheduler.receive(claimed(), COMPLETED, NOW).after
    replies = [
        COMPLETED,
        answer(result={"reference": "p-2"}),
        FAILED,
        answer(outcome="failed", detail="no such card"),
    ]
    notes = [scheduler.receive(order, reply, NOW) for reply in replies]
    assert all(isinstance(note, Note) for note in notes)
    assert len({note.note_id for note in notes}) == len(replies)
    assert scheduler.receive(order, COMPLETED, NOW + seconds(1)).note_id == notes[0].note_id


@pytest.mark.proves("SCH-5")
def test_a_step_that_is_done_is_in_no_doubt_any_more():
    """And says nothing of the faults on the way."""
    order = claimed()
    order = orders.with_steps(order, steps.in_doubt(order.step("payment")))
    (step,) = scheduler.receive(order, COMPLETED, NOW).after.steps
    assert step.state == Completed()
    assert step.effect == Done(key=step.key, result={"reference": "p-1"})


@pytest.mark.proves("UND-2", "SCH-8")
def test_a_refusal_takes_no_doubt_away():
    """An attempt before had no answer: that this one is refused says nothing of its effect."""
    order = claimed()
    order = orders.with_steps(order, steps.in_doubt(order.step("payment")))
    (step,) = scheduler.receive(order, FAILED, NOW).after.steps
    assert step.state == Failed(refusal("card declined"))
    assert step.effect == InDoubt(key=step.key)


@pytest.mark.proves("SCH-8", "ALR-1")
def test_an_error_reply_sets_the_order_to_error_with_one_alert():
    """The service's reason is on the step, on the order, and in the event committed with them."""
    change = scheduler.receive(claimed(), FAILED, NOW + seconds(1))
    after, step = change.after, change.after.step("payment")
    assert (after.state, after.cause) == (InError(Outcome.FAILED), refusal("card declined"))
    assert (after.derived.locked_by, after.derived.complete_by, after.failures) == (None, None, 0)
    assert step.state == Failed(refusal("card declined"))
    (event,) = alerts_of(change)
    assert event.type == "OrderProcessing.OrderFailed"
    assert event.data["reason"]["facts"] == {"detail": "card declined"}


@pytest.mark.proves("AGT-8")
def test_a_step_that_was_not_tried_waits_without_a_failure():
    """`notAttempted` puts the order back for the time that it names, and counts nothing (engine 2)."""
    reply = answer(outcome="notAttempted", retry_after=30, detail="no place")
    change = scheduler.receive(claimed(), reply, NOW)
    after, step = change.after, change.after.step("payment")
    assert after.state == Pending()
    assert (after.derived.locked_by, after.derived.complete_by) == (None, None)
    assert step.state == BackingOff(NOW + seconds(30))
    assert after.derived.not_before == NOW + seconds(30)
    assert (after.failures, step.counts.failures) == (0, 0)
    assert isinstance(change.entry.events[-1], Requeued)


@pytest.mark.proves("UND-2")
def test_what_is_in_doubt_stays_so_though_it_is_not_tried_again():
    """A call before had no answer: that there was no other call says nothing of its effect."""
    order = claimed()
    for attempt, doubt in ((1, True), (2, False)):
        says = {"outcome": "notAttempted", "retry_after": 0, "detail": "circuit open"}
        reply = answer(attempt=attempt, in_doubt=doubt, **says)
        waiting = scheduler.receive(order, reply, NOW).after
        assert isinstance(waiting.step("payment").effect, InDoubt)
        order = scheduler.claim(waiting, waiting.derived.not_before).after


@pytest.mark.proves("SCH-10")
def test_an_order_waits_for_the_first_of_its_steps_only():
    """Two may begin, each at its time: the one that waits for longer holds up no other."""
    first = steps.scheduled(at=NOW + seconds(60))
    other = steps.scheduled("other", at=NOW + seconds(10))
    order = orders.pending(steps=[first, other])
    assert order.next_start(NOW) == NOW + seconds(10)
    assert order.next_start(NOW + seconds(10)) is None


@pytest.mark.proves("AGT-8", "AGT-10")
def test_a_step_that_was_not_tried_goes_to_another_agent():
    """It does not wait for a circuit of the first one, and has the same key."""
    reply = answer(
        outcome="notAttempted",
        retry_after=30,
        detail="open",
        reason=NotAttemptedReason.CIRCUIT_OPEN,
    )
    waiting = scheduler.receive(claimed(), reply, NOW, {"payment": ("payment-backup",)}).after
    assert waiting.derived.not_before == NOW + SHORTEST
    change = scheduler.claim(waiting, NOW + SHORTEST, {"payment": ("payment-backup",)})
    assert change.after.state == Processing("s1")
    (message,) = change.messages
    assert message.queue == "payment-backup-requests"
    assert decode(AgentRequest, message.body).idempotency_key == f"{ORDER_ID}:payment"
    assert change.after.step("payment").agent == "payment-backup"
    assert change.after.step("payment").counts.attempts == 2


@pytest.mark.proves("SCH-8")
def test_an_order_of_a_workflow_that_is_gone_is_reported_not_guessed():
    """An unknown old version puts the order in Error with that reason; its undo is incomplete."""
    change = scheduler.claim(orders.new(workflow_version=0), NOW)
    assert change.after.state == InError(Outcome.FAILED)
    assert change.after.cause.code is Code.WORKFLOW_RETIRED
    assert change.after.cause.facts["version"] == 0
    assert alerts_of(change)[0].data["step"] == ""
    back = orders.undoing(steps=[steps.undo_pending()], workflow_version=0)
    change = scheduler.claim(back, NOW)
    assert change.after.state == InError(Outcome.UNDO_INCOMPLETE)
    assert alerts_of(change)[0].data["stillToBeUndone"] == ["payment"]


@pytest.mark.proves("SCH-12", "SUP-3", "ALR-1")
def test_an_order_of_a_workflow_that_is_gone_ends_when_nothing_of_it_runs_any_more():
    """One step expired and one runs as the version is retired: the end is one Error, one alert."""
    order = orders.new(workflow="order")
    payment = steps.with_rules(order.step("payment"), timeout=seconds(60))
    order = claimed(orders.with_steps(order, payment))
    order = supervisor.recover(order, NOW + seconds(7)).after
    order = orders.having(order, workflow_version=0)
    assert scheduler.claim(order, NOW + seconds(7)) == NotClaimed(why=NotClaimable.RUNS)
    given_back = supervisor.recover(order, NOW + seconds(62))
    ended = scheduler.claim(given_back.after, NOW + seconds(62))
    assert (ended.after.process_state, len(alerts_of(ended))) == (ProcessState.ERROR, 1)
    assert ended.after.in_state(UnderWay) == ()


@pytest.mark.proves("FLT-12")
@pytest.mark.parametrize(
    "unknown", [{"workflow_version": 7}, {"workflow": "brand-new"}], ids=["version", "name"]
)
def test_an_order_that_nobody_knows_is_left_to_newer_hosts_for_a_day(unknown):
    """An upgrade that takes longer has been given up: the order ends, and says why."""
    order = orders.new(**unknown, ready_since=NOW + seconds(60))
    longest = NOW + seconds(60) + LONGEST_UPGRADE
    for moment in (NOW, longest):
        assert scheduler.claim(order, moment) == NotClaimed(why=NotClaimable.UNKNOWN_WORKFLOW)
    after = scheduler.claim(order, longest + seconds(1)).after
    assert after.state == InError(Outcome.FAILED)
    gone = {"workflow": order.workflow, "version": order.workflow_version}
    assert after.cause == Cause(Code.WORKFLOW_RETIRED, gone)


@pytest.mark.proves("FLT-12")
@pytest.mark.parametrize(
    "unknown", [{"workflow_version": 7}, {"workflow": "brand-new"}], ids=["version", "name"]
)
def test_only_a_reply_that_counts_is_left_to_newer_hosts(unknown):
    """During an upgrade an old scheduler swallows no such reply; a late one it notes."""
    order = orders.having(claimed(), **unknown)
    with pytest.raises(NewerWorkflowError):
        scheduler.receive(order, COMPLETED, NOW)
    assert isinstance(scheduler.receive(order, answer(attempt=9), NOW), Note)


@pytest.mark.proves("FLT-9", "SUB-6")
def test_an_order_is_claimed_although_the_clock_of_who_announced_it_is_ahead():
    """The claim is early by no more than the tolerance; a chosen time is waited for in full."""
    ahead = NOW + TOLERANCE / 2
    change = scheduler.claim(orders.new(ready_since=ahead, updated_at=ahead), NOW)
    assert (change.entry.at, change.after.derived.ready_since) == (ahead, ahead)
    far = NOW + 2 * TOLERANCE
    change = scheduler.claim(orders.new(ready_since=far, updated_at=far), NOW)
    assert change.entry.at == NOW + TOLERANCE
    cools = orders.pending(steps=[steps.cooling_down(until=ahead)])
    assert scheduler.claim(cools, NOW) == NotClaimed(why=NotClaimable.NOT_YET)


@pytest.mark.proves("SCH-8")
def test_an_answer_that_is_too_long_to_be_kept_is_a_failure_in_doubt():
    """What no row can hold would fail every write, and the reply would come back for ever."""
    reply = answer(outcome="completed", result={"reference": "x" * 40_000})
    (step,) = scheduler.receive(claimed(), reply, NOW).after.steps
    assert isinstance(step.state, Failed)
    assert isinstance(step.effect, InDoubt)
    assert step.cause.code is Code.RESULT_TOO_LONG


# Which agent is asked

SEVERAL = {"payment": ("payment", "payment-backup", "elsewhere")}
RULES = replace(
    scheduler, providers={"payment": "psp", "payment-backup": "psp", "elsewhere": "another"}
)


def request_for(step, capacity, rules=RULES):
    """The agent that is asked for the step, and what for; None if there is none."""
    to = orders.undoing if isinstance(step.state, UndoPending) else orders.pending
    change = rules.claim(to(steps=[step]), NOW, capacity)
    if isinstance(change, NotClaimed):
        return None
    (message,) = change.messages
    return message.queue.removesuffix("-requests"), decode(AgentRequest, message.body).action


def tried(agent="payment", reason=steps.TIMED_OUT):
    """The payment after an attempt that came to nothing at this agent."""
    key = {"agent": agent, "provider": RULES.providers[agent]}
    return steps.waiting(steps.with_key("payment", **key), reason=reason)


def in_doubt(agent="payment"):
    return steps.in_doubt(tried(agent))


def capacity_at(*agents):
    return {"payment": agents}


FORWARD = {
    "the preferred first": (tried(reason=None), SEVERAL, "payment"),
    "another one after an attempt that came to nothing": (tried(), SEVERAL, "payment-backup"),
    "any other one": (tried("payment-backup"), SEVERAL, "payment"),
    "the same one if no other has room": (tried(), capacity_at("payment"), "payment"),
    "in doubt, another one of the provider": (in_doubt(), SEVERAL, "payment-backup"),
    "in doubt, no other provider": (in_doubt(), capacity_at("payment", "elsewhere"), "payment"),
    "in doubt, nobody if the provider has no room": (in_doubt(), capacity_at("elsewhere"), None),
    "in doubt at another provider, that one": (in_doubt("elsewhere"), SEVERAL, "elsewhere"),
    "in a new round, any other one": (
        steps.with_new_key(tried("elsewhere")),
        SEVERAL,
        "payment",
    ),
}


@pytest.mark.proves("AGT-10", "AGT-3", "WRK-1")
@pytest.mark.parametrize("what", FORWARD)
def test_a_step_goes_to_another_agent_next_but_never_to_another_provider_while_in_doubt(what):
    """Who shares no idempotency keys with the service that may have done it, would do it again."""
    step, capacity, agent = FORWARD[what]
    assert request_for(step, capacity) == (agent and (agent, "do"))


def to_undo(agent="payment", reason=None):
    """The payment as it waits to be undone, of which this agent was asked last."""
    return steps.undo_pending(steps.with_key("payment", agent=agent), reason=reason)


BACK = {
    "the agent that did it": (to_undo("payment-backup"), SEVERAL, "payment-backup"),
    "another of the provider without room": (
        to_undo("payment-backup"),
        capacity_at("payment"),
        "payment",
    ),
    "another of the provider after an attempt": (
        to_undo("payment-backup", reason="x"),
        SEVERAL,
        "payment",
    ),
    "no other provider": (to_undo(), capacity_at("elsewhere"), None),
}


@pytest.mark.proves("AGT-9", "AGT-3", "UND-1")
@pytest.mark.parametrize("what", BACK)
def test_a_step_is_undone_where_it_was_done(what):
    """By its agent, or another one whose service knows the key."""
    step, capacity, agent = BACK[what]
    assert request_for(step, capacity) == (agent and (agent, "undo"))
