"""An insurance company: its claims, its services and its workflow."""

from typing import Annotated, Literal

from pydantic import Field

from engine.workflow import (
    COOLDOWN,
    UNDO,
    Agent,
    InvalidError,
    Key,
    Model,
    Money,
    Name,
    Operation,
    OrderEndpoint,
    Owner,
    Personal,
    Text,
    Workflow,
    application,
)


class Euros(Money):
    """An amount in EUR. The bank pays no other currency."""

    currency: Literal["EUR"]


class PolicyHolder(Model):
    """The insured person."""

    name: Personal[Name]
    email: Owner[Text]


class Claim(Model):
    """The payload of a claim. Its description is free text, so it may be personal."""

    claim_number: Key[Annotated[str, Field(pattern=r"^C-[0-9]{4,10}$")]]
    policy_holder: PolicyHolder
    amount: Euros
    description: Personal[Text]


def worth_something(claim: Claim) -> None:
    """Raise `InvalidError` for a claim about no amount."""
    if claim.amount.value <= 0:
        raise InvalidError(["amount: expected more than 0.00"])


class Sum(Model):
    """A request to the bank, and a part of other requests."""

    claim_number: str
    amount: Euros


class Damage(Sum):
    """The damage to assess."""

    description: str


class Decision(Sum):
    """The claim to approve."""

    assessment: str | None


class Payout(Sum):
    """The payment to make."""

    approval: str | None


class ServiceReference(Model):
    """The answer of a service: its own reference for what it did."""

    reference: str | None = None


class Assessment(Agent):
    """The service that assesses damages and approves claims."""

    assess = Operation(Damage, ServiceReference)
    cancel = Operation(Damage)
    approve = Operation(Decision, ServiceReference)
    withdraw = Operation(Decision)


class Banking(Agent):
    """The service that screens claims for fraud and pays them."""

    screen = Operation(Sum)
    pay = Operation(Payout)
    recall = Operation(Payout)


assessor = Assessment("assessor", refusal="not covered by the policy")
bank = Banking("bank", refusal="account closed")

claims = Workflow("claim", Claim, endpoint=OrderEndpoint(open=True, cancel_until="pay"))


@claims.step(assessor.assess, undo=assessor.cancel, on_failure=UNDO)
def assess(claim: Claim) -> Damage:
    """Look at the damage."""
    return Damage(
        claim_number=claim.claim_number, amount=claim.amount, description=claim.description
    )


@claims.step(bank.screen, threshold=1, on_failure=COOLDOWN)
def fraud(claim: Claim) -> Sum:
    """Check for fraud."""
    return Sum(claim_number=claim.claim_number, amount=claim.amount)


@claims.step(assessor.approve, undo=assessor.withdraw, after=[fraud], on_failure=UNDO)
def approve(claim: Claim, assess: ServiceReference) -> Decision:
    """Approve the claim."""
    return Decision(
        claim_number=claim.claim_number, amount=claim.amount, assessment=assess.reference
    )


@claims.step(bank.pay, undo=bank.recall, on_failure=UNDO)
def pay(claim: Claim, approve: ServiceReference) -> Payout:
    """Pay the claim."""
    return Payout(claim_number=claim.claim_number, amount=claim.amount, approval=approve.reference)


CLAIMS = application(
    claims,
    agents=[assessor, bank],
    check=worth_something,
    sample=Claim(
        claim_number="C-1000",
        policy_holder=PolicyHolder(name="A sample", email="sample@example.com"),
        amount=Euros(amount="100.00", currency="EUR"),
        description="A sample",
    ),
)
