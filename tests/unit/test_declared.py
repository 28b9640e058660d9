"""What a business declares is everywhere where a deployment needs it, or a check says at once where it is not."""

from core.business import Agent
from local.declared import faults
from shop.business import SHOP


def test_the_agents_of_the_shop_are_everywhere():
    """Queues, settings, Bicep and its parameters."""
    assert list(faults(SHOP.agents)) == []


def test_what_is_missing_of_a_new_agent_is_said_with_its_place():
    """All of it at once."""
    agent = Agent(name="gift-wrap", offers="gift-wrap", address="GIFT_WRAP_URL")
    assert [line.partition(":")[0] for line in faults([*SHOP.agents, agent])] == [
        "infra/queues.json",
        "infra/queues.json",
        "local.settings.template.json",
        "infra/modules/app.bicep",
        "infra/main.parameters.json",
    ]


def test_what_is_left_of_an_agent_that_is_gone_is_said():
    """Its queues would fill, and nobody would look."""
    without = [agent for agent in SHOP.agents if agent.name != "shipping"]
    gone = "belongs to no agent that the business declares"
    assert list(faults(without)) == [
        f"infra/queues.json: shipping-requests {gone}",
        f"infra/queues.json: shipping-responses {gone}",
    ]
