"""Small workflows to measure and to learn with: one step, and three of different agents in sequence."""

from core.workflow import StepDefinition, Workflow
from workflows.order import goods, payment

PAYMENT_ONLY = Workflow(
    name="payment-only",
    version=1,
    steps=(
        StepDefinition(
            name="payment",
            capability="payment",
            does="authorise",
            undone_by="void",
            request=payment,
            keeps=("reference",),
        ),
    ),
)

IN_SEQUENCE = Workflow(
    name="in-sequence",
    version=1,
    steps=(
        StepDefinition(name="payment", capability="payment", does="authorise", undone_by="void", request=payment),
        StepDefinition(
            name="stock", capability="inventory", does="reserve", undone_by="release", request=goods, after=("payment",)
        ),
        StepDefinition(
            name="shipment", capability="shipping", does="ship", undone_by="cancel", request=goods, after=("stock",)
        ),
    ),
)
