"""A test environment of a business: what an author's test can do to it, and learns of it."""

import gc
import random
import warnings
from dataclasses import replace
from datetime import timedelta

import pytest

from engine.alerts.events import STALLED
from engine.domain.causes import Code
from engine.domain.errors import InvalidError
from engine.domain.messages import OrderReady
from engine.workflow import (
    Agent,
    Call,
    Model,
    NonRetryable,
    Nothing,
    Operation,
    Retryable,
    Text,
    Workflow,
    application,
)
from rental.business import RENTAL, deposits, first_rentals, fleet, mail, registry
from samples.claims.business import CLAIMS, Claim, Euros, PolicyHolder
from shop.business import SHOP
from testkit import WorkflowTestEnvironment
from testkit.environment import BEGINS
from tests.support.acting import is_refused
from tests.support.builders import CONTENT

STORM = Claim(
    claim_number="C-2041",
    policy_holder=PolicyHolder(name="Ada", email="ada@example.com"),
    amount=Euros(amount="950.00", currency="EUR"),
    description="A storm took the roof",
)
DONE = {"assess": "Completed", "fraud": "Completed", "approve": "Completed", "pay": "Completed"}


def test_an_order_whose_services_answer_has_ended_at_once():
    """As a model or as JSON, in whichever workflow; each operation has taken effect once."""
    environment = WorkflowTestEnvironment(CLAIMS)
    order = environment.submit(STORM)
    again = environment.submit(STORM.model_dump(mode="json", by_alias=True), workflow="claim")
    assert (order.state, order.outcome, order.reason, order.steps) == (
        "Processed",
        None,
        None,
        DONE,
    )
    assert (again.state, again.id == order.id) == ("Processed", False)
    assert environment.effects("assessor", order) == ["assess", "approve"]
    assert environment.effects("bank") == ["screen", "pay"] * 2
    assert order.history[0] == "submitted: workflow claim"
    assert environment.now == BEGINS


@pytest.mark.proves("OPR-8")
def test_an_operator_ends_a_cooldown_early():
    """By raising the priority, also a second time; a date that the order's message chose stays."""
    environment = WorkflowTestEnvironment(CLAIMS)
    environment.down("bank", "screen")
    order = environment.submit(STORM)
    environment.advance(minutes=5)
    assert "cooldown 1 of 3" in order.history[-1]
    environment.act(order, "expedite")
    environment.advance(minutes=5)
    assert "cooldown 2 of 3" in order.history[-1]
    environment.heal("bank")
    environment.act(order, "expedite")
    assert order.state == "Processed"
    later = environment.submit(STORM, not_before=environment.now + timedelta(days=1))
    environment.act(later, "expedite")
    environment.advance(hours=23)
    assert later.state == "Pending"
    with is_refused(Code.EXPEDITED_ALREADY):
        environment.act(later, "expedite")


@pytest.mark.proves("SUB-8")
def test_a_customer_cancels_at_the_endpoint_until_it_is_too_late():
    """Until the step that the endpoint names; a workflow without an endpoint has no customers."""
    environment = WorkflowTestEnvironment(CLAIMS)
    environment.hang("bank", "screen")
    order = environment.submit(STORM)
    environment.cancel(order)
    environment.advance(minutes=30)
    assert (order.outcome, order.reason) == ("undone", "cancelled by the customer")
    environment.heal()
    done = environment.submit(STORM)
    with is_refused(Code.TOO_LATE_TO_CANCEL):
        environment.cancel(done)
    tea = WorkflowTestEnvironment(SHOP)
    with pytest.raises(LookupError, match="has no endpoint"):
        tea.cancel(tea.submit(CONTENT))


@pytest.mark.proves("FLT-12")
def test_orders_in_flight_are_finished_by_another_version_of_the_app():
    """With the steps that they came with; new ones go the new way, to agents that were not there."""
    before = application(first_rentals, agents=[fleet, registry, deposits, mail])
    environment = WorkflowTestEnvironment(before)
    environment.hang("registry")
    old = environment.submit(RENTAL.sample.payload)
    environment.upgrade(RENTAL)
    environment.heal()
    environment.advance(minutes=10)
    new = environment.submit(RENTAL.sample.payload)
    assert (old.state, list(old.steps)) == ("Processed", ["car", "licence", "deposit", "confirm"])
    assert (new.state, "insurance" in new.steps) == ("Processed", True)
    assert environment.effects("mail") == ["confirm", "confirm-insured"]
    assert environment.effects("insurer", old) == []


def test_every_business_can_be_tried():
    """The shop too, with all of its services."""
    environment = WorkflowTestEnvironment(SHOP)
    order = environment.submit(CONTENT)
    assert order.state == "Processed"
    assert environment.effects("payment", order) == ["authorise", "capture"]


def test_a_refusal_is_final_and_what_was_done_is_taken_back():
    """With the reason that the test gives, or else that of the agent; the last effect comes first."""
    environment = WorkflowTestEnvironment(CLAIMS)
    environment.refuse("bank", "pay", "account frozen")
    order = environment.submit(STORM)
    assert (order.state, order.outcome, order.reason) == ("Error", "undone", "pay: account frozen")
    assert environment.effects("assessor") == ["assess", "approve", "withdraw", "cancel"]
    environment.refuse("bank", "pay")
    assert environment.submit(STORM).reason == "pay: account closed"


def test_an_order_that_nobody_answers_is_taken_back_in_the_end():
    """Each attempt has its time; half a month takes moments."""
    environment = WorkflowTestEnvironment(CLAIMS)
    environment.hang("assessor", "approve")
    order = environment.submit(STORM)
    assert (order.state, order.steps["approve"]) == ("Processing", "Running")
    environment.advance(days=15)
    assert (order.state, order.outcome) == ("Error", "undone")
    assert environment.effects("assessor") == ["assess", "withdraw", "cancel"]
    assert environment.now == BEGINS + timedelta(days=15)
    assert any("approve attempt 3 started" in line for line in order.history)
    assert order.reason == "approve: approve timed out 3 times; no answer: TimeoutError"


def test_timers_run_when_something_is_due():
    """A cooldown of days ends within an interval of its time, and not before."""
    environment = WorkflowTestEnvironment(CLAIMS, cooldown_seconds=10 * 86_400)
    environment.hang("bank", "screen")
    order = environment.submit(STORM)
    environment.advance(days=1)
    environment.heal("bank", "screen")
    environment.advance(days=8, hours=23)
    assert order.state == "Pending"
    environment.advance(hours=1, minutes=3)
    assert order.state == "Processed"


def test_a_service_that_is_away_for_a_moment_is_called_again():
    """The agent's own retries go by the held clock; nobody counts a failure."""
    environment = WorkflowTestEnvironment(CLAIMS)
    environment.down("bank")
    order = environment.submit(STORM)
    environment.advance(seconds=5)
    environment.heal()
    environment.advance(seconds=10)
    assert order.state == "Processed"
    assert not [line for line in order.history if line.startswith("recovered")]


def test_an_effect_whose_answer_came_too_late_stands_once():
    """The attempts after it have the same key."""
    environment = WorkflowTestEnvironment(CLAIMS)
    environment.late("bank", "pay")
    order = environment.submit(STORM)
    environment.advance(seconds=29)
    assert environment.effects("bank") == ["screen"]
    environment.advance(seconds=2)
    assert environment.effects("bank") == ["screen", "pay"]
    environment.heal("bank")
    environment.advance(minutes=10)
    assert order.state == "Processed"
    assert environment.effects("bank") == ["screen", "pay"]


def test_the_last_setting_of_an_operation_holds():
    """A fault of all operations and one of a single one may follow each other in any order."""
    environment = WorkflowTestEnvironment(CLAIMS)
    environment.refuse("bank")
    environment.hang("bank", "screen")
    order = environment.submit(STORM)
    assert order.state == "Processing"
    environment.refuse("bank", reason="closed")
    environment.advance(minutes=1)
    assert (order.state, order.reason) == ("Error", "closed")


def test_an_operator_acts_on_an_order():
    """What makes no sense is refused, and what there is not is named."""
    environment = WorkflowTestEnvironment(CLAIMS)
    environment.refuse("bank", "screen")
    order = environment.submit(STORM)
    assert (order.outcome, order.steps["fraud"]) == ("failed", "Failed")
    environment.act(order, "skip", step="fraud")
    assert order.steps == DONE | {"fraud": "Skipped"}
    with is_refused(Code.NOT_IN_ERROR, state="Processed"):
        environment.act(order, "resubmit")
    with pytest.raises(LookupError, match="no action mend; there are resubmit"):
        environment.act(order, "mend")


def test_alerts_reach_the_operators_as_time_passes():
    """Of orders that failed, and of what nobody looks after: an order that is held for a day."""
    environment = WorkflowTestEnvironment(CLAIMS)
    environment.refuse("bank", "screen")
    failed = environment.submit(STORM)
    environment.hang("bank", "screen")
    held = environment.submit(STORM)
    environment.act(held, "hold")
    environment.heal()
    assert environment.alerts() == []
    environment.advance(minutes=1)
    assert [alert.subject for alert in environment.alerts()] == [f"orders/{failed.id}"]
    environment.advance(hours=23)
    known = len(environment.alerts())
    environment.advance(hours=2)
    (last,) = environment.alerts()[known:]
    assert (last.type, last.subject, last.data["orders"]) == (STALLED, "orders-held", [held.id])


def test_two_environments_that_are_given_the_same_go_the_same_way():
    """Whatever dice the test throws beside them, which the environments leave alone."""

    def course(seed):
        random.seed(seed)
        environment = WorkflowTestEnvironment(CLAIMS)
        environment.down("bank")
        order = environment.submit(STORM)
        environment.advance(seconds=3.3)
        environment.heal()
        environment.advance(hours=1)
        return [entry.at for entry in environment.inspect(order.id).history], random.random()

    (one, thrown), (other, _) = course(1), course(2)
    random.seed(1)
    assert (one, thrown) == (other, random.random())


def test_the_environment_says_nothing():
    """A setting is what the test says it is; what is no setting is named."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAILURE_THRESHOLD", "1")
        environment = WorkflowTestEnvironment(CLAIMS, step_timeout_seconds=5)
    environment.hang("assessor", "assess")
    order = environment.submit(STORM)
    environment.advance(seconds=15)
    assert order.state != "Error"
    environment.advance(minutes=2)
    assert (order.state, order.outcome) == ("Error", "undone")
    with pytest.raises(TypeError, match="no setting patience"):
        WorkflowTestEnvironment(CLAIMS, patience=3)


def test_an_order_that_the_app_refuses_is_refused_with_every_fault():
    """And a service or operation that there is not is named, with those that there are."""
    environment = WorkflowTestEnvironment(CLAIMS)
    with pytest.raises(InvalidError) as raised:
        environment.submit({"claimNumber": "2041", "amount": 950}, workflow="claims")
    assert len(raised.value.faults) > 3
    with pytest.raises(LookupError, match="no agent banks; there are assessor, bank"):
        environment.effects("banks")
    with pytest.raises(LookupError, match="bank has no operation charge; it has pay, recall"):
        environment.down("bank", "charge")


def test_what_fails_within_the_app_fails_the_test(monkeypatch):
    """No failure is lost in what runs beside the test."""
    environment = WorkflowTestEnvironment(CLAIMS)

    async def look(_):
        raise ValueError("lost its way")

    monkeypatch.setattr("operations.alerts.stall_detector.StallDetector.check", look)
    with pytest.raises(ExceptionGroup, match="the app failed") as raised:
        environment.advance(hours=2)
    assert [str(error) for error in raised.value.exceptions] == ["lost its way"]


def test_a_message_comes_at_its_time(monkeypatch):
    """One that was sent for later is with nobody before."""
    environment, came = WorkflowTestEnvironment(CLAIMS), []

    async def on_order_ready(*_):
        came.append(environment.now - BEGINS)

    monkeypatch.setattr("scheduler.triggers.Inbox.on_order_ready", on_order_ready)
    message = OrderReady(order_id="b00-00000000000000000000000001").to_bus()
    later = replace(message, not_before=BEGINS + timedelta(minutes=3))
    environment._world.run(environment._world.engine.adapters.bus.send([later, message]))
    environment.advance(hours=1)
    assert came == [timedelta(), timedelta(minutes=3)]


def test_an_environment_leaves_nothing_behind():
    """Its loop is closed when nobody has the environment any more, with whatever hangs in it."""
    environment = WorkflowTestEnvironment(CLAIMS)
    environment.hang("bank")
    environment.submit(STORM)
    loop = environment._world.loop
    del environment
    gc.collect()  # an exception that waits for the collector may keep the frames it passed
    assert loop.is_closed()


async def test_an_environment_says_that_it_needs_a_plain_function():
    """Within a running loop its own cannot run."""
    with pytest.raises(RuntimeError, match="use it in a plain function"):
        WorkflowTestEnvironment(CLAIMS)


def test_what_a_service_accepts_is_done_later_and_requested_again():
    """With the same key, and no failure counted; the agent declares that its service does so."""
    bank = replace(CLAIMS.agents[1], answer_within=timedelta(hours=1))
    business = replace(CLAIMS, agents=(CLAIMS.agents[0], bank))
    environment = WorkflowTestEnvironment(business, step_timeout_seconds=20)
    environment.accept("bank", "pay")
    order = environment.submit(STORM)
    assert (order.state, environment.effects("bank")) == ("Pending", ["screen"])
    environment.advance(minutes=2)
    assert order.state == "Processed"
    assert environment.effects("bank") == ["screen", "pay"]
    assert any("bank accepted pay, and is polled again" in entry for entry in order.history)
    assert environment.inspect(order.id).failure_count == 0


def test_an_environment_that_nothing_was_done_with_ends_without_a_warning():
    """Such as one that refused its only order: its timers have never begun."""
    environment = WorkflowTestEnvironment(CLAIMS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        environment._finalizer()
        del environment
        gc.collect()


class Sum(Model):
    """What is asked."""

    item: Text


class Charged(Model):
    """What is answered."""

    reference: str


class Card(Agent):
    """A provider that is called by functions."""

    charge = Operation(Sum, Charged)
    refund = Operation(Sum)


def paid_by_functions(calls):
    """A business whose agent is a library, and what its functions were called with; the first card is declined."""
    card = Card("card", reads=("CARD_KEY",))
    flow = Workflow("sale", Sum)

    @card.activity(Card.charge)
    def charge(call: Call, ask: Sum) -> Charged:
        calls.append((call.step, call.settings["CARD_KEY"], ask.item))
        if ask.item == "bad":
            raise NonRetryable("declined")
        if ask.item == "slow" and len(calls) == 1:
            raise Retryable(timedelta(seconds=5))
        return Charged(reference="r-1")

    @card.activity(Card.refund)
    async def refund(call: Call, ask: Sum) -> Nothing:
        calls.append((call.step, call.kept(Charged).reference, ask.item))
        return Nothing()

    @flow.step(card.charge, undo=card.refund)
    def pay(sale: Sum) -> Sum:
        return sale

    return application(flow, agents=[card], sample=Sum(item="tea"))


def test_functions_of_the_business_are_called_where_a_test_gives_their_settings():
    """What they raise means what it means in an app, and what took effect is kept (newcomer A 3)."""
    calls = []
    environment = WorkflowTestEnvironment(
        paid_by_functions(calls), call_functions_with={"CARD_KEY": "a-key"}
    )
    order = environment.submit(Sum(item="tea"))
    assert (order.state, calls) == ("Processed", [("pay", "a-key", "tea")])
    assert environment.effects("card", order) == ["charge"]
    refused = environment.submit(Sum(item="bad"))
    assert (refused.state, refused.steps) == ("Error", {"pay": "Failed"})
    assert environment.effects("card", refused) == []
    calls.clear()
    slow = environment.submit(Sum(item="slow"))
    assert slow.state != "Processed"
    environment.advance(minutes=2)
    assert (slow.state, len(calls)) == ("Processed", 2)
    environment.hang("card", "charge")
    hangs = environment.submit(Sum(item="tea"))
    environment.advance(seconds=10)
    assert hangs.state == "Processing"
    environment.heal("card", "charge")
    environment.advance(minutes=10)
    assert hangs.state == "Processed"


def test_functions_that_are_not_called_are_named_in_a_warning():
    """They are simulated, so a fault in them stays unseen (newcomer A 3)."""
    calls = []
    with pytest.warns(UserWarning, match=r"card\.charge, card\.refund") as warned:
        environment = WorkflowTestEnvironment(paid_by_functions(calls))
    assert warned[0].filename == __file__
    assert environment.submit(Sum(item="bad")).state == "Processed"
    assert calls == []
