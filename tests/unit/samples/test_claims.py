"""The second business: what it makes of a claim, and what of it anybody is told."""

from datetime import timedelta

import pytest

from engine.declarations.business import offers_of
from engine.declarations.workflow import StepDefaults
from engine.domain import exact_json
from engine.domain.errors import InvalidError
from engine.domain.submitted_order import ERASED, OnFailure
from samples.claims.business import CLAIMS
from samples.simulator.rules import simulated
from tests.support.builders import orders

(CLAIM,) = CLAIMS.workflows.all
PAYLOAD = CLAIMS.payload
STORM = {
    "claimNumber": "C-2041",
    "policyHolder": {"name": "Ada", "email": "ada@example.com"},
    "amount": {"amount": "950.00", "currency": "EUR"},
    "description": "The storm took Ada's roof",
}
RESULTS = {"assess": {"reference": "a"}, "approve": {"reference": "b"}}


def test_every_fault_of_a_claim_is_named():
    """At once; a claim without one is taken."""
    PAYLOAD.check(STORM)
    wrong = STORM | {"claimNumber": "2041", "amount": 950, "items": []}
    with pytest.raises(InvalidError) as raised:
        PAYLOAD.check(wrong)
    assert {str(fault).partition(":")[0] for fault in raised.value.faults} == {
        "claimNumber",
        "amount",
        "items",
    }


@pytest.mark.parametrize("blank", [" ", "\u200b"])
def test_the_name_of_who_is_insured_can_be_seen(blank):
    """It is a fault like any other."""
    with pytest.raises(InvalidError, match=r"policyHolder\.name: "):
        PAYLOAD.check(STORM | {"policyHolder": STORM["policyHolder"] | {"name": blank}})


def test_what_is_left_of_an_erased_claim_is_nothing_personal():
    """It is no longer anybody's; erased again it is the same."""
    erased = PAYLOAD.erased(STORM)
    assert [value for value in PAYLOAD.personal(STORM) if value in exact_json.write(erased)] == []
    assert set(PAYLOAD.personal(erased)) == {ERASED}
    assert PAYLOAD.erased(erased) == erased
    assert PAYLOAD.belongs_to(STORM, "ADA@example.com")
    assert not PAYLOAD.belongs_to(erased, "ada@example.com")


def test_its_workflow_can_be_carried_out_by_its_agents():
    """Their simulated services do and take back all that it asks for."""
    CLAIMS.workflows.check(offers_of(CLAIMS.agents))
    services = simulated(CLAIMS)
    assert {agent: set(service.actions) for agent, service in services.items()} == {
        "assessor": {"assess", "cancel", "approve", "withdraw"},
        "bank": {"screen", "pay", "recall"},
    }
    assert services["bank"].undoes == {"recall": "pay"}


def test_no_service_learns_whose_claim_it_is():
    """Only the assessor learns what happened."""
    order = orders.new(payload=STORM).submitted
    requests = {
        step.name: step.request(order, {name: RESULTS[name] for name in step.uses})
        for step in CLAIM.steps
    }
    assert "ada@example.com" not in exact_json.write(requests)
    assert [name for name, content in requests.items() if "description" in content] == ["assess"]
    assert (requests["approve"]["assessment"], requests["pay"]["approval"]) == ("a", "b")


def test_the_fraud_check_rests_while_its_service_is_away():
    """As long as the settings say; meanwhile nothing of the claim is given up, or taken back."""
    hour = timedelta(hours=1)
    steps = CLAIM.initial_steps(
        StepDefaults(timeout=timedelta(seconds=5), threshold=3, cooldown=hour)
    )
    assert {
        step.name: step.rules.cooldown
        for step in steps
        if step.rules.on_failure is OnFailure.COOLDOWN
    } == {"fraud": hour}
