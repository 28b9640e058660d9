"""What a customer may ask for, and what they see of their order."""

import hmac
from dataclasses import asdict
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from core.messages import Submission
from core.orders import ENDED, Priority, ProcessState, Snapshot, Step, StepState
from shop.catalogue import BY_SKU, PRODUCTS
from shop.payload import Customer

CURRENCY = "EUR"
LARGEST_TOTAL = Decimal(5000)
"""Of a purchase that needs nobody's consent; anybody may place one, and each leads to an authorisation."""
MIN_KEY, MAX_KEY = 20, 200
"""Characters of an `Idempotency-Key`. One that others can guess tells them whose order it stands for."""
ACCEPTED = "Accepted"
"""What the shop calls an order that the queue holds; no order is recorded in such a state."""
RECORDED_WITHIN = timedelta(minutes=1)
"""An order that was accepted longer ago, and is not recorded, is not spoken of any more as if it would be."""
ASK_AGAIN_IN = {
    ACCEPTED: timedelta(seconds=1),
    ProcessState.PENDING: timedelta(seconds=2),
    ProcessState.PROCESSING: timedelta(seconds=2),
    ProcessState.ERROR: timedelta(seconds=30),
}
"""In `Error` an order waits for a person, or has been taken back."""


def _sold(sku: str) -> str:
    if sku not in BY_SKU:
        raise PydanticCustomError("not_sold", "there is no such product")
    return sku


class Wish(BaseModel):
    """One product that a customer wants, which is one that the shop sells."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    sku: Annotated[str, AfterValidator(_sold)]
    quantity: Annotated[int, Field(ge=1, le=1000)]


def _of_bearable_total(wishes: tuple[Wish, ...]) -> tuple[Wish, ...]:
    total = sum((Decimal(BY_SKU[wish.sku].price) * wish.quantity for wish in wishes), Decimal(0))
    if total > LARGEST_TOTAL:
        told = f"{total} {CURRENCY} together; an order takes {LARGEST_TOTAL} at most"
        raise PydanticCustomError("too_much", "{told}", {"told": told})
    return wishes


class Purchase(BaseModel):
    """The body of `POST /api/orders`: what, and for whom. Prices are the shop's, never the customer's."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    customer: Customer
    items: Annotated[
        tuple[Wish, ...], Field(min_length=1, max_length=50, strict=False), AfterValidator(_of_bearable_total)
    ]


class OperatorPurchase(Purchase):
    """The body of `POST /api/operator/orders`: only who has the operators' key may go before others (SCH-11)."""

    priority: Annotated[Priority, Field(strict=False)] = Priority.NORMAL


def submission(purchase: Purchase, order_id: str, placed_at: datetime) -> Submission:
    """Return the message that submits the order, at the shop's prices (SUB-1)."""
    payload: dict[str, Any] = {
        "customer": purchase.customer.model_dump(),
        "items": [{**wish.model_dump(), "unitPrice": BY_SKU[wish.sku].price} for wish in purchase.items],
    }
    priority = purchase.priority if isinstance(purchase, OperatorPurchase) else Priority.NORMAL
    return Submission(schema_version=1, order_id=order_id, placed_at=placed_at, priority=priority, **payload)


def fingerprint(purchase: Purchase, idempotency_key: str) -> str:
    """Return what tells two purchases apart that come under one `Idempotency-Key`.

    The key, which is kept nowhere, enters into it: so nobody who reads it can find out by trying who the customer is.
    """
    key = idempotency_key.encode("utf-8", "surrogatepass")
    # Not SHA-256: HMAC hashes a long key first, and the SHA-256 of the key is what stands in the store.
    return hmac.digest(key, purchase.model_dump_json().encode(), "sha512").hex()


def products() -> dict[str, Any]:
    """Return what the shop sells, as the API shows it."""
    return {
        "products": [
            {**asdict(product), "price": {"amount": product.price, "currency": CURRENCY}} for product in PRODUCTS
        ]
    }


def status(order: Snapshot) -> dict[str, Any]:
    """Return what anybody who has the order's id may see: no personal data and no internals."""
    state = order.state
    view = {
        "orderId": order.order_id,
        "processState": state.process_state,
        "placedAt": order.order.placed_at.isoformat(),
        "updatedAt": state.updated_at.isoformat(),
        "steps": [
            {"name": step.name, "state": step.state} | ({"tryingAgain": True} if trying_again(order, step) else {})
            for step in order.steps
        ],
    }
    return view | ({"outcome": state.outcome} if state.outcome else {})


def trying_again(order: Snapshot, step: Step) -> bool:
    """Whether the step failed, or may have, and is being done again or waits for that."""
    if order.state.process_state in ENDED or step.state not in (StepState.NOT_STARTED, StepState.RUNNING):
        return False
    return step.attempts > (1 if step.runs else 0)


def accepted(order_id: str, placed_at: datetime) -> dict[str, Any]:
    """Return the status of an order that was accepted and is not recorded yet."""
    at = placed_at.isoformat()
    return {"orderId": order_id, "processState": ACCEPTED, "placedAt": at, "updatedAt": at, "steps": []}


def ask_again_in(status: dict[str, Any]) -> timedelta | None:
    """Return when it is worth asking for the status again; None once nothing changes any more by itself."""
    return ASK_AGAIN_IN.get(status["processState"])
