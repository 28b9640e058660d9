"""The business of this deployment: a shop for tea.

For an order, the stock is reserved and the payment is authorised at the same time. Then the order
is shipped, and then the payment is captured. Each step has an undo: release the stock, void the
authorisation, cancel the shipment, refund the capture. If the payment is refused, the order waits
for an operator. If the stock or the shipment fails, the order is undone.

For a return, the goods go back into stock. Then the payment is refunded.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from engine.domain.errors import UnknownNameError
from engine.domain.messages import NO_TEXT
from engine.workflow import (
    UNDO,
    Agent,
    Model,
    Money,
    Name,
    Operation,
    Owner,
    Personal,
    Text,
    Workflow,
    application,
)
from shop.catalogue import BY_SKU, PRODUCTS

Email = Annotated[
    str, Field(min_length=1, max_length=200, pattern=rf"^[^@\s{NO_TEXT}]+@[^@\s{NO_TEXT}]+$")
]
Price = Annotated[str, Field(pattern=r"^[0-9]{1,7}\.[0-9]{2}$")]
"""A decimal amount in EUR as text, such as "12.50"."""


# The payload of an order


class Customer(Model):
    """The customer: personal data, which is only in the order row."""

    name: Personal[Name]
    email: Owner[Email]


class Line(Model):
    """A product of the order."""

    sku: Annotated[Text, Field(max_length=40)]
    quantity: Annotated[int, Field(ge=1, le=1000)]
    unit_price: Price


class Content(Model):
    """The payload of an order: products, prices and customer."""

    customer: Customer
    items: Annotated[tuple[Line, ...], Field(min_length=1, max_length=50)]


def only_our_products(content: Content) -> None:
    """Raise `UnknownNameError` for products that only a newer version of the shop may sell."""
    unknown = [
        f"items.{index}.sku: there is no product {line.sku}"
        for index, line in enumerate(content.items)
        if line.sku not in BY_SKU
    ]
    if unknown:
        raise UnknownNameError(unknown)


# The services


class Item(Model):
    """A product with its quantity."""

    sku: str
    quantity: int


class Goods(Model):
    """The ordered products."""

    items: tuple[Item, ...]


class Charge(Goods):
    """The products and their total, without the customer."""

    amount: str
    currency: Literal["EUR"] = "EUR"


class Capture(Charge):
    """The charge, and the authorisation to capture."""

    authorisation: str | None


class Parcel(Goods):
    """The products, and the reservation that they are shipped from."""

    reservation: str | None


class Reference(Model):
    """The answer of a service: its own reference for what it did."""

    reference: str | None = None


class Charged(Reference):
    """The answer to a charge."""

    amount: str | None = None


class Inventory(Agent):
    """The warehouse."""

    reserve = Operation(Goods, Reference)
    release = Operation(Goods)


class Payment(Agent):
    """The payment provider.

    `authorise_first` is the operation in the first version of the workflow.
    """

    authorise = Operation(Charge, Charged)
    authorise_first = Operation(Charge, Reference, name="authorise")
    void = Operation(Charge)
    capture = Operation(Capture, Charged)
    refund = Operation(Charge)


class Shipping(Agent):
    """The carrier."""

    ship = Operation(Parcel, Reference)
    cancel = Operation(Parcel)


PROVIDER = "psp"
"""The payment provider behind both payment agents, which shares idempotency keys between them."""
DECLINED = "card declined"

provider = Payment("payment", provider=PROVIDER, refusal=DECLINED)
backup = Payment("payment-backup", optional=True, provider=PROVIDER, refusal=DECLINED)
warehouse = Inventory("inventory", refusal="out of stock")
carrier = Shipping("shipping", refusal="address not deliverable")


# The workflows

first_orders = Workflow("order", Content, version=1)
"""The first version of the workflow, in which the payment was the only step."""
orders = Workflow("order", Content, version=2)
returns = Workflow("return", Content)


def goods(order: Content) -> tuple[Item, ...]:
    return tuple(Item(sku=line.sku, quantity=line.quantity) for line in order.items)


def total(order: Content) -> str:
    prices = (Decimal(line.unit_price) * line.quantity for line in order.items)
    return Money.of(sum(prices, Decimal(0)), "EUR").amount


@orders.step(warehouse.reserve, undo=warehouse.release, on_failure=UNDO)
def stock(order: Content) -> Goods:
    """Set the goods aside."""
    return Goods(items=goods(order))


@orders.step(provider.authorise, undo=provider.void)
@first_orders.step(provider.authorise_first)
def payment(order: Content) -> Charge:
    """Authorise the payment."""
    return Charge(items=goods(order), amount=total(order))


@orders.step(carrier.ship, undo=carrier.cancel, after=[payment], on_failure=UNDO)
def shipment(order: Content, stock: Reference) -> Parcel:
    """Send the parcel."""
    return Parcel(items=goods(order), reservation=stock.reference)


@orders.step(provider.capture, undo=provider.refund, after=[shipment])
def capture(order: Content, payment: Charged) -> Capture:
    """Take the payment."""
    return Capture(items=goods(order), amount=total(order), authorisation=payment.reference)


@returns.step(warehouse.release)
def restock(order: Content) -> Goods:
    """Put the goods back on the shelf."""
    return Goods(items=goods(order))


@returns.step(provider.refund, after=[restock])
def refund(order: Content) -> Charge:
    """Return the money."""
    return Charge(items=goods(order), amount=total(order))


def skus(request: Mapping[str, Any]) -> Iterable[str]:
    """Return the SKUs in a request to a service."""
    items = request.get("items")
    lines = items if isinstance(items, list) else []
    return [str(line["sku"]) for line in lines if isinstance(line, Mapping) and "sku" in line]


GREETING = """Order tea at {url}/shop; or look at what the shop sells, and place an order:

  curl -s {url}/api/products
  curl -s {url}/api/orders -H 'Content-Type: application/json' -d '{
    "customer": {"name": "Ada", "email": "ada@example.com"},
    "items": [{"sku": "TEA-SENCHA", "quantity": 2}]}'"""

SHOP = application(
    orders,
    first_orders,
    returns,
    agents=[provider, backup, warehouse, carrier],
    check=only_our_products,
    sample=Content(
        customer=Customer(name="A sample", email="sample@example.com"),
        items=(Line(sku=PRODUCTS[0].sku, quantity=1, unit_price=PRODUCTS[0].price.amount),),
    ),
    greeting=GREETING,
    fault_marks={"sku": skus},
)
ORDER_1, ORDER = first_orders.workflow(), orders.workflow()

PAGE = Path(__file__).parent / "page"
"""The files of the page on which customers place and follow orders."""
