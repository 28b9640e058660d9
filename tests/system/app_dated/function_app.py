"""The grown claims, and a workflow that waits for a date."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import samples.claims_with_approvals.business
from development.business import load_app
from engine.declarations.workflow import WorkflowDefinition, Workflows
from engine.domain.submitted_order import Order
from samples.claims_with_approvals.business import GROWN

LATER = timedelta(seconds=25)
"""More than what is killed takes to come back."""


def after_a_while(order: Order, _: Mapping[str, Any]) -> datetime:
    """When the letter is written."""
    return order.placed_at + LATER


def letter(order: Order, _: Mapping[str, Any]) -> Mapping[str, Any]:
    """The letter."""
    return {"claimNumber": order.payload["claimNumber"], "payment": None}


TELL = GROWN.workflows.all[0].definition("tell")
DATED = WorkflowDefinition(
    name="dated",
    version=1,
    steps=(replace(TELL, uses=(), after=(), request=letter, start_at=after_a_while),),
)
known = Workflows(*GROWN.workflows.all, DATED)
samples.claims_with_approvals.business.GROWN = replace(GROWN, workflows=known)
app = load_app("samples.claims_with_approvals.business:GROWN")
