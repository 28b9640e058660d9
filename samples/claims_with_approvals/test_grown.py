"""Tests of each course of a claim, and of its drawing in the README."""

from pathlib import Path

import pytest

from engine.workflow import InvalidError
from engine.workflow.drawing import mermaid
from samples.claims_with_approvals.business import (
    GROWN,
    Approval,
    Claimant,
    ClaimWithApprovals,
    Euro,
    Photographs,
)
from testkit import OrderUnderTest, Seen, WorkflowTestEnvironment

ROOF = ClaimWithApprovals(
    claim_number="C-2041",
    policy_holder=Claimant(name="Ada", email="ada@example.com"),
    amount=Euro(amount="950.00", currency="EUR"),
    description="A storm took the roof",
)
COSTLY = ROOF.model_copy(update={"amount": Euro(amount="95000.00", currency="EUR")})
PICTURES = Photographs(urls=["https://pictures.example/roof.jpg"])


def photographed(environment: WorkflowTestEnvironment, claim: ClaimWithApprovals) -> OrderUnderTest:
    """Submit a claim, and send photographs on the second day."""
    order = environment.submit(claim)
    environment.advance(days=1)
    environment.answer(order, "photographs", PICTURES)
    return order


def test_a_small_claim_is_paid_once_there_are_photographs() -> None:
    """No approval is needed. No service is called until the customer answers."""
    environment = WorkflowTestEnvironment(GROWN)
    order = environment.submit(ROOF)
    environment.advance(days=4)
    assert (order.state, environment.effects("assessor"), environment.effects("bank")) == (
        "Processing",
        [],
        [],
    )
    environment.answer(order, "photographs", PICTURES)
    assert (order.state, order.steps["approval"]) == ("Processed", "Skipped")
    assert environment.effects("assessor") == ["assess"]
    assert sorted(environment.effects("bank")) == ["pay", "screen"]
    assert environment.effects("post") == ["tell"]


def test_a_customer_who_says_nothing_is_reminded_twice() -> None:
    """Photographs count until the end of the fifteenth day. After that, the claim is undone."""
    environment = WorkflowTestEnvironment(GROWN)
    slow, silent = environment.submit(ROOF), environment.submit(ROOF)
    environment.advance(days=14)
    environment.answer(slow, "photographs", PICTURES)
    environment.advance(days=2)
    assert (slow.state, silent.outcome) == ("Processed", "undone")
    requests = [text for text in silent.history if "photographs waits for" in text]
    assert len(requests) == 3
    assert environment.effects("assessor", silent) == []


def test_a_customer_who_has_no_photographs_ends_the_claim() -> None:
    """A refusal is an answer, so the claim waits no longer."""
    environment = WorkflowTestEnvironment(GROWN)
    order = environment.submit(ROOF)
    environment.answer(order, "photographs", refusal="there are none")
    assert (order.outcome, order.reason) == ("undone", "photographs: there are none")


def test_photographs_are_checked() -> None:
    """Every fault is named, and the claim still waits."""
    environment = WorkflowTestEnvironment(GROWN)
    order = environment.submit(ROOF)
    with pytest.raises(InvalidError, match=r"answer\.urls"):
        environment.answer(order, "photographs", {"urls": []})
    assert order.steps["photographs"] == "Running"


def test_above_the_limit_a_person_approves() -> None:
    """The claim waits for approval after its assessment and screening.

    A part of it may be approved.
    """
    environment = WorkflowTestEnvironment(GROWN)
    order = photographed(environment, COSTLY)
    assert order.steps["approval"] == "Running"
    assert environment.effects("bank") == ["screen"]
    environment.answer(order, "approval", Approval(limit=Euro(amount="50000.00", currency="EUR")))
    assert (order.state, order.steps["approval"]) == ("Processed", "Completed")


def test_a_claim_that_is_not_approved_is_taken_back() -> None:
    """The assessment is cancelled."""
    environment = WorkflowTestEnvironment(GROWN)
    order = photographed(environment, COSTLY)
    environment.answer(order, "approval", refusal="the roof was rotten")
    assert (order.outcome, order.reason) == ("undone", "approval: the roof was rotten")
    assert environment.effects("assessor") == ["assess", "cancel"]


@pytest.mark.soak
def test_a_claim_that_nobody_approves_in_time_is_taken_back() -> None:
    """The claims department is reminded once. After four days the claim is undone."""
    environment = WorkflowTestEnvironment(GROWN)
    order = photographed(environment, COSTLY)
    environment.advance(days=3)
    assert order.steps["approval"] == "Running"
    environment.advance(days=2)
    assert order.outcome == "undone"


def test_what_is_not_covered_is_taken_back() -> None:
    """The claim is screened at the same time as the assessment, and nothing is paid."""
    environment = WorkflowTestEnvironment(GROWN)
    environment.refuse("assessor", "assess")
    order = photographed(environment, ROOF)
    assert (order.outcome, order.reason) == ("undone", "assess: not covered by the policy")
    assert "pay" not in environment.effects("bank")


def test_the_claim_waits_for_the_fraud_check() -> None:
    """The check has a cooldown while the bank is down. Then the claim continues."""
    environment = WorkflowTestEnvironment(GROWN)
    environment.down("bank", "screen")
    order = photographed(environment, ROOF)
    environment.advance(minutes=2)
    assert (order.steps["assess"], order.steps["fraud"]) == ("Completed", "NotStarted")
    environment.heal("bank")
    environment.advance(hours=2)
    assert order.state == "Processed"


def test_the_bank_pays_later() -> None:
    """The bank accepts the payment, and the agent calls again. The claim is paid once."""
    environment = WorkflowTestEnvironment(GROWN)
    environment.accept("bank", "pay")
    order = photographed(environment, ROOF)
    assert (order.steps["fraud"], order.steps["tell"]) == ("Completed", "NotStarted")
    assert "pay" not in environment.effects("bank", order)
    environment.advance(minutes=5)
    assert order.state == "Processed"
    assert environment.effects("bank", order).count("pay") == 1


def test_past_the_payment_there_is_no_way_back() -> None:
    """If the bank does not say whether it paid, an operator decides, and cannot cancel."""
    environment = WorkflowTestEnvironment(GROWN)
    environment.late("bank", "pay")
    order = photographed(environment, ROOF)
    environment.advance(hours=1)
    assert order.outcome == "failed"
    with pytest.raises(Exception, match="pivot-passed"):
        environment.act(order, "cancel")
    assert environment.effects("assessor") == ["assess"]


def test_an_account_that_is_closed_is_for_an_operator() -> None:
    """Nothing is paid, so the claim can still be cancelled."""
    environment = WorkflowTestEnvironment(GROWN)
    environment.refuse("bank", "pay")
    order = photographed(environment, ROOF)
    assert (order.outcome, order.reason) == ("failed", "account closed")
    environment.act(order, "cancel")
    assert order.outcome == "undone"


def test_a_claim_is_paid_even_if_nobody_can_be_notified() -> None:
    """The last step fails without harm."""
    environment = WorkflowTestEnvironment(GROWN)
    environment.refuse("post", "tell", "no such address")
    order = photographed(environment, ROOF)
    assert (order.state, order.steps["tell"]) == ("Processed", "Skipped")


def test_a_claim_is_cancelled_while_it_waits() -> None:
    """The claim no longer waits for the customer, and photographs come too late."""
    environment = WorkflowTestEnvironment(GROWN)
    order = environment.submit(ROOF)
    environment.act(order, "cancel")
    assert order.outcome == "undone"
    with pytest.raises(Exception, match="event-during-undo"):
        environment.answer(order, "photographs", PICTURES)


def test_its_drawing_is_in_the_readme() -> None:
    """The README has the drawing that `python -m engine.workflow draw` prints."""
    (workflow,) = GROWN.workflows.all
    assert mermaid(workflow) in Path(__file__).with_name("README.md").read_text()


def nothing_is_paid_unasked(claim: Seen) -> None:
    """Check what must hold for a claim in every state."""
    before = {"photographs", "assess", "fraud", "approval"}
    settled = {step for step in before if claim.steps[step] in ("Completed", "Skipped")}
    assert "pay" not in claim.standing or settled == before
    assert claim.outcome != "undone" or "pay" not in claim.standing


@pytest.mark.soak
def test_nothing_is_paid_unasked_whatever_goes_wrong() -> None:
    """People answer, refuse or do not answer, and one fault occurs at any point."""
    answers = {
        "photographs": PICTURES.model_dump(mode="json"),
        "approval": {"limit": {"amount": "50000.00", "currency": "EUR"}},
    }
    coverage = WorkflowTestEnvironment(GROWN).explore(
        COSTLY, faults=1, answers=answers, invariant=nothing_is_paid_unasked, seconds=60
    )
    assert coverage.explored.happened("outside: commits “step-answered”")
