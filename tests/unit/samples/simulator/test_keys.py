"""What simulated services remember of a key, and for how long."""

from dataclasses import replace
from datetime import timedelta

import pytest

from engine.declarations.business import Application
from samples.simulator.rules import simulated
from shop.business import SHOP
from tests.support.builders import seconds
from tests.support.simulated_world import World

DAY = timedelta(hours=24)


def declared(world, **how) -> World:
    """The world whose payment service is declared like that."""
    agents = [replace(agent, **how) if agent.name == "payment" else agent for agent in SHOP.agents]
    business: Application = replace(SHOP, agents=agents)
    world.host = replace(world.host, services=simulated(business))
    return world


async def test_an_accepted_call_is_done_when_it_is_repeated(world):
    """Until then it says when to ask, and nothing has happened."""
    await world.fault("accept", latencyMs=5000)
    first = await world.call()
    assert (first.status, first.retry_after, (await world.effects())[1]) == (202, seconds(5), [])
    world.now += seconds(2)
    assert (await world.call()).retry_after == seconds(3)
    world.now += seconds(3)
    done = await world.call()
    assert (done.status, done.result["action"]) == (200, "authorise")
    assert (await world.effects())[1] == ["authorise"]


async def test_what_was_accepted_and_then_undone_is_not_done(world):
    """The undo may come while it is under way."""
    await world.fault("accept", match={"action": "authorise"})
    assert (await world.call()).status == 202
    assert (await world.call("void")).status == 200
    world.now += seconds(10)
    assert (await world.call()).status == 410


async def test_a_refusal_that_is_remembered_is_repeated_for_its_key_alone(world):
    """Whatever has changed since: the fault is lifted, and another key is not refused."""
    await world.fault("remember")
    assert (await world.call()).status == 422
    await world.fault("none")
    again = await world.call()
    assert (again.status, again.reason) == (422, "card declined")
    assert (await world.call(key="o1:payment:1")).status == 200
    assert await world.effects("o1") == (3, ["authorise"])


async def test_an_undone_key_stays_undone(world):
    """It is not refused for another reason."""
    await world.call("void")
    await world.fault("remember")
    assert (await world.call()).status == 410


@pytest.mark.parametrize("mode", ["none", "slow"])
async def test_a_service_forgets_after_the_time_that_is_declared(world, mode):
    """Whatever else is the matter with it."""
    declared(world, keys_last=DAY)
    await world.fault(mode)
    await world.call()
    world.now += DAY - seconds(2)
    await world.call()
    assert (await world.effects())[1] == ["authorise"]
    world.now += seconds(4)
    await world.call()
    assert (await world.effects())[1] == ["authorise", "authorise"]


async def test_a_refusal_is_forgotten_with_its_key(world):
    """And so is that it was undone."""
    declared(world, remembers_refusals=True, keys_last=DAY)
    await world.fault("reject")
    assert (await world.call()).status == 422
    await world.fault("none")
    assert (await world.call()).status == 422
    world.now += DAY + seconds(1)
    assert (await world.call()).status == 200


@pytest.mark.parametrize("mode", ["none", "reject"])
async def test_a_service_that_compares_refuses_a_key_with_other_content(world, mode):
    """Whether the first call was done or refused; the request is wrong, and no card is declined."""
    declared(world, remembers_refusals=True)
    await world.fault(mode)
    await world.call(skus=("TEA",))
    other = await world.call(skus=("CUP",))
    assert (other.status, other.reason) == (400, "the key was used before with different content")
    assert (await world.call(skus=("TEA",))).status == (422 if mode == "reject" else 200)
