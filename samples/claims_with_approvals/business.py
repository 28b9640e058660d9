"""The claims, grown: people are asked, one way or another is taken, and one step may fail.

The customer sends photographs, and is reminded twice; meanwhile nothing else of the claim begins.
Then the damage is assessed and the claim is checked for fraud, side by side. Above a limit a person
approves. The bank takes the payment and makes it later. The claim is paid even if nobody can be
told.
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
"""Up to this amount (EUR) nobody has to approve a claim."""


class Euro(Money):
    """An amount in EUR: the bank pays no other currency."""

    currency: Literal["EUR"]


class Claimant(Model):
    """Who is insured."""

    name: Personal[Name]
    email: Owner[Text]


class ClaimWithApprovals(Model):
    """The payload of a claim; its description is free text, so it may be personal."""

    claim_number: Key[Annotated[str, Field(pattern=r"^C-[0-9]{4,10}$")]]
    policy_holder: Claimant
    amount: Euro
    description: Personal[Text]


class Question(Model):
    """What somebody is asked, and about which claim."""

    claim_number: str
    text: str


class Photographs(Model):
    """What the customer answers: where the pictures of the damage are."""

    urls: Personal[Annotated[list[Text], Field(min_length=1, max_length=20)]]


class Approval(Model):
    """What a person of the claims department answers."""

    limit: Euro
    """Up to which amount the claim may be paid."""


class ClaimAmount(Model):
    """What is asked of the bank, and a part of other requests."""

    claim_number: str
    amount: Euro


class PhotographedDamage(ClaimAmount):
    """What the assessor looks at."""

    description: str
    photographs: list[str]


class ApprovedPayout(ClaimAmount):
    """What is to be paid."""

    assessment: str | None


class Letter(Model):
    """What the customer is told."""

    claim_number: str
    payment: str | None


class Confirmation(Model):
    """An answer: the service's own name for what it did."""

    reference: str | None = None


class DamageAssessment(Agent, capability="assessment"):
    """The service that looks at damages."""

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
"""It answers 202 and pays later; it is asked again, with the same key, when it says."""
post = Post("post")

claims = Workflow("grown-claim", ClaimWithApprovals)


def above_limit(claim: ClaimWithApprovals) -> bool:
    """Whether a person has to approve the claim."""
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
