"""Binds the operators' API to HTTP: nothing under /api/operator works without the key (OPR-5)."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar

import azure.functions as func

from core.errors import InvalidError
from core.orders import ProcessState
from entrypoints.functions import Functions, on_bus, on_storage_queue, through_outages
from entrypoints.http import answers, body_of, ok, order_id_of
from entrypoints.timers import in_turn
from operators.alerts import Acknowledged, AcknowledgeRequest, AlertDesk, AlertList, CauseList
from operators.bulk import BulkPage, BulkService
from operators.explain import Explanation
from operators.health import HealthService
from operators.openapi import Route, Routes, description, query
from operators.overview import Overview, OverviewService
from operators.poison import GIVEN_UP, PoisonList, PoisonService, Settled
from operators.requests import BEGINNING_OF_ID, KEY, BulkRequest, FindRequest, OperatorRequest, SkipRequest
from operators.retention import Found, RetentionService
from operators.service import AGENDA_OF, OperatorService
from operators.views import Acted, FoundOrders, OrderList, OrderView
from stores.poison import PoisonStore

MAX_LISTED = 500
LISTED = 50
POISON_LISTED = 200
"""Unless a call says how many."""
BEGINNING = re.compile(BEGINNING_OF_ID)
LIMIT = re.compile(r"[0-9]{1,3}")
WRONG_LIMIT = f"limit: expected a number from 1 to {MAX_LISTED}"
EVERY_HOUR = "0 17 * * * *"

Request = TypeVar("Request", bound=OperatorRequest)


@dataclass(frozen=True, kw_only=True, slots=True)
class OperatorServices:
    """All that operators have."""

    orders: OperatorService
    bulk: BulkService
    alerts: AlertDesk
    poison: PoisonService
    overview: OverviewService
    retention: RetentionService
    health: HealthService


def blueprint(services: OperatorServices) -> func.Blueprint:
    """Return the operators' functions, and the health check."""
    triggers = Functions()

    @triggers.route("api/health", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
    @answers
    async def health_report(req: func.HttpRequest) -> func.HttpResponse:
        healthy, report = await services.health.report()
        return ok(report, 200 if healthy else 503)

    @triggers.route("api/openapi.json", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
    @answers
    async def operator_openapi(req: func.HttpRequest) -> func.HttpResponse:
        return ok(_description())

    @triggers.timer_trigger(arg_name="timer", schedule=EVERY_HOUR, use_monitor=False)
    async def operator_retention(timer: func.TimerRequest) -> None:
        await in_turn("operator_retention", services.retention.sweep)

    for route in ROUTES:
        _bind(triggers, route, services)
    return triggers


def relay(poison: PoisonStore, storage_queues: Iterable[str], bus_queues: Iterable[str]) -> func.Blueprint:
    """Return the functions that keep as poison what the platform gives up, because its function failed too often."""
    triggers = Functions()
    for queue in storage_queues:
        _bind_poison_queue(triggers, queue, poison)
    for queue in bus_queues:
        _bind_dead_letters(triggers, queue, poison)
    return triggers


def _bind_poison_queue(triggers: Functions, queue: str, poison: PoisonStore) -> None:
    name = f"given_up_{queue.replace('-', '_')}"

    @triggers.function_name(name)
    @triggers.queue_trigger(arg_name="message", queue_name=f"{queue}-poison", connection="StateStorage")
    async def keep(message: func.QueueMessage) -> None:
        kept = partial(poison.put, queue, message.get_body(), GIVEN_UP, on_storage_queue(message))
        await through_outages(name, kept)


def _bind_dead_letters(triggers: Functions, queue: str, poison: PoisonStore) -> None:
    name = f"given_up_{queue.replace('-', '_')}"

    @triggers.function_name(name)
    @triggers.service_bus_queue_trigger(
        arg_name="message", queue_name=f"{queue}/$DeadLetterQueue", connection="ServiceBus"
    )
    async def keep(message: func.ServiceBusMessage) -> None:
        reason = f"{GIVEN_UP}: {message.dead_letter_reason}, {message.dead_letter_error_description}"
        kept = partial(poison.put, queue, message.get_body(), reason, on_bus(message), message.correlation_id)
        await through_outages(name, kept)


@cache
def _description() -> Mapping[str, Any]:
    return description(ROUTES)


def _bind(triggers: Functions, route: Route, services: OperatorServices) -> None:
    @triggers.function_name(route.name)
    @triggers.route(route.path, methods=[route.method], auth_level=func.AuthLevel.FUNCTION)
    @answers
    async def operator(req: func.HttpRequest) -> func.HttpResponse:
        body = (body_of(req, route.body),) if route.body else ()
        answer = await route.call(services, req, *body)
        return ok(answer.model_dump(mode="json", by_alias=True), route.status)


ROUTES = Routes()
"""What operators may ask; each is a function of the app, and stands in the description of the API."""

ORDER = "api/operator/orders/{orderId}"
POISON = "api/operator/poison/{queue}/{messageId}"
LISTING = partial(query, "limit", type="integer", minimum=1, maximum=MAX_LISTED)
CONTINUATION = query("continuation", type="string", pattern=KEY)
PAGE = (LISTING(default=LISTED), CONTINUATION)
STATE = query("state", type="string", enum=[str(state) for state in AGENDA_OF], default="Error")
ID = query("id", required=True, type="string", pattern=BEGINNING_OF_ID)


@ROUTES.get("api/operator/overview")
async def operator_overview(services: OperatorServices, _: func.HttpRequest) -> Overview:
    """Show how the system is doing."""
    return await services.overview.look()


@ROUTES.get("api/operator/orders", STATE, *PAGE)
async def operator_orders(services: OperatorServices, req: func.HttpRequest) -> OrderList:
    """List the open orders of a state, the longest waiting first."""
    return await services.orders.list(*_listing_of(req))


@ROUTES.get("api/operator/search", ID)
async def operator_search(services: OperatorServices, req: func.HttpRequest) -> FoundOrders:
    """Find orders in any state by the beginning of their ids."""
    beginning = req.params.get("id", "").strip()
    if not BEGINNING.fullmatch(beginning):
        raise InvalidError(["id: expected the beginning of an order id, such as b07-01JCX"])
    return await services.orders.search(beginning)


@ROUTES.get(ORDER)
async def operator_order(services: OperatorServices, req: func.HttpRequest) -> OrderView:
    """Show an order with its steps and its whole history."""
    return await services.orders.inspect(order_id_of(req))


@ROUTES.get(f"{ORDER}/explain")
async def operator_explain(services: OperatorServices, req: func.HttpRequest) -> Explanation:
    """Say why an order is where it is, who acts next and when, and what happens if nothing comes."""
    return await services.orders.explain(order_id_of(req))


@ROUTES.post(f"{ORDER}/resubmit")
async def operator_resubmit(services: OperatorServices, req: func.HttpRequest, body: OperatorRequest) -> Acted:
    """Let an order in Error go on from the steps that failed."""
    return await _act(services.orders.resubmit, req, body, "resubmitted")


@ROUTES.post(f"{ORDER}/skip")
async def operator_skip(services: OperatorServices, req: func.HttpRequest, body: SkipRequest) -> Acted:
    """Leave out a failed step that was done, or taken back, by other means."""
    return await _act(services.orders.skip, req, body, "skipped")


@ROUTES.post(f"{ORDER}/cancel")
async def operator_cancel(services: OperatorServices, req: func.HttpRequest, body: OperatorRequest) -> Acted:
    """Have an order undone that is not finished."""
    return await _act(services.orders.cancel, req, body, "cancelled")


@ROUTES.post(f"{ORDER}/erase")
async def operator_erase(services: OperatorServices, req: func.HttpRequest, body: OperatorRequest) -> Acted:
    """Forget who the customer of an order is; its history stays."""
    return await _act(services.retention.erase, req, body, "erased")


async def _act(
    action: Callable[[str, Request], Awaitable[None]], req: func.HttpRequest, body: Request, done: str
) -> Acted:
    order_id = order_id_of(req)
    await action(order_id, body)
    return Acted(order_id=order_id, status=done)


@ROUTES.post("api/operator/bulk")
async def operator_bulk(services: OperatorServices, _: func.HttpRequest, body: BulkRequest) -> BulkPage:
    """Resubmit, skip a step of, or cancel many orders in Error, page by page."""
    return await services.bulk.run(body)


@ROUTES.post("api/operator/customers/find")
async def operator_find_customer(services: OperatorServices, _: func.HttpRequest, body: FindRequest) -> Found:
    """Find a customer's orders, page by page through all orders."""
    return await services.retention.find(body)


@ROUTES.get("api/operator/alerts", *PAGE)
async def operator_alerts(services: OperatorServices, req: func.HttpRequest) -> AlertList:
    """List the alerts, newest first."""
    return await services.alerts.list(*_page_of(req))


@ROUTES.get("api/operator/alerts/causes")
async def operator_alert_causes(services: OperatorServices, _: func.HttpRequest) -> CauseList:
    """Group the newest alerts by their cause."""
    return await services.alerts.causes()


@ROUTES.post("api/operator/alerts/acknowledge")
async def operator_alerts_acknowledge(
    services: OperatorServices, _: func.HttpRequest, body: AcknowledgeRequest
) -> Acknowledged:
    """Take alerts upon yourself; the first one who does stays."""
    return await services.alerts.acknowledge(body)


@ROUTES.get("api/operator/poison", LISTING(default=POISON_LISTED), CONTINUATION)
async def operator_poison(services: OperatorServices, req: func.HttpRequest) -> PoisonList:
    """List the messages that nobody could read, with their reasons, oldest first."""
    return await services.poison.list(*_page_of(req, default=POISON_LISTED))


@ROUTES.post(f"{POISON}/redrive")
async def operator_poison_redrive(services: OperatorServices, req: func.HttpRequest, body: OperatorRequest) -> Settled:
    """Put a message back on its queue."""
    return await _settle(services.poison.redrive, req, body, "redriven")


@ROUTES.post(f"{POISON}/drop")
async def operator_poison_drop(services: OperatorServices, req: func.HttpRequest, body: OperatorRequest) -> Settled:
    """Remove a message for good."""
    return await _settle(services.poison.drop, req, body, "dropped")


async def _settle(
    action: Callable[[str, str, OperatorRequest], Awaitable[None]],
    req: func.HttpRequest,
    body: OperatorRequest,
    done: str,
) -> Settled:
    queue, message_id = req.route_params["queue"], req.route_params["messageId"]
    await action(queue, message_id, body)
    return Settled(queue=queue, id=message_id, status=done)


def _listing_of(req: func.HttpRequest) -> tuple[ProcessState, int, str | None]:
    """Read which orders are asked for, how many, and from where on; raises `InvalidError` with every fault."""
    state = req.params.get("state", ProcessState.ERROR)
    faults = [] if state in AGENDA_OF else [f"state: expected one of {', '.join(AGENDA_OF)}"]
    limit, continuation = _page_of(req, faults)
    return ProcessState(state), limit, continuation


def _page_of(req: func.HttpRequest, faults: Sequence[str] = (), default: int = LISTED) -> tuple[int, str | None]:
    """Read how many are asked for, and from where on; raises `InvalidError` with these and all further faults."""
    limit, continuation = req.params.get("limit", str(default)), req.params.get("continuation")
    more = [] if LIMIT.fullmatch(limit) and 1 <= int(limit) <= MAX_LISTED else [WRONG_LIMIT]
    if continuation is not None and not re.fullmatch(KEY, continuation):
        more.append("continuation: expected what the page before said")
    if faults or more:
        raise InvalidError([*faults, *more])
    return int(limit), continuation
