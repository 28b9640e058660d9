"""Small workflows for measurements and tests: one step, and three of different agents in sequence."""

from dataclasses import replace

from engine.declarations.workflow import StepDefinition, WorkflowDefinition, Workflows
from shop.business import ORDER, SHOP

STOCK, PAYMENT, *_ = ORDER.steps

PAYMENT_ONLY = WorkflowDefinition(
    name="payment-only",
    version=1,
    steps=(
        StepDefinition(
            name="payment",
            capability="payment",
            operation="authorise",
            compensation="void",
            request=PAYMENT.request,
            result_fields=("reference",),
        ),
    ),
)

IN_SEQUENCE = WorkflowDefinition(
    name="in-sequence",
    version=1,
    steps=(
        StepDefinition(
            name="payment",
            capability="payment",
            operation="authorise",
            compensation="void",
            request=PAYMENT.request,
        ),
        StepDefinition(
            name="stock",
            capability="inventory",
            operation="reserve",
            compensation="release",
            request=STOCK.request,
            after=("payment",),
        ),
        StepDefinition(
            name="shipment",
            capability="shipping",
            operation="ship",
            compensation="cancel",
            request=STOCK.request,
            after=("stock",),
        ),
    ),
)

MEASURED = replace(SHOP, workflows=Workflows(*SHOP.workflows.all, PAYMENT_ONLY, IN_SEQUENCE))
"""The shop with these workflows besides its own."""

VARIANTS = {"1-step": "payment-only", "3-step": "in-sequence", "shop": "order"}
"""The names of variants on the command line, with the workflows of `MEASURED`."""
