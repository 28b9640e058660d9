"""An insurance company as a business of the engine."""

from core.business import Agent, Business, Sample
from core.workflow import Workflows
from examples.claims.payload import PAYLOAD
from examples.claims.workflows import CLAIM

CLAIMS = Business(
    workflows=Workflows(CLAIM),
    default_workflow=CLAIM.name,
    agents=(
        Agent(
            name="assessor",
            offers="assessment",
            address="ASSESSOR_URL",
            refusal="not covered by the policy",
        ),
        Agent(name="bank", offers="banking", address="BANK_URL", refusal="account closed"),
    ),
    payload=PAYLOAD,
    sample=Sample(
        payload={
            "claimNumber": "C-1000",
            "policyHolder": {"name": "A sample", "email": "sample@example.com"},
            "amount": "100.00",
            "description": "A sample",
        }
    ),
)
