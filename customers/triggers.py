"""The doors of the workflows over HTTP: each has routes of its own, with its own level."""

from collections.abc import Iterable, Iterator
from typing import Any

from core.business import Door
from customers.rules import Cancelled, FollowedOrder, IdempotencyKey, Placed
from customers.service import CustomerService
from entrypoints.openapi import Route


def routes(customers: CustomerService, doors: Iterable[Door]) -> list[Route]:
    """Return the routes of all doors; a workflow without a door has none."""
    return [route for door in doors for route in _of(customers, door)]


def _of(customers: CustomerService, door: Door) -> Iterator[Route]:
    """Yield the routes of one door; to cancel has one only if it is allowed at all."""
    place = f"api/{'' if door.open else 'operator/'}workflows/{door.workflow}/orders"
    order = f"{place}/{{orderId}}"
    name = door.workflow.replace("-", "_")

    async def post(content: Any, key: IdempotencyKey) -> Placed:
        return await customers.place(door, content, key, f"/{place}")

    async def follow(order_id: str) -> FollowedOrder:
        return await customers.follow(door, order_id)

    async def cancel(order_id: str) -> Cancelled:
        return await customers.cancel(door, order_id)

    post.__annotations__["content"] = door.content
    post.__doc__ = f"Place an order of the workflow {door.workflow}."
    follow.__doc__ = f"Follow an order of the workflow {door.workflow}."
    cancel.__doc__ = f"Cancel an order of the workflow {door.workflow}, as its customer."
    yield Route(f"customers_place_{name}", "POST", place, post, open=door.open)
    yield Route(f"customers_follow_{name}", "GET", order, follow, open=door.open)
    if door.cancel_until is not None:
        path = f"{order}/cancel"
        yield Route(f"customers_cancel_{name}", "POST", path, cancel, open=door.open)
