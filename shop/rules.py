"""A customer's purchase, and the customer's view of an order."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from operator import not_
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict
from pydantic.json_schema import SkipJsonSchema

from engine.declarations.business import is_simulated
from engine.domain.errors import InvalidError
from engine.domain.messages import OrderId, Submission
from engine.domain.orders import OrderAggregate
from engine.domain.states import AwaitingExternalEvent, Running, Startable
from engine.domain.statuses import Direction, Outcome, ProcessState, StepState
from engine.domain.steps import Step
from engine.domain.submitted_order import Priority
from engine.http.models import RequestBody, View
from engine.http.public_api.rules import ASK_AGAIN_IN, AskAgain, Beginning
from shop.business import SHOP, Customer
from shop.catalogue import BY_SKU, Product

LARGEST_TOTAL = Decimal(5000)
"""The largest total of a purchase in EUR. Purchases are anonymous, and each is authorised."""
SIMULATED = "A demonstration: payments go to a simulated service."
"""The notice on every page of a shop that charges no money."""
EXAMPLE: JsonDict = {
    "customer": {"name": "Ada Lovelace", "email": "ada@example.com"},
    "items": [{"sku": "TEA-SENCHA", "quantity": 2}],
}


class Wish(RequestBody):
    """A product of the shop, and the quantity that the customer wants."""

    sku: str
    """The SKU of a product from `GET /api/products`."""
    quantity: Annotated[int, Field(ge=1, le=1000)]


class Purchase(RequestBody):
    """The body of `POST /api/orders`: products and customer, without prices."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})
    customer: Customer
    items: Annotated[tuple[Wish, ...], Field(min_length=1, max_length=50, strict=False)]
    """The total must not exceed 5000 EUR."""


class OperatorPurchase(Purchase):
    """The body of `POST /api/operator/orders`, with a priority (SCH-11)."""

    priority: Annotated[Priority, Field(strict=False)] = Priority.NORMAL


class StepStatus(View):
    """The state of a step."""

    name: str
    state: StepState
    trying_again: Annotated[bool, Field(exclude_if=not_)]
    """Whether the step runs or waits again after an attempt without a result."""


class Status(View):
    """The public status of an order, without personal data and internal details."""

    etag = True
    order_id: OrderId
    process_state: ProcessState | Literal["Accepted"]
    """`Accepted` while the order is only in the queue. No recorded order has this state."""
    placed_at: datetime
    updated_at: datetime
    direction: Direction = Direction.FORWARD
    not_before: Annotated[datetime | SkipJsonSchema[None], Field(exclude_if=not_)] = None
    """The chosen start time, while the order waits for it (SUB-9)."""
    steps: list[StepStatus]
    outcome: Annotated[Outcome | SkipJsonSchema[None], Field(exclude_if=not_)] = None
    retry_after: Annotated[int | SkipJsonSchema[None], AskAgain] = 1


class ProductList(View):
    """The products of the shop."""

    products: tuple[Product, ...]


def prices(purchase: Purchase) -> Mapping[str, str]:
    """Return the prices of the products, by SKU. Raises `InvalidError` if they cannot be bought."""
    unknown = [
        f"items.{index}.sku: there is no such product"
        for index, wish in enumerate(purchase.items)
        if wish.sku not in BY_SKU
    ]
    if unknown:
        raise InvalidError(unknown)
    found = {wish.sku: BY_SKU[wish.sku].price.amount for wish in purchase.items}
    total = sum((Decimal(found[wish.sku]) * wish.quantity for wish in purchase.items), Decimal(0))
    if total > LARGEST_TOTAL:
        most = f"an order takes {LARGEST_TOTAL} at most"
        raise InvalidError([f"items: {total} EUR together; {most}"])
    return found


def submission(
    purchase: Purchase,
    beginning: Beginning,
    prices: Mapping[str, str],
    order_id: str,
    placed_at: datetime,
) -> Submission:
    """Make the message that submits the order at these prices (SUB-1)."""
    payload: dict[str, Any] = {
        "customer": purchase.customer.model_dump(),
        "items": [{**wish.model_dump(), "unitPrice": prices[wish.sku]} for wish in purchase.items],
    }
    priority = purchase.priority if isinstance(purchase, OperatorPurchase) else Priority.NORMAL
    return Submission(
        schema_version=1,
        order_id=order_id,
        placed_at=placed_at,
        not_before=beginning.not_before,
        priority=priority,
        **payload,
    )


def status(order: OrderAggregate) -> Status:
    return Status(
        order_id=order.order_id,
        process_state=order.process_state,
        placed_at=order.submitted.placed_at,
        updated_at=order.updated_at,
        direction=order.direction,
        not_before=_awaited_beginning(order),
        steps=[_step_status(order, step) for step in order.steps],
        outcome=order.outcome,
        retry_after=None if order.is_over else ASK_AGAIN_IN[order.process_state],
    )


def _awaited_beginning(order: OrderAggregate) -> datetime | None:
    begins = order.submitted.not_before
    return begins if order.derived.not_before == begins and not order.has_ended else None


def _step_status(order: OrderAggregate, step: Step) -> StepStatus:
    trying_again = is_tried_again(order, step)
    return StepStatus(name=step.name, state=step.pattern_state, trying_again=trying_again)


def is_tried_again(order: OrderAggregate, step: Step) -> bool:
    """Whether the step runs again, or waits to run again, after an attempt without a result."""
    if order.has_ended:
        return False
    match step.state:
        case Startable():
            return step.counts.attempts > 0
        case Running() | AwaitingExternalEvent():
            return step.counts.attempts > 1
    return False


def notice(addresses: Mapping[str, str]) -> str:
    """Return the notice for every page. Empty if a real service takes the payments."""
    charging = [agent.name for agent in SHOP.agents if agent.offers == "payment"]
    simulated = any(is_simulated(name, addresses.get(name, "")) for name in charging)
    return SIMULATED if simulated else ""


def accepted(order_id: str, placed_at: datetime) -> Status:
    """Return the status of an order that is accepted but not recorded yet."""
    return Status(
        order_id=order_id,
        process_state="Accepted",
        placed_at=placed_at,
        updated_at=placed_at,
        steps=[],
    )
