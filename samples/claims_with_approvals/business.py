"""The claims with external events, a branch, deferred work and an optional step.

The customer sends photographs, and is reminded twice. No other step starts before that. Then the
damage is assessed, and at the same time the claim is checked for fraud. Above a limit, a person has
to approve the claim. The bank accepts the payment and makes it later. The claim is paid even if the
customer cannot be notified.
"""

from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from engine.workflow import (
    CONTINUE,
    COOLDOWN,
    ERROR,
    UNDO,
    Agent,
    Key,
    Model,
    Money,
    Name,
    Operation,
    Owner,
    Personal,
    Text,
    Workflow,
    application,
)

LIMIT = Decimal(1000)
"""A claim of up to this amount in EUR needs no approval."""


class Euro(Money):
    """An amount in EUR. The bank pays no other currency."""

    currency: Literal["EUR"]


class Claimant(Model):
    """The insured person."""

    name: Personal[Name]
    email: Owner[Text]


class ClaimWithApprovals(Model):
    """The payload of a claim. Its description is free text, so it may be personal."""

    claim_number: Key[Annotated[str, Field(pattern=r"^C-[0-9]{4,10}$")]]
    policy_holder: Claimant
    amount: Euro
    description: Personal[Text]


class Question(Model):
    """A question about a claim."""

    claim_number: str
    text: str


class Photographs(Model):
    """The customer's answer: the addresses of pictures of the damage."""

    urls: Personal[Annotated[list[Text], Field(min_length=1, max_length=20)]]


class Approval(Model):
    """The answer of a person in the claims department."""

    limit: Euro
    """The largest amount that may be paid."""


class ClaimAmount(Model):
    """A request to the bank, and a part of other requests."""

    claim_number: str
    amount: Euro


class PhotographedDamage(ClaimAmount):
    """The damage to assess."""

    description: str
    photographs: list[str]


class ApprovedPayout(ClaimAmount):
    """The payment to make."""

    assessment: str | None


class Letter(Model):
    """The letter to the customer."""

    claim_number: str
    payment: str | None


class Confirmation(Model):
    """The answer of a service: its own reference for what it did."""

    reference: str | None = None


class DamageAssessment(Agent, capability="assessment"):
    """The service that assesses damages."""

    assess = Operation(PhotographedDamage, Confirmation)
    cancel = Operation(PhotographedDamage)


class DeferredBanking(Agent, capability="banking"):
    """The service that screens claims for fraud and pays them."""

    screen = Operation(ClaimAmount)
    pay = Operation(ApprovedPayout, Confirmation)


class Post(Agent):
    """The service that writes to customers."""

    tell = Operation(Letter)


assessor = DamageAssessment("assessor", refusal="not covered by the policy")
bank = DeferredBanking("bank", refusal="account closed", answer_within=timedelta(hours=6))
"""The bank answers 202 and pays later. The agent calls again when the bank says."""
post = Post("post")

claims = Workflow("grown-claim", ClaimWithApprovals)


def above_limit(claim: ClaimWithApprovals) -> bool:
    return claim.amount.value > LIMIT


@claims.wait_for(Photographs, within=timedelta(days=5), attempts=3, on_failure=UNDO)
def photographs(claim: ClaimWithApprovals) -> Question:
    """Ask the customer for photographs of the damage."""
    return Question(claim_number=claim.claim_number, text="Please send photographs of the damage")


@claims.step(assessor.assess, undo=assessor.cancel, on_failure=UNDO)
def assess(claim: ClaimWithApprovals, photographs: Photographs) -> PhotographedDamage:
    """Look at the damage."""
    return PhotographedDamage(
        claim_number=claim.claim_number,
        amount=claim.amount,
        description=claim.description,
        photographs=photographs.urls,
    )


@claims.step(bank.screen, after=[photographs], threshold=1, on_failure=COOLDOWN)
def fraud(claim: ClaimWithApprovals) -> ClaimAmount:
    """Check for fraud."""
    return ClaimAmount(claim_number=claim.claim_number, amount=claim.amount)


@claims.wait_for(
    Approval,
    within=timedelta(days=2),
    attempts=2,
    after=[assess, fraud],
    condition=above_limit,
    on_failure=UNDO,
)
def approval(claim: ClaimWithApprovals, assess: Confirmation) -> Question:
    """Ask the claims department to approve the claim."""
    return Question(
        claim_number=claim.claim_number,
        text=f"May we pay {claim.amount.amount} EUR for the assessment {assess.reference}?",
    )


@claims.step(bank.pay, after=[approval, fraud], pivot=True, on_failure=ERROR)
def pay(
    claim: ClaimWithApprovals, assess: Confirmation, approval: Approval | None
) -> ApprovedPayout:
    """Pay the claim, or the part of it that was approved: there is no way back."""
    limit = approval.limit if approval else claim.amount
    amount = min(claim.amount, limit, key=lambda money: money.value)
    return ApprovedPayout(
        claim_number=claim.claim_number, amount=amount, assessment=assess.reference
    )


@claims.step(post.tell, on_failure=CONTINUE)
def tell(claim: ClaimWithApprovals, pay: Confirmation) -> Letter:
    """Tell the customer; a claim that is paid stays paid if this fails."""
    return Letter(claim_number=claim.claim_number, payment=pay.reference)


GROWN = application(
    claims,
    agents=[assessor, bank, post],
    sample=ClaimWithApprovals(
        claim_number="C-1000",
        policy_holder=Claimant(name="A sample", email="sample@example.com"),
        amount=Euro(amount="100.00", currency="EUR"),
        description="A sample",
    ),
)
