"""The sample order of a business, by which people try a deployment out."""

from dataclasses import replace

import pytest

from engine.domain.errors import InvalidError, RefusedError
from engine.domain.messages import Submission, decode
from samples.claims.business import CLAIMS
from samples.simulator.samples import SampleRequest, sample_order, simulated_agents
from shop.business import SHOP
from tests.support.builders import ORDER_ID
from tests.support.simulated_world import EVERY_SERVICE

CLAIMS_SERVICES = ("assessor", "bank")


def test_a_service_is_simulated_if_its_address_is_that_of_a_simulator():
    """By the name of the agent, wherever the app is."""
    addresses = {
        "payment": "http://127.0.0.1:7071/simulator/payment",
        "inventory": "https://app.example.com/simulator/inventory/",
        "shipping": "https://shipping.example.com/v2",
        "payment-backup": "https://app.example.com/simulator/payment",
    }
    assert simulated_agents(addresses) == ["payment", "inventory"]


def test_a_sample_says_whom_every_step_asks_for_what():
    """Also the agents that stand in for others, and what becomes of an order that is refused it."""
    order = sample_order(SHOP, SHOP.agents, EVERY_SERVICE)
    assert [(step.name, step.services, step.action, step.waits) for step in order.steps] == [
        ("stock", ["inventory"], "reserve", False),
        ("payment", ["payment", "payment-backup"], "authorise", True),
        ("shipment", ["shipping"], "ship", False),
        ("capture", ["payment", "payment-backup"], "capture", True),
    ]
    claim = sample_order(CLAIMS, CLAIMS.agents, CLAIMS_SERVICES)
    assert [(step.name, step.waits) for step in claim.steps] == [
        ("assess", False),
        ("fraud", True),
        ("approve", False),
        ("pay", False),
    ]


@pytest.mark.parametrize("real", EVERY_SERVICE)
async def test_nothing_is_ordered_of_a_service_that_is_real(world, real):
    """Whichever of them it is."""
    called = [name for name in EVERY_SERVICE if name != real]
    samples = world.samples(called=called)
    with pytest.raises(RefusedError):
        await samples.place(SampleRequest())
    assert world.submissions.texts == []
    overview = await samples.overview()
    assert ([service["name"] for service in overview["services"]], overview["sample"]) == (
        called,
        None,
    )


def test_an_agent_that_is_not_deployed_does_not_matter():
    """Nobody can ask it."""
    deployed = [agent for agent in SHOP.agents if agent.name != "payment-backup"]
    order = sample_order(SHOP, deployed, [agent.name for agent in deployed])
    assert [step.services for step in order.steps] == [
        ["inventory"],
        ["payment"],
        ["shipping"],
        ["payment"],
    ]


async def test_a_business_without_a_sample_has_none(world):
    """It can be broken all the same."""
    samples = world.samples(replace(SHOP, sample=None))
    with pytest.raises(RefusedError):
        await samples.place(SampleRequest())
    overview = await samples.overview()
    assert (len(overview["services"]), overview["sample"]) == (4, None)


@pytest.mark.parametrize(
    ("business", "services"), [(SHOP, EVERY_SERVICE), (CLAIMS, CLAIMS_SERVICES)]
)
async def test_a_sample_is_submitted_as_any_sender_would(world, business, services):
    """What the business checks in a submission, it finds right."""
    assert await world.samples(business, services).place(SampleRequest()) == ORDER_ID
    (text,) = world.submissions.texts
    submitted = decode(Submission, text)
    assert (submitted.order_id, submitted.placed_at, submitted.workflow) == (
        ORDER_ID,
        world.now,
        None,
    )
    business.payload.check(submitted.payload)
    assert (await world.samples(business, services).overview())["services"][0]["faults"] == []


async def test_a_sample_may_be_refused_a_step(world):
    """By every service that may be asked for it, before it is placed; no other order is."""
    await world.samples().place(SampleRequest(refuse="capture"))
    assert len(world.submissions.texts) == 1
    for service in ("payment", "payment-backup"):
        assert (await world.call("authorise", f"{ORDER_ID}:payment", service)).status == 200
        assert (await world.call("capture", f"{ORDER_ID}:capture", service)).status == 422
        assert (await world.call("capture", "o2:capture", service)).status == 200


async def test_a_step_that_the_sample_lacks_is_reported(world):
    """Nothing is placed."""
    with pytest.raises(InvalidError, match="refuse: the sample order has no such step"):
        await world.samples().place(SampleRequest(refuse="teatime"))
    assert world.submissions.texts == []
