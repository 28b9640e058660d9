"""Rounds of a step: when its idempotency key is another one, and when it is the same (AGT-3)."""

from dataclasses import replace

import pytest

from engine.decisions.transitions import Transition
from engine.declarations.business import AgentDefinition
from engine.domain.attempts import FailureOrigin, NotAttemptedReason
from engine.domain.effects import InDoubt, NotDone
from engine.domain.messages import AgentRequest, decode
from engine.domain.orders import InError, OrderAggregate, Processed
from engine.domain.states import Failed, Undoing, Undone
from engine.domain.statuses import Outcome
from engine.domain.submitted_order import MAX_KEPT
from engine.words.history import in_words
from operations.api.requests import OperatorRequest
from tests.support.acting import cancel, resubmit
from tests.support.builders import (
    NOW,
    ORDER_ID,
    answer,
    claimed,
    orders,
    scheduler,
    seconds,
    steps,
    supervisor,
    timed_out,
)

KEY = f"{ORDER_ID}:payment"
REQUEST = OperatorRequest(operator="grace", note="the customer has a new card")


def at_service(**declared):
    """The scheduler's rules, where the payment service is declared like that."""
    agent = AgentDefinition(name="payment", offers="payment", address="payment", **declared)
    return replace(scheduler, agents={"payment": agent})


REMEMBERS, FORGETS = at_service(remembers_refusals=True), at_service()


def ended(rules, **reply) -> OrderAggregate:
    """An order whose payment has failed by this reply."""
    failed = answer(outcome="failed", detail="card declined", **reply)
    order = rules.receive(rules.claim(orders.new(), NOW).after, failed, NOW).after
    assert order.state == InError(Outcome.FAILED)
    return order


def request_in(change: Transition) -> AgentRequest:
    (message,) = change.messages
    return decode(AgentRequest, message.body)


def key_after_resubmit(rules, order) -> str:
    again = resubmit(order, REQUEST, NOW).after
    return request_in(rules.claim(again, NOW)).idempotency_key


@pytest.mark.proves("AGT-3", "OPR-3")
def test_a_refusal_that_is_remembered_begins_a_new_round():
    """Under the old key the service would refuse the new card too."""
    order = ended(REMEMBERS)
    for number in (1, 2):
        again = REMEMBERS.claim(resubmit(order, REQUEST, NOW).after, NOW)
        request = request_in(again)
        assert (request.idempotency_key, request.attempt) == (f"{KEY}:{number}", number + 1)
        assert f"payment attempt {number + 1} (key generation {number + 1}) started" in in_words(
            again.entry.events
        )
        step = again.after.step("payment")
        assert step.effect == NotDone(key=step.key)
        assert step.key.generation == number
        failed = answer(outcome="failed", detail="card declined", attempt=number + 1)
        order = REMEMBERS.receive(again.after, failed, NOW).after


@pytest.mark.proves("AGT-3", "UND-2")
def test_a_result_that_is_too_long_to_be_kept_is_no_refusal():
    """The service did the work: under a new key it would do it a second time."""
    order = REMEMBERS.claim(orders.new(), NOW).after
    long = answer(result={"reference": "x" * MAX_KEPT})
    failed = REMEMBERS.receive(order, long, NOW).after
    step = failed.step("payment")
    assert isinstance(step.state, Failed)
    assert isinstance(step.effect, InDoubt)
    assert key_after_resubmit(REMEMBERS, failed) == KEY


@pytest.mark.proves("UND-3")
def test_the_answer_to_an_undo_may_be_as_long_as_it_likes():
    """Nothing of it is kept, so the step is undone."""
    order = orders.processing(orders.undoing(steps=[steps.undoing()]))
    (step,) = order.steps
    long = answer(action="undo", attempt=step.counts.attempts, result={"reference": "x" * MAX_KEPT})
    after = scheduler.receive(order, long, NOW).after
    assert (after.steps[0].state, after.steps[0].result) == (Undone(), step.result)


KEPT = {
    "the service forgets refusals": (FORGETS, {}),
    "in doubt, where refusals are forgotten": (FORGETS, {"in_doubt": True}),
    "no word of the service": (REMEMBERS, {"origin": FailureOrigin.REQUEST}),
}


@pytest.mark.proves("AGT-3", "OPR-3")
@pytest.mark.parametrize("why", KEPT)
def test_elsewhere_the_key_stays(why):
    """Something of the round may stand, or a late duplicate may still do it."""
    rules, reply = KEPT[why]
    assert key_after_resubmit(rules, ended(rules, **reply)) == KEY


@pytest.mark.proves("AGT-3")
def test_a_refusal_that_is_remembered_leaves_nothing_in_doubt():
    """A call before had no answer, of the same attempt or of another: the work was not done under that key."""
    same = ended(REMEMBERS, in_doubt=True)
    running = REMEMBERS.claim(orders.new(), NOW).after
    now = timed_out(running)
    again = REMEMBERS.claim(supervisor.recover(running, now).after, now).after
    refused = answer(outcome="failed", detail="declined", attempt=2)
    for order in (same, REMEMBERS.receive(again, refused, now).after):
        step = order.step("payment")
        assert step.effect == NotDone(key=step.key, refused_for_good=True)
        assert key_after_resubmit(REMEMBERS, order) == f"{KEY}:1"


def test_the_key_stays_if_the_request_could_not_be_made():
    """The service has refused nothing, and a request before may have been delivered twice."""
    waiting = REMEMBERS.receive(
        claimed(),
        answer(outcome="notAttempted", detail="open", reason=NotAttemptedReason.CIRCUIT_OPEN),
        NOW,
        {},
    ).after
    broken = orders.having(waiting, payload={})
    order = REMEMBERS.claim(broken, broken.derived.not_before).after
    assert order.state == InError(Outcome.FAILED)
    mended = orders.having(order, payload=waiting.submitted.payload)
    assert key_after_resubmit(REMEMBERS, mended) == KEY


@pytest.mark.proves("AGT-3", "UND-1")
def test_the_undo_names_the_key_of_the_round():
    """The rounds before were refused, so there is nothing to undo in them."""
    again = REMEMBERS.claim(resubmit(ended(REMEMBERS), REQUEST, NOW).after, NOW).after
    done = REMEMBERS.receive(again, answer(attempt=2), NOW)
    assert done.after.state == Processed()
    running = cancel(again, REQUEST, NOW).after
    back = REMEMBERS.receive(running, answer(attempt=2), NOW)
    request = request_in(back)
    assert (request.action, request.idempotency_key) == ("undo", f"{KEY}:1")


@pytest.mark.proves("AGT-3")
def test_every_attempt_of_a_round_has_its_key():
    """A time-out of the second round is tried again in the second round."""
    again = REMEMBERS.claim(resubmit(ended(REMEMBERS), REQUEST, NOW).after, NOW).after
    now = timed_out(again)
    tried = REMEMBERS.claim(supervisor.recover(again, now).after, now + seconds(5))
    assert request_in(tried).idempotency_key == f"{KEY}:1"


@pytest.mark.proves("AGT-3")
def test_no_round_begins_in_doubt():
    """Though its service has refused the step for good."""
    order = ended(REMEMBERS)
    assert order.step("payment").effect.refused_for_good
    doubtful = steps.in_doubt(order.step("payment"))
    assert key_after_resubmit(REMEMBERS, orders.with_steps(order, doubtful)) == KEY


def test_a_refused_undo_begins_no_round():
    """It is the undo of what stands under that key."""
    undoing = cancel(REMEMBERS.claim(orders.new(), NOW).after, REQUEST, NOW).after
    back = REMEMBERS.receive(undoing, answer(), NOW).after
    assert isinstance(back.step("payment").state, Undoing)
    stuck = REMEMBERS.receive(
        back, answer(outcome="failed", action="undo", attempt=2, detail="no"), NOW
    ).after
    assert key_after_resubmit(REMEMBERS, stuck) == KEY
