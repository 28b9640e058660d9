"""The return workflow: the goods go back into stock, then the customer gets the money back."""

from core.workflow import StepDefinition, Workflow
from workflows.order import goods, payment

RETURN = Workflow(
    name="return",
    version=1,
    steps=(
        StepDefinition(name="restock", capability="inventory", does="release", request=goods),
        StepDefinition(name="refund", capability="payment", does="refund", request=payment, after=("restock",)),
    ),
)
