"""Services as they are, through every fault: one that repeats refusals for a day, one that accepts and forgets."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bench.workflows import MEASURED
from engine.declarations.business import AgentDefinition, Application, Sample
from engine.declarations.workflow import StepDefinition, WorkflowDefinition, Workflows
from engine.domain.events import OrderEnded
from engine.domain.submitted_order import OnFailure
from engine.words.causes import words_of
from testkit import FoundError, WorkflowTestEnvironment
from testkit.exploration.explorer import explore
from tests.exploration.seeded_faults import SEEDED_FAULTS
from tests.exploration.worlds import CARRIER_LIKE, DAY, STRIPE_LIKE

SERVICES = {STRIPE_LIKE: "~:1", CARRIER_LIKE: "~"}
"""With what an idempotency key ends after a refusal and a resubmit: of a new round, or of the same."""
ALL_ACTS = ("resubmit", "retry-with-new-key", "skip", "cancel")


class Resubmitted:
    """Notes what has happened at the service when an order is Processed that was refused and then resubmitted."""

    def __init__(self):
        self.effects = set()

    def watch(self, world, following):
        del following
        events = [entry.event for entry in world.history()]
        refused = any(
            isinstance(event, OrderEnded) and words_of(event.cause) == "refused"
            for entry in world.history()
            for event in entry.events
        )
        if refused and "resubmitted" in events and events[-1] == "processed":
            self.effects.add(world.effects)


def expected(world, order_id):
    """What happened at the service: one effect, once."""
    return {frozenset({f"{order_id}:a{SERVICES[world].removeprefix('~')} do"})}


@pytest.mark.proves("AGT-3", "AGT-11", "AGT-12")
@pytest.mark.parametrize("world", SERVICES, ids=["like Stripe", "like a carrier"])
def test_a_declined_card_is_resubmitted_and_nothing_happens_twice(world):
    """Whatever goes wrong beside: at one a new round begins, at the other the same key is good."""
    seen, beginning = Resubmitted(), world.beginning()
    with world.running():
        explored = explore(beginning, world.bounds(), watch=seen.watch)
    assert explored.whole
    assert seen.effects == expected(world, beginning.order_id)


@pytest.mark.soak
@pytest.mark.parametrize("world", SERVICES, ids=["like Stripe", "like a carrier"])
def test_nothing_happens_twice_whatever_operators_do(world):
    """They resubmit, renew, skip and cancel, two things in each course of events."""
    world = replace(world, acts=2, operator=ALL_ACTS)
    with world.running():
        explored = explore(world.beginning(), world.bounds())
    assert explored.whole
    assert explored.happened("commits “retried-with-new-key”")
    assert explored.happened("commits “undone”")


@pytest.mark.parametrize(
    ("label", "world"),
    [
        ("AGT-3 begins a round in doubt", STRIPE_LIKE),
        ("AGT-12 sends what is forgotten", STRIPE_LIKE),
        ("AGT-12 sends what is forgotten", CARRIER_LIKE),
    ],
)
def test_a_second_effect_would_be_found(label, world):
    """Where a round begins in doubt, or a call is sent under a key that may be forgotten."""
    seed, _ = SEEDED_FAULTS[label]
    with seed(), world.running(), pytest.raises(FoundError, match=label.split()[0]):
        explore(world.beginning(), world.bounds())


def paid_and_shipped():
    """A business with both: the payment goes to the one, the parcel to the other."""
    pay = StepDefinition(
        name="pay",
        capability="payments",
        operation="charge",
        compensation="refund",
        request=lambda order, results: {},
        result_fields=("reference",),
        on_failure=OnFailure.ERROR,
    )
    ship = replace(
        pay,
        name="ship",
        capability="parcels",
        operation="ship",
        compensation="stop",
        after=("pay",),
    )
    stripe_like = {"remembers_refusals": True, "keys_last": DAY}
    carrier_like = {
        "answer_within": timedelta(minutes=5),
        "keys_last": timedelta(hours=2),
    }
    return Application(
        workflows=Workflows(WorkflowDefinition(name="sale", version=1, steps=(pay, ship))),
        default_workflow="sale",
        agents=[
            AgentDefinition(name="payments", offers="payments", address="PAYMENTS", **stripe_like),
            AgentDefinition(name="parcels", offers="parcels", address="PARCELS", **carrier_like),
        ],
        payload=MEASURED.payload,
        sample=Sample(payload=MEASURED.sample.payload),
    )


def nothing_is_shipped_unpaid(order):
    """An invariant of the author."""
    assert "ship" not in order.standing or "pay" in order.standing


@pytest.mark.soak
def test_an_author_explores_a_business_that_uses_both():
    """To the end of every course of events, with one fault and a resubmit at any moment."""
    coverage = WorkflowTestEnvironment(paid_and_shipped()).explore(
        faults=1, acts=["resubmit"], invariant=nothing_is_shipped_unpaid
    )
    assert coverage.whole
    assert coverage.explored.happened("the service accepts it, to do it later")
    assert coverage.ends["Processed"] > 0
