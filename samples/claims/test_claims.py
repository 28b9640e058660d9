"""What becomes of a claim when a service fails."""

import pytest

from engine.workflow import InvalidError
from samples.claims.business import CLAIMS, Claim, PolicyHolder
from testkit import Trial

CLAIM = Claim(
    claim_number="C-2041",
    policy_holder=PolicyHolder(name="Ada", email="ada@example.com"),
    amount="950.00",
    description="A storm took the roof",
)


def test_a_claim_is_paid() -> None:
    """Each operation takes effect once."""
    trial = Trial(CLAIMS)
    order = trial.submit(CLAIM)
    assert order.state == "Processed"
    assert trial.effects("assessor") == ["assess", "approve"]
    assert trial.effects("bank") == ["screen", "pay"]


def test_a_claim_that_cannot_be_paid_is_taken_back() -> None:
    """The assessor's work is undone, the last part first."""
    trial = Trial(CLAIMS)
    trial.refuse("bank", "pay", "account frozen")
    order = trial.submit(CLAIM)
    assert (order.outcome, order.reason) == ("undone", "pay: account frozen")
    assert trial.effects("assessor") == ["assess", "approve", "withdraw", "cancel"]


def test_a_claim_that_nobody_assesses_is_taken_back() -> None:
    """The assessment may have been made, so it is cancelled."""
    trial = Trial(CLAIMS)
    trial.hang("assessor", "assess")
    order = trial.submit(CLAIM)
    trial.advance(days=15)
    assert order.outcome == "undone"
    assert trial.effects("assessor") == ["cancel"]


def test_a_claim_waits_for_the_fraud_check() -> None:
    """When the bank is back, an operator lets the claim go on."""
    trial = Trial(CLAIMS)
    trial.down("bank", "screen")
    order = trial.submit(CLAIM)
    trial.advance(days=1)
    assert (order.outcome, order.steps["assess"]) == ("failed", "Completed")
    assert [alert.data["orderId"] for alert in trial.alerts()] == [order.id]
    trial.heal("bank")
    trial.act(order, "resubmit")
    assert order.state == "Processed"


def test_a_claim_for_nothing_is_refused() -> None:
    """The rule of the business names the field."""
    nothing = CLAIM.model_copy(update={"amount": "0.00"})
    with pytest.raises(InvalidError, match="amount: expected more than"):
        Trial(CLAIMS).submit(nothing)
