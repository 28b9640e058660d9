"""What is done for an order: reserve the stock and authorise the payment, at the same time; ship; capture the payment.

Whatever was done can be taken back: the stock released, the authorisation voided, the shipment cancelled, the capture
refunded. A payment that is refused waits for an operator; goods that cannot be had, or delivered, undo the order.
Of an order that is returned, the goods go back into stock; then the customer gets the money back.
"""

from decimal import Decimal
from typing import Any

from core.orders import OnFailure, Order
from core.workflow import Results, StepDefinition, Workflow


def goods(order: Order, _: Results) -> dict[str, Any]:
    """Return what is ordered."""
    return {
        "items": [
            {"sku": item["sku"], "quantity": item["quantity"]} for item in order.payload["items"]
        ]
    }


def payment(order: Order, results: Results) -> dict[str, Any]:
    """Return what is bought and for how much, not by whom."""
    total = sum(
        (Decimal(item["unitPrice"]) * item["quantity"] for item in order.payload["items"]),
        Decimal(0),
    )
    return {**goods(order, results), "amount": f"{total:.2f}", "currency": "EUR"}


def shipment(order: Order, results: Results) -> dict[str, Any]:
    """Return what is sent, and from which reservation."""
    return {**goods(order, results), "reservation": results["stock"].get("reference")}


def capture(order: Order, results: Results) -> dict[str, Any]:
    """Return which authorisation is captured, and for how much."""
    return {**payment(order, results), "authorisation": results["payment"].get("reference")}


ORDER_1 = Workflow(
    name="order",
    version=1,
    steps=(
        StepDefinition(
            name="payment",
            capability="payment",
            operation="authorise",
            request=payment,
            result_fields=("reference",),
        ),
    ),
)
"""The first version, for orders that were placed when there was nothing but a payment."""

ORDER = Workflow(
    name="order",
    version=2,
    steps=(
        StepDefinition(
            name="stock",
            capability="inventory",
            operation="reserve",
            compensation="release",
            request=goods,
            result_fields=("reference",),
            on_failure=OnFailure.UNDO,
        ),
        StepDefinition(
            name="payment",
            capability="payment",
            operation="authorise",
            compensation="void",
            request=payment,
            result_fields=("reference", "amount"),
        ),
        StepDefinition(
            name="shipment",
            capability="shipping",
            operation="ship",
            compensation="cancel",
            request=shipment,
            uses=("stock",),
            after=("stock", "payment"),
            result_fields=("reference",),
            on_failure=OnFailure.UNDO,
        ),
        StepDefinition(
            name="capture",
            capability="payment",
            operation="capture",
            compensation="refund",
            request=capture,
            uses=("payment",),
            after=("shipment",),
            result_fields=("reference", "amount"),
        ),
    ),
)

RETURN = Workflow(
    name="return",
    version=1,
    steps=(
        StepDefinition(name="restock", capability="inventory", operation="release", request=goods),
        StepDefinition(
            name="refund",
            capability="payment",
            operation="refund",
            request=payment,
            after=("restock",),
        ),
    ),
)
