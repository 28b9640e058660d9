"""A trial of a business: what an author's test can do to it, and learns of it."""

import gc
import random
import warnings
from dataclasses import replace
from datetime import timedelta

import pytest

from engine.alerts.events import STALLED
from engine.domain.errors import InvalidError, RefusedError
from engine.domain.messages import OrderReady
from engine.workflow import application
from rental.business import RENTAL, deposits, first_rentals, fleet, mail, registry
from samples.claims.business import CLAIMS, Claim, PolicyHolder
from shop.business import SHOP
from testkit import Trial
from testkit.trial import BEGINS
from tests.support.builders import CONTENT

STORM = Claim(
    claim_number="C-2041",
    policy_holder=PolicyHolder(name="Ada", email="ada@example.com"),
    amount="950.00",
    description="A storm took the roof",
)
DONE = {"assess": "Completed", "fraud": "Completed", "approve": "Completed", "pay": "Completed"}


def test_an_order_whose_services_answer_has_ended_at_once():
    """As a model or as JSON, in whichever workflow; each operation has taken effect once."""
    trial = Trial(CLAIMS)
    order = trial.submit(STORM)
    again = trial.submit(STORM.model_dump(mode="json", by_alias=True), workflow="claim")
    assert (order.state, order.outcome, order.reason, order.steps) == (
        "Processed",
        None,
        None,
        DONE,
    )
    assert (again.state, again.id == order.id) == ("Processed", False)
    assert trial.effects("assessor", order) == ["assess", "approve"]
    assert trial.effects("bank") == ["screen", "pay"] * 2
    assert order.history[0] == "submitted: workflow claim"
    assert trial.now == BEGINS


@pytest.mark.proves("OPR-8")
def test_an_operator_ends_a_cooldown_early():
    """By raising the priority, also a second time; a date that the order's message chose stays."""
    trial = Trial(CLAIMS)
    trial.down("bank", "screen")
    order = trial.submit(STORM)
    trial.advance(minutes=5)
    assert "cooldown 1 of 3" in order.history[-1]
    trial.act(order, "hurry")
    trial.advance(minutes=5)
    assert "cooldown 2 of 3" in order.history[-1]
    trial.heal("bank")
    trial.act(order, "hurry")
    assert order.state == "Processed"
    later = trial.submit(STORM, not_before=trial.now + timedelta(days=1))
    trial.act(later, "hurry")
    trial.advance(hours=23)
    assert later.state == "Pending"
    with pytest.raises(RefusedError, match="high priority already"):
        trial.act(later, "hurry")


@pytest.mark.proves("SUB-8")
def test_a_customer_cancels_at_the_door_until_it_is_too_late():
    """Until the step that the endpoint names; a workflow without an endpoint has no customers."""
    trial = Trial(CLAIMS)
    trial.hang("bank", "screen")
    order = trial.submit(STORM)
    trial.cancel(order)
    trial.advance(minutes=30)
    assert (order.outcome, order.reason) == ("undone", "cancelled by the customer")
    trial.heal()
    done = trial.submit(STORM)
    with pytest.raises(RefusedError, match="too late"):
        trial.cancel(done)
    tea = Trial(SHOP)
    with pytest.raises(LookupError, match="has no endpoint"):
        tea.cancel(tea.submit(CONTENT))


@pytest.mark.proves("FLT-12")
def test_orders_in_flight_are_finished_by_another_version_of_the_app():
    """With the steps that they came with; new ones go the new way, to agents that were not there."""
    before = application(first_rentals, agents=[fleet, registry, deposits, mail])
    trial = Trial(before)
    trial.hang("registry")
    old = trial.submit(RENTAL.sample.payload)
    trial.upgrade(RENTAL)
    trial.heal()
    trial.advance(minutes=10)
    new = trial.submit(RENTAL.sample.payload)
    assert (old.state, list(old.steps)) == ("Processed", ["car", "licence", "deposit", "confirm"])
    assert (new.state, "insurance" in new.steps) == ("Processed", True)
    assert trial.effects("mail") == ["confirm", "confirm-insured"]
    assert trial.effects("insurer", old) == []


def test_every_business_can_be_tried():
    """The shop too, with all of its services."""
    trial = Trial(SHOP)
    order = trial.submit(CONTENT)
    assert order.state == "Processed"
    assert trial.effects("payment", order) == ["authorise", "capture"]


def test_a_refusal_is_final_and_what_was_done_is_taken_back():
    """With the reason that the test gives, or else that of the agent; the last effect comes first."""
    trial = Trial(CLAIMS)
    trial.refuse("bank", "pay", "account frozen")
    order = trial.submit(STORM)
    assert (order.state, order.outcome, order.reason) == ("Error", "undone", "pay: account frozen")
    assert trial.effects("assessor") == ["assess", "approve", "withdraw", "cancel"]
    trial.refuse("bank", "pay")
    assert trial.submit(STORM).reason == "pay: account closed"


def test_an_order_that_nobody_answers_is_taken_back_in_the_end():
    """Each attempt has its time; half a month takes moments."""
    trial = Trial(CLAIMS)
    trial.hang("assessor", "approve")
    order = trial.submit(STORM)
    assert (order.state, order.steps["approve"]) == ("Processing", "Running")
    trial.advance(days=15)
    assert (order.state, order.outcome) == ("Error", "undone")
    assert trial.effects("assessor") == ["assess", "withdraw", "cancel"]
    assert trial.now == BEGINS + timedelta(days=15)
    assert any("approve attempt 3 started" in line for line in order.history)
    assert order.reason == "approve: approve timed out 3 times; no answer: TimeoutError"


def test_timers_run_when_something_is_due():
    """A cooldown of days ends within an interval of its time, and not before."""
    trial = Trial(CLAIMS, cooldown_seconds=10 * 86_400)
    trial.hang("bank", "screen")
    order = trial.submit(STORM)
    trial.advance(days=1)
    trial.heal("bank", "screen")
    trial.advance(days=8, hours=23)
    assert order.state == "Pending"
    trial.advance(hours=1, minutes=3)
    assert order.state == "Processed"


def test_a_service_that_is_away_for_a_moment_is_asked_again():
    """The agent's own retries go by the held clock; nobody counts a failure."""
    trial = Trial(CLAIMS)
    trial.down("bank")
    order = trial.submit(STORM)
    trial.advance(seconds=5)
    trial.heal()
    trial.advance(seconds=10)
    assert order.state == "Processed"
    assert not [line for line in order.history if line.startswith("recovered")]


def test_an_effect_whose_answer_came_too_late_stands_once():
    """The attempts after it have the same key."""
    trial = Trial(CLAIMS)
    trial.late("bank", "pay")
    order = trial.submit(STORM)
    trial.advance(seconds=29)
    assert trial.effects("bank") == ["screen"]
    trial.advance(seconds=2)
    assert trial.effects("bank") == ["screen", "pay"]
    trial.heal("bank")
    trial.advance(minutes=10)
    assert order.state == "Processed"
    assert trial.effects("bank") == ["screen", "pay"]


def test_what_was_said_last_of_an_operation_holds():
    """A fault of all operations and one of a single one may follow each other in any order."""
    trial = Trial(CLAIMS)
    trial.refuse("bank")
    trial.hang("bank", "screen")
    order = trial.submit(STORM)
    assert order.state == "Processing"
    trial.refuse("bank", reason="closed")
    trial.advance(minutes=1)
    assert (order.state, order.reason) == ("Error", "closed")


def test_an_operator_acts_on_an_order():
    """What makes no sense is refused, and what there is not is named."""
    trial = Trial(CLAIMS)
    trial.refuse("bank", "screen")
    order = trial.submit(STORM)
    assert (order.outcome, order.steps["fraud"]) == ("failed", "Failed")
    trial.act(order, "skip", step="fraud")
    assert order.steps == DONE | {"fraud": "Skipped"}
    with pytest.raises(RefusedError, match="the order is Processed"):
        trial.act(order, "resubmit")
    with pytest.raises(LookupError, match="no action mend; there are resubmit"):
        trial.act(order, "mend")


def test_alerts_reach_the_operators_as_time_passes():
    """Of orders that failed, and of what nobody looks after: an order that is held for a day."""
    trial = Trial(CLAIMS)
    trial.refuse("bank", "screen")
    failed = trial.submit(STORM)
    trial.hang("bank", "screen")
    held = trial.submit(STORM)
    trial.act(held, "hold")
    trial.heal()
    assert trial.alerts() == []
    trial.advance(minutes=1)
    assert [alert.subject for alert in trial.alerts()] == [f"orders/{failed.id}"]
    trial.advance(hours=23)
    told = len(trial.alerts())
    trial.advance(hours=2)
    (last,) = trial.alerts()[told:]
    assert (last.type, last.subject, last.data["orders"]) == (STALLED, "orders-held", [held.id])


def test_two_trials_that_are_given_the_same_go_the_same_way():
    """Whatever dice the test throws beside them, which the trials leave alone."""

    def course(seed):
        random.seed(seed)
        trial = Trial(CLAIMS)
        trial.down("bank")
        order = trial.submit(STORM)
        trial.advance(seconds=3.3)
        trial.heal()
        trial.advance(hours=1)
        return [entry.at for entry in trial.inspect(order.id).history], random.random()

    (one, thrown), (other, _) = course(1), course(2)
    random.seed(1)
    assert (one, thrown) == (other, random.random())


def test_the_environment_says_nothing():
    """A setting is what the test says it is; what is no setting is named."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAILURE_THRESHOLD", "1")
        trial = Trial(CLAIMS, step_timeout_seconds=5)
    trial.hang("assessor", "assess")
    order = trial.submit(STORM)
    trial.advance(seconds=15)
    assert order.state != "Error"
    trial.advance(minutes=2)
    assert (order.state, order.outcome) == ("Error", "undone")
    with pytest.raises(TypeError, match="no setting patience"):
        Trial(CLAIMS, patience=3)


def test_an_order_that_the_app_refuses_is_refused_with_every_fault():
    """And a service or operation that there is not is named, with those that there are."""
    trial = Trial(CLAIMS)
    with pytest.raises(InvalidError) as raised:
        trial.submit({"claimNumber": "2041", "amount": 950}, workflow="claims")
    assert len(raised.value.faults) > 3
    with pytest.raises(LookupError, match="no agent banks; there are assessor, bank"):
        trial.effects("banks")
    with pytest.raises(LookupError, match="bank has no operation charge; it has pay, recall"):
        trial.down("bank", "charge")


def test_what_fails_within_the_app_fails_the_test(monkeypatch):
    """No failure is lost in what runs beside the test."""
    trial = Trial(CLAIMS)

    async def look(_):
        raise ValueError("lost its way")

    monkeypatch.setattr("operations.alerts.stall_detector.StallDetector.check", look)
    with pytest.raises(ExceptionGroup, match="the app failed") as raised:
        trial.advance(hours=2)
    assert [str(error) for error in raised.value.exceptions] == ["lost its way"]


def test_a_message_comes_at_its_time(monkeypatch):
    """One that was sent for later is with nobody before."""
    trial, came = Trial(CLAIMS), []

    async def on_order_ready(*_):
        came.append(trial.now - BEGINS)

    monkeypatch.setattr("scheduler.triggers.Inbox.on_order_ready", on_order_ready)
    message = OrderReady(order_id="b00-00000000000000000000000001").to_bus()
    later = replace(message, not_before=BEGINS + timedelta(minutes=3))
    trial._world.run(trial._world.engine.adapters.bus.send([later, message]))
    trial.advance(hours=1)
    assert came == [timedelta(), timedelta(minutes=3)]


def test_a_trial_leaves_nothing_behind():
    """Its loop is closed when nobody has the trial any more, with whatever hangs in it."""
    trial = Trial(CLAIMS)
    trial.hang("bank")
    trial.submit(STORM)
    loop = trial._world.loop
    del trial
    gc.collect()  # an exception that waits for the collector may keep the frames it passed
    assert loop.is_closed()


async def test_a_trial_says_that_it_needs_a_plain_function():
    """Within a running loop its own cannot run."""
    with pytest.raises(RuntimeError, match="use it in a plain function"):
        Trial(CLAIMS)


def test_what_a_service_accepts_is_done_later_and_asked_for_again():
    """With the same key, and no failure counted; the agent declares that its service does so."""
    bank = replace(CLAIMS.agents[1], answer_within=timedelta(hours=1))
    business = replace(CLAIMS, agents=(CLAIMS.agents[0], bank))
    trial = Trial(business, step_timeout_seconds=20)
    trial.accept("bank", "pay")
    order = trial.submit(STORM)
    assert (order.state, trial.effects("bank")) == ("Pending", ["screen"])
    trial.advance(minutes=2)
    assert order.state == "Processed"
    assert trial.effects("bank") == ["screen", "pay"]
    assert any("bank accepted pay; it is asked again" in entry for entry in order.history)
    assert trial.inspect(order.id).failure_count == 0


def test_a_trial_that_nothing_was_done_with_ends_without_a_warning():
    """Such as one that refused its only order: its timers have never begun."""
    trial = Trial(CLAIMS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trial._finalizer()
        del trial
        gc.collect()
