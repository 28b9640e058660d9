"""The workflow of a claim: assess the damage and check for fraud at a time; approve; pay."""

from typing import Any

from core.orders import OnFailure, Order
from core.workflow import Results, StepDefinition, Workflow


def damage(order: Order, _: Results) -> dict[str, Any]:
    """Return the content of the assessor's request."""
    return {name: order.payload[name] for name in ("claimNumber", "amount", "description")}


def amount(order: Order, _: Results) -> dict[str, Any]:
    """Return the claim number and the amount, without the description and the person."""
    return {name: order.payload[name] for name in ("claimNumber", "amount")}


def decision(order: Order, results: Results) -> dict[str, Any]:
    """Return the amount to approve, and its assessment."""
    return {**amount(order, results), "assessment": results["assess"].get("reference")}


def payout(order: Order, results: Results) -> dict[str, Any]:
    """Return the amount to pay, and its approval."""
    return {**amount(order, results), "approval": results["approve"].get("reference")}


CLAIM = Workflow(
    name="claim",
    version=1,
    steps=(
        StepDefinition(
            name="assess",
            capability="assessment",
            operation="assess",
            compensation="cancel",
            request=damage,
            result_fields=("reference",),
            on_failure=OnFailure.UNDO,
        ),
        StepDefinition(
            name="fraud",
            capability="banking",
            operation="screen",
            request=amount,
            threshold=1,
            on_failure=OnFailure.COOLDOWN,
        ),
        StepDefinition(
            name="approve",
            capability="assessment",
            operation="approve",
            compensation="withdraw",
            request=decision,
            after=("assess", "fraud"),
            uses=("assess",),
            result_fields=("reference",),
            on_failure=OnFailure.UNDO,
        ),
        StepDefinition(
            name="pay",
            capability="banking",
            operation="pay",
            compensation="recall",
            request=payout,
            after=("approve",),
            uses=("approve",),
            on_failure=OnFailure.UNDO,
        ),
    ),
)
