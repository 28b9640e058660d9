"""The HTTP endpoints of the workflows. Each has its own routes and its own access level."""

from collections.abc import Iterable, Iterator
from typing import Any

from engine.declarations.business import EndpointDefinition
from engine.http.openapi import Route
from engine.http.public_api.rules import Beginning, Cancelled, FollowedOrder, IdempotencyKey, Placed
from engine.http.public_api.service import CustomerService


def endpoint_routes(
    customers: CustomerService, endpoints: Iterable[EndpointDefinition]
) -> list[Route]:
    """Return the routes of all endpoints. A workflow without an endpoint has none."""
    return [route for endpoint in endpoints for route in _of(customers, endpoint)]


def _of(customers: CustomerService, endpoint: EndpointDefinition) -> Iterator[Route]:
    """Yield the routes of an endpoint. It has one for cancelling only if customers may cancel."""
    place = f"api/{'' if endpoint.open else 'operator/'}workflows/{endpoint.workflow}/orders"
    order = f"{place}/{{orderId}}"
    name = endpoint.workflow.replace("-", "_")

    async def post(content: Any, key: IdempotencyKey, beginning: Beginning) -> Placed:
        return await customers.place(endpoint, content, key, f"/{place}", beginning)

    async def follow(order_id: str) -> FollowedOrder:
        return await customers.follow(endpoint, order_id)

    async def cancel(order_id: str) -> Cancelled:
        return await customers.cancel(endpoint, order_id)

    post.__annotations__["content"] = endpoint.content
    post.__doc__ = f"Place an order of the workflow {endpoint.workflow}."
    follow.__doc__ = f"Follow an order of the workflow {endpoint.workflow}."
    cancel.__doc__ = f"Cancel an order of the workflow {endpoint.workflow}, as its customer."
    yield Route(f"customers_place_{name}", "POST", place, post, open=endpoint.open)
    yield Route(f"customers_follow_{name}", "GET", order, follow, open=endpoint.open)
    if endpoint.cancel_until is not None:
        path = f"{order}/cancel"
        yield Route(f"customers_cancel_{name}", "POST", path, cancel, open=endpoint.open)
