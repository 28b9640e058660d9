"""What a service has accepted and does later: it is asked again with the same key (AGT-11)."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from agents.circuit_breaker import CircuitBreaker
from agents.service import OVERDUE
from engine.decisions.transitions import HistoryEntry, Transition
from engine.declarations.business import AgentDefinition
from engine.domain.attempts import FailureOrigin
from engine.domain.backoff import SHORTEST
from engine.domain.effects import Done, InDoubt, NotDone
from engine.domain.errors import (
    DeferredError,
    InvalidRequestError,
    NotAttemptedError,
    RejectedError,
    ThrottledError,
    TransientError,
)
from engine.domain.messages import AgentRequest, decode, decode_reply
from engine.domain.orders import InError, Pending
from engine.domain.states import Completed, Deferred, Failed, Undoing
from engine.features.external_events.decide import ExternalEvent, recorded
from engine.features.key_generations import is_forgotten
from engine.words.causes import words_of
from engine.words.history import in_words
from operations.api.explain import explain
from operations.api.requests import OperatorRequest
from testkit.memory import in_memory
from tests.support.acting import cancel, resubmit
from tests.support.agency import OPEN_FOR, Agency
from tests.support.apps import app
from tests.support.builders import (
    NOW,
    ORDER_ID,
    acting_rules,
    answer,
    begun_by,
    claimed,
    fault_of_all,
    orders,
    scheduler,
    seconds,
    some,
    start_undo,
    steps,
    supervisor,
    timed_out,
)

WITHIN, PAUSE = timedelta(hours=2), seconds(60)
BOTH = {"payment": ("payment-backup", "payment")}
PATIENT = replace(
    scheduler,
    agents={
        name: AgentDefinition(name=name, offers="payment", address=name, answer_within=WITHIN)
        for name in ("payment", "payment-backup")
    },
)
REQUEST = OperatorRequest(operator="grace", note="asked them")


def accepts(pause=PAUSE):
    return DeferredError("queued", retry_after=pause)


def accepted(order, now, rules=PATIENT, pause=PAUSE):
    """The change by which the scheduler learns that the service has accepted the call."""
    step = order.step("payment")
    reply = answer(
        outcome="deferred",
        attempt=step.counts.attempts,
        action="undo" if isinstance(step.state, Undoing) else "do",
        retry_after=pause.total_seconds(),
    )
    return rules.receive(order, reply, now)


# The agent


@pytest.mark.proves("AGT-11", "AGT-3")
async def test_the_service_is_called_again_in_the_same_attempt_if_there_is_time():
    """After the pause that it named, with the same key."""
    agency = Agency(accepts(seconds(2)))
    await agency.agent.handle(agency.request)
    ((_, reply),) = agency.replies()
    assert (reply.outcome, agency.pauses) == ("completed", [2])
    assert len({call.idempotency_key for call in agency.remote.calls}) == 1


@pytest.mark.proves("AGT-11")
@pytest.mark.parametrize(
    ("requested", "again"),
    [(3, 3), (60, 60), (10**7, 86_400)],
    ids=["no call fits", "long", "bound"],
)
async def test_a_longer_pause_is_left_to_the_scheduler(requested, again):
    """The agent calls once, and replies when to ask again; no call was without an answer."""
    agency = Agency(accepts(seconds(requested)))
    await agency.agent.handle(agency.request)
    ((_, reply),) = agency.replies()
    assert (reply.outcome, reply.in_doubt) == ("deferred", False)
    assert (reply.retry_after, reply.reason, agency.pauses) == (again, None, [])


async def test_a_service_that_names_no_pause_is_not_called_without_one():
    """A second at least."""
    agency = Agency(accepts(seconds(0)), accepts(seconds(-5)))
    await agency.agent.handle(agency.request)
    assert agency.pauses == [1, 1]


@pytest.mark.proves("AGT-11", "AGT-8")
def test_what_is_accepted_is_a_sign_of_life():
    """A circuit that has been open closes, as it does after an answer."""
    now = NOW
    circuit = CircuitBreaker(orders=1, open_for=OPEN_FOR, clock=lambda: now)
    with pytest.raises(TransientError), circuit.guard("a"):
        raise TransientError
    with pytest.raises(NotAttemptedError):
        circuit.admit()
    now += OPEN_FOR
    with pytest.raises(DeferredError), circuit.guard("b"):
        raise accepts()
    assert circuit.open_until is None


@pytest.mark.proves("AGT-11")
async def test_an_answer_that_is_overdue_is_no_answer():
    """The agent says nothing, so that the attempt expires, and its report says why."""
    agency = Agency(accepts())
    await agency.agent.handle(agency.request.model_copy(update={"answer_by": NOW}))
    (report,) = await agency.agent_health()
    assert agency.replies() == []
    (fault,) = report.faults
    assert (fault.text, fault.requests) == (OVERDUE, report.begun)
    assert report.begun == (f"{ORDER_ID}:payment:1:do",)


@pytest.mark.proves("AGT-11")
@pytest.mark.parametrize("unanswered", [False, True])
async def test_a_refusal_after_it_was_accepted_is_its_final_answer(unanswered):
    """It leaves nothing in doubt, unless another call had no answer (engine 5)."""
    before = [TransientError("503")] if unanswered else []
    agency = Agency(*before, accepts(seconds(1)), RejectedError("no such street"))
    await agency.agent.handle(agency.request)
    ((_, reply),) = agency.replies()
    assert (reply.outcome, reply.in_doubt) == ("failed", unanswered)


@pytest.mark.proves("AGT-11")
async def test_a_failure_that_is_not_the_services_answer_settles_nothing_that_it_accepted():
    """The service may still do the work (engine 5)."""
    agency = Agency(accepts(seconds(1)), InvalidRequestError("misconfigured"))
    await agency.agent.handle(agency.request)
    ((_, reply),) = agency.replies()
    assert (reply.outcome, reply.origin, reply.in_doubt) == ("failed", "request", True)


@pytest.mark.proves("AGT-11")
async def test_what_was_accepted_stays_accepted_though_the_service_then_asks_for_a_pause():
    """The order waits for the final answer, which may come after the pause (engine 5)."""
    agency = Agency(accepts(seconds(1)), ThrottledError("429", seconds(40)))
    await agency.agent.handle(agency.request)
    ((_, reply),) = agency.replies()
    assert (reply.outcome, reply.in_doubt) == ("deferred", True)
    assert (reply.reason, reply.retry_after) == ("throttled", 40)


# The order


@pytest.mark.proves("AGT-11")
def test_the_order_waits_until_then_and_counts_no_failure():
    """The wait is a chosen time; the history says who accepted it."""
    change = accepted(claimed(), NOW)
    order, step = change.after, change.after.step("payment")
    assert (order.state, order.derived.not_before) == (Pending(), NOW + PAUSE)
    assert (order.failures, step.counts.failures) == (0, 0)
    assert step.state == Deferred(NOW + PAUSE)
    assert step.effect == InDoubt(key=step.key, unanswered=False, answer_by=NOW + WITHIN)
    expected = "payment accepted payment, and is polled again at 2026-01-31 08:16:00"
    assert in_words(change.entry.events).startswith(expected)
    assert change.entry.events[0].attempt == step.counts.attempts


@pytest.mark.proves("AGT-11")
def test_an_accepted_step_is_requested_again_after_a_pause_where_no_time_is_named():
    """Our agents always name one; a reply without one makes no loop (engine 2)."""
    order = accepted(claimed(), NOW, pause=timedelta()).after
    assert (order.state, order.derived.not_before) == (Pending(), NOW + SHORTEST)


@pytest.mark.proves("AGT-11", "AGT-10")
def test_the_same_agent_gets_the_request_again_and_no_other():
    """Also if another agent of the same provider is preferred."""
    waiting = accepted(claimed(), NOW).after
    again = PATIENT.claim(waiting, NOW + PAUSE, BOTH).after
    assert again.step("payment").agent == "payment"
    unasked = PATIENT.claim(orders.new(), NOW, BOTH).after
    assert unasked.step("payment").agent == "payment-backup"


def test_it_is_not_requested_before():
    """Not even by a poll that finds it."""
    waiting = accepted(claimed(), NOW).after
    assert not hasattr(PATIENT.claim(waiting, NOW + PAUSE - seconds(0.1)), "after")


@pytest.mark.proves("AGT-11")
def test_the_answer_is_due_from_the_first_time_it_was_accepted():
    """Each request says until when; another 202 does not put it off."""
    waiting = accepted(claimed(), NOW).after
    change = PATIENT.claim(waiting, NOW + PAUSE)
    (message,) = change.messages
    assert decode(AgentRequest, message.body).answer_by == NOW + WITHIN
    later = accepted(change.after, NOW + PAUSE).after
    assert later.step("payment").answer_by == NOW + WITHIN


def test_of_a_service_that_declares_no_time_an_answer_is_due_at_once():
    """So 202 for ever ends, as it would without an answer."""
    step = accepted(claimed(), NOW, scheduler).after.step("payment")
    assert step.answer_by == NOW


@pytest.mark.proves("AGT-11", "SUP-3")
def test_after_that_it_is_a_time_out_and_the_reason_says_so():
    """Counted as any other, in doubt; at the threshold the step's rule decides."""
    waiting = accepted(claimed(), NOW).after
    order, now = PATIENT.claim(waiting, NOW + WITHIN).after, NOW + WITHIN
    for _ in range(2):
        now = timed_out(order)
        change = supervisor.recover(
            order, now, begun_by(now, "payment", faults=(fault_of_all(OVERDUE),))
        )
        order = PATIENT.claim(change.after, change.after.derived.not_before or now).after
    assert in_words(change.entry.events).startswith(
        f"payment timed out, failure 2 of 3; last answer: {OVERDUE}"
    )
    now = timed_out(order)
    ended = supervisor.recover(
        order, now, begun_by(now, "payment", faults=(fault_of_all(OVERDUE),))
    ).after
    assert isinstance(ended.state, InError)
    assert ended.step("payment").effect.unanswered
    assert words_of(ended.cause) == f"payment timed out 3 times; last answer: {OVERDUE}"


def test_whoever_resubmits_it_gives_it_its_time_again():
    """The count begins afresh, and so does the time for an answer."""
    step = steps.failed(accepted(claimed(), NOW).after.step("payment"))
    failed = orders.in_error(steps=[step])
    assert failed.step("payment").answer_by
    assert resubmit(failed, REQUEST, NOW).after.step("payment").answer_by is None


def test_once_it_is_done_nothing_of_it_is_left():
    """The step is completed, and nothing is in doubt."""
    waiting = accepted(claimed(), NOW).after
    running = PATIENT.claim(waiting, NOW + PAUSE).after
    done = PATIENT.receive(running, answer(attempt=2), NOW + PAUSE).after.step("payment")
    assert (done.state, type(done.effect)) == (Completed(), Done)


@pytest.mark.proves("AGT-11")
def test_the_services_final_refusal_settles_what_it_accepted():
    """A service refuses no work that it did (engine 5)."""
    assert isinstance(refused_after(accepted(claimed(), NOW)).effect, NotDone)


@pytest.mark.proves("AGT-11", "UND-2")
@pytest.mark.parametrize("then", ["a time-out", "a call without an answer", "a failure elsewhere"])
def test_what_else_is_in_doubt_stays_so(then):
    """Only the acceptance is settled, and only by the service itself."""
    change = accepted(claimed(), NOW)
    if then == "a time-out":
        running = PATIENT.claim(change.after, NOW + PAUSE).after
        change = supervisor.recover(running, timed_out(running))
    replies = {
        "a call without an answer": {"in_doubt": True},
        "a failure elsewhere": FROM_ELSEWHERE,
    }
    step = refused_after(change, **replies.get(then, {}))
    assert step.effect.unanswered
    assert (step.answer_by is None) == (then != "a failure elsewhere")


@pytest.mark.proves("AGT-11", "UND-2", "AGT-3")
@pytest.mark.parametrize("remembers", [False, True])
def test_a_refusal_over_the_link_does_not_settle_the_call_that_asks_again_meanwhile(remembers):
    """That call may come after it, and a service that forgets refusals does the work (engine 5)."""
    running = PATIENT.claim(accepted(claimed(), NOW).after, NOW + PAUSE).after
    refusal = ExternalEvent(step="payment", refusal="closed", for_good=remembers)
    step = recorded(running, refusal, "service", NOW + PAUSE).after.step("payment")
    assert isinstance(step.state, Failed)
    key = step.key
    assert step.effect == (
        NotDone(key=key, refused_for_good=True) if remembers else InDoubt(key=key, unanswered=True)
    )


FROM_ELSEWHERE = {"origin": FailureOrigin.REQUEST}


def refused_after(change, **more):
    """The step as the final answer of its next attempt leaves it."""
    step = change.after.step("payment")
    now = step.not_before or change.entry.at
    running = PATIENT.claim(change.after, now).after
    refusal = answer(outcome="failed", detail="closed", attempt=step.counts.attempts + 1, **more)
    return PATIENT.receive(running, refusal, now).after.step("payment")


@pytest.mark.proves("AGT-11", "UND-2", "AGT-12")
def test_what_is_accepted_may_be_done_until_then():
    """Its undo is in doubt; so it is when the step fails; its key is sent while it is known."""
    step = accepted(claimed(), NOW).after.step("payment")
    assert start_undo(orders.having(claimed(), steps=[step])).step("payment").effect.unanswered
    forgets = steps.with_key(step, known_until=NOW + step.rules.timeout)
    assert (is_forgotten(forgets, NOW), is_forgotten(step, NOW)) == (True, False)
    waiting = orders.with_steps(accepted(claimed(), NOW).after, forgets)
    failed = PATIENT.claim(waiting, NOW + PAUSE).after.step("payment")
    assert isinstance(failed.state, Failed)
    assert failed.effect.unanswered


@pytest.mark.proves("AGT-11", "UND-2")
def test_its_undo_waits_for_what_may_still_be_done():
    """Where the service does not refuse undone keys: the window begins when the answer is due."""
    window = seconds(30)
    remembers = accepted(claimed(), NOW).after
    assert cancel(remembers, REQUEST, NOW).after.step("payment").not_before is None
    slow = steps.with_rules(claimed().step("payment"), late_effect_window=window)
    slow = steps.with_key(slow, effects_final_at=NOW + seconds(36))
    late = accepted(orders.with_steps(claimed(), slow), NOW).after
    forgets = cancel(late, REQUEST, NOW).after
    undo = forgets.step("payment")
    assert (undo.not_before, undo.answer_by) == (NOW + WITHIN + window, None)


@pytest.mark.proves("AGT-11", "SUP-7")
async def test_no_alert_says_that_the_order_waits_for_long():
    """It waits for a time that the service chose."""
    order = accepted(claimed(orders.new(ready_since=NOW - timedelta(hours=1))), NOW).after
    there = app(in_memory(clock=lambda: NOW + seconds(30)))
    entry = HistoryEntry(at=NOW, actor="t", events=some("submitted"))
    await there.engine.store.commit(Transition(before=None, after=order, entry=entry))
    assert await there.operations.stall_detector.check() <= timedelta()


@pytest.mark.proves("AGT-11", "OPR-2")
def test_it_is_explained():
    """Who accepted what, until when it may take, and when it is asked again."""
    explanation = explain(accepted(claimed(), NOW).after, [], acting_rules, NOW)
    accepted_it = "payment, which accepted payment and may take until 2026-01-31 10:15:00 UTC"
    assert f"to poll {accepted_it}" in explanation.waiting_for
    assert explanation.next_at == NOW + PAUSE


@pytest.mark.proves("FLT-12")
def test_a_reply_is_read_though_a_newer_agent_says_more():
    """A field that is not known here is passed over."""
    reply = answer(outcome="deferred")
    content = json.loads(reply.to_json()) | {"queuedBehind": 3}
    assert decode_reply(json.dumps(content)) == reply


@pytest.mark.proves("SCH-16", "AGT-11")
def test_a_service_that_names_no_time_is_asked_ever_less_often():
    """It is not asked each half minute for hours, with two rows of history each time (engine 25)."""
    usual, hour = seconds(30), timedelta(hours=1)
    order, now, requests = orders.new(), NOW, 0
    while now < NOW + hour:
        order = accepted(claimed(order, now), now + seconds(1), pause=usual).after
        requests, now = requests + 1, order.step("payment").not_before
    assert requests < 25
    assert order.step("payment").counts.failures == 0
