"""The order workflow of the documented example: one step, the payment."""

from decimal import Decimal
from typing import Any

from core.orders import Order
from core.workflow import Results, StepDefinition, Workflow


def payment_request(order: Order, _: Results) -> dict[str, Any]:
    """Return what the payment service needs to know: what is bought and for how much, not by whom."""
    total = sum((Decimal(item.unit_price) * item.quantity for item in order.items), Decimal(0))
    return {
        "items": [{"sku": item.sku, "quantity": item.quantity} for item in order.items],
        "amount": f"{total:.2f}",
        "currency": "EUR",
    }


ORDER = Workflow(
    name="order",
    version=1,
    steps=(StepDefinition(name="payment", agent="payment", request=payment_request),),
)
