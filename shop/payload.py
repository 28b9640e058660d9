"""The payload of the shop's orders: customer, products and prices."""

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from core.business import Payload
from core.errors import UnknownNameError
from core.messages import NO_TEXT, Text, decode
from core.orders import ERASED
from shop.catalogue import BY_SKU

Email = Annotated[
    str, Field(min_length=1, max_length=200, pattern=rf"^[^@\s{NO_TEXT}]+@[^@\s{NO_TEXT}]+$")
]
Price = Annotated[str, Field(pattern=r"^\d{1,7}\.\d{2}$")]


class Customer(BaseModel):
    """Who ordered: personal data, which never leaves the order row."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: Text
    email: Email


class Line(BaseModel):
    """One product of the order; `unit_price` is a decimal string such as "12.50" (EUR)."""

    model_config = ConfigDict(alias_generator=to_camel, frozen=True, extra="forbid", strict=True)
    sku: Annotated[Text, Field(max_length=40)]
    quantity: Annotated[int, Field(ge=1, le=1000)]
    unit_price: Price


class Content(BaseModel):
    """The payload as the shop sends it."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    customer: Customer
    items: Annotated[tuple[Line, ...], Field(min_length=1, max_length=50)]


def check(payload: Mapping[str, Any]) -> None:
    """Raise `InvalidError` with all faults; `UnknownNameError` for products of a newer version."""
    content = decode(Content, json.dumps(payload))
    unknown = [
        f"items.{index}.sku: there is no product {line.sku}"
        for index, line in enumerate(content.items)
        if line.sku not in BY_SKU
    ]
    if unknown:
        raise UnknownNameError(unknown)


def erased(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the payload without the customer's data."""
    return {**payload, "customer": {"name": ERASED, "email": ERASED}}


def personal(payload: Mapping[str, Any]) -> Iterable[str]:
    """Return the customer's data, which no log may show."""
    customer = payload.get("customer")
    return [str(value) for value in customer.values()] if isinstance(customer, Mapping) else []


def belongs_to(payload: Mapping[str, Any], email: str) -> bool:
    """Whether the customer has this email address, in any case."""
    customer = payload.get("customer")
    if not isinstance(customer, Mapping):
        return False
    return str(customer.get("email")).casefold() == email.casefold()


def skus(request: Mapping[str, Any]) -> Iterable[str]:
    """Return the products in a request to a service."""
    items = request.get("items")
    lines = items if isinstance(items, list) else []
    return [str(line["sku"]) for line in lines if isinstance(line, Mapping) and "sku" in line]


PAYLOAD = Payload(check=check, erased=erased, personal=personal, belongs_to=belongs_to)
