"""What a business declares reaches every place that needs it, or a check names the place."""

import pytest

from core.business import Agent
from local.business import DEPLOYED, named
from local.declared import faults
from local.ports import StackError
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
        "infra/hooks/preprovision.sh",
        "infra/hooks/preprovision.ps1",
    ]


def test_what_is_left_of_an_agent_that_is_gone_is_said():
    """Its queues would fill, and nobody would look."""
    without = [agent for agent in SHOP.agents if agent.name != "shipping"]
    assert [line.partition(" ")[0] for line in faults(without)] == [
        "infra/queues.json:",
        "infra/queues.json:",
        "local.settings.template.json:",
        "infra/modules/app.bicep:",
        "infra/main.parameters.json:",
        "infra/hooks/preprovision.sh:",
        "infra/hooks/preprovision.ps1:",
    ]


def test_a_business_is_found_by_its_name_and_its_app_beside_it():
    """The shop's app is the repository's own."""
    assert named(DEPLOYED) == (SHOP, None)
    business, app = named("examples.claims.business:CLAIMS")
    assert [agent.name for agent in business.agents] == ["assessor", "bank"]
    assert app
    assert app.name == "claims"


@pytest.mark.parametrize(
    "name", ["", "shop", "shop.no:SHOP", "shop.business:TEA", "shop.business:AGENTS"]
)
def test_a_name_of_no_business_is_said_with_what_is_expected(name):
    """However wrong it is."""
    with pytest.raises(StackError, match=f"^BUSINESS={name}: .*{DEPLOYED}"):
        named(name)
