"""The shop's workflows.

For an order, the stock is reserved and the payment authorised at the same time; then the order is
shipped; then the payment is captured. Each step has a compensation: release the stock, void the
authorisation, cancel the shipment, refund the capture. If the payment is refused, the order waits
for an operator; if the stock or the shipment fails, the order is undone.

For a return, the goods go back into stock; then the payment is refunded.
"""

from decimal import Decimal
from typing import Any

from core.orders import OnFailure, Order
from core.workflow import Results, StepDefinition, Workflow


def goods(order: Order, _: Results) -> dict[str, Any]:
    """Return the ordered products."""
    items = order.payload["items"]
    return {"items": [{"sku": item["sku"], "quantity": item["quantity"]} for item in items]}


def payment(order: Order, results: Results) -> dict[str, Any]:
    """Return the products and the total, without the customer."""
    prices = (Decimal(item["unitPrice"]) * item["quantity"] for item in order.payload["items"])
    total = sum(prices, Decimal(0))
    return {**goods(order, results), "amount": f"{total:.2f}", "currency": "EUR"}


def shipment(order: Order, results: Results) -> dict[str, Any]:
    """Return the products, and the reservation to ship them from."""
    return {**goods(order, results), "reservation": results["stock"].get("reference")}


def capture(order: Order, results: Results) -> dict[str, Any]:
    """Return the authorisation to capture, and the total."""
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
"""The first version, for orders from the time when the payment was the only step."""

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
