"""Tests of claims, and of failures of their services."""

import pytest

from engine.workflow import InvalidError
from samples.claims.business import CLAIMS, Claim, Euros, PolicyHolder
from testkit import WorkflowTestEnvironment

CLAIM = Claim(
    claim_number="C-2041",
    policy_holder=PolicyHolder(name="Ada", email="ada@example.com"),
    amount=Euros(amount="950.00", currency="EUR"),
    description="A storm took the roof",
)


def test_a_claim_is_paid() -> None:
    """Each operation takes effect once."""
    environment = WorkflowTestEnvironment(CLAIMS)
    order = environment.submit(CLAIM)
    assert order.state == "Processed"
    assert environment.effects("assessor") == ["assess", "approve"]
    assert environment.effects("bank") == ["screen", "pay"]


def test_a_claim_that_cannot_be_paid_is_taken_back() -> None:
    """The assessor's work is undone in the reverse order."""
    environment = WorkflowTestEnvironment(CLAIMS)
    environment.refuse("bank", "pay", "account frozen")
    order = environment.submit(CLAIM)
    assert (order.outcome, order.reason) == ("undone", "pay: account frozen")
    assert environment.effects("assessor") == ["assess", "approve", "withdraw", "cancel"]


def test_a_claim_that_nobody_assesses_is_taken_back() -> None:
    """The assessment may have been made, so it is cancelled."""
    environment = WorkflowTestEnvironment(CLAIMS)
    environment.hang("assessor", "assess")
    order = environment.submit(CLAIM)
    environment.advance(days=15)
    assert order.outcome == "undone"
    assert environment.effects("assessor") == ["cancel"]


def test_a_claim_waits_for_the_fraud_check() -> None:
    """When the bank works again, an operator resubmits the claim."""
    environment = WorkflowTestEnvironment(CLAIMS)
    environment.down("bank", "screen")
    order = environment.submit(CLAIM)
    environment.advance(days=1)
    assert (order.outcome, order.steps["assess"]) == ("failed", "Completed")
    assert [alert.data["orderId"] for alert in environment.alerts()] == [order.id]
    environment.heal("bank")
    environment.act(order, "resubmit")
    assert order.state == "Processed"


def test_a_claim_for_nothing_is_refused() -> None:
    """The rule of the business names the field."""
    nothing = CLAIM.model_copy(update={"amount": Euros(amount="0.00", currency="EUR")})
    with pytest.raises(InvalidError, match="amount: expected more than"):
        WorkflowTestEnvironment(CLAIMS).submit(nothing)
