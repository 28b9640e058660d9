"""The doors of the workflows over HTTP: each has routes of its own, with its own level."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import azure.functions as func

from engine.declarations.business import Door
from engine.domain.messages import ANSWERS
from engine.http.openapi import Route
from engine.public_api.inbox import AnswerInbox
from engine.public_api.links import LinkService
from engine.public_api.rules import Beginning, Cancelled, FollowedOrder, IdempotencyKey, Placed
from engine.public_api.service import CustomerService
from engine.runtime.functions import Functions, on_bus, retry_while_unavailable


def routes(customers: CustomerService, doors: Iterable[Door]) -> list[Route]:
    """Return the routes of all doors; a workflow without a door has none."""
    return [route for door in doors for route in _of(customers, door)]


def link_routes(links: LinkService) -> list[Route]:
    """Return the routes of links to answers, which need no key: each carries its own right."""
    place = "api/answers/{orderId}/{step}"
    also = (403, 429)
    return [
        Route("customers_question", "GET", place, links.show, open=True, also_refuses=also),
        Route("customers_answer", "POST", place, links.answer, open=True, also_refuses=also),
    ]


def answers_from_queue(inbox: AnswerInbox) -> func.Blueprint:
    """Return the function that takes answers off their queue."""
    triggers = Functions()

    @triggers.service_bus_queue_trigger(
        arg_name="message", queue_name=ANSWERS, connection="ServiceBus"
    )
    async def customers_answers(message: func.ServiceBusMessage) -> None:
        take = partial(
            inbox.take, message.get_body(), message.correlation_id or None, on_bus(message)
        )
        await retry_while_unavailable("customers_answers", take)

    return triggers


def _of(customers: CustomerService, door: Door) -> Iterator[Route]:
    """Yield the routes of one door; to cancel has one only if it is allowed at all."""
    place = f"api/{'' if door.open else 'operator/'}workflows/{door.workflow}/orders"
    order = f"{place}/{{orderId}}"
    name = door.workflow.replace("-", "_")

    async def post(content: Any, key: IdempotencyKey, beginning: Beginning) -> Placed:
        return await customers.place(door, content, key, f"/{place}", beginning)

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
