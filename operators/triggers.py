"""Binds the operators' API to HTTP: nothing under /api/operator works without the key (OPR-5)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import azure.functions as func
from pydantic.alias_generators import to_camel

from entrypoints.functions import Functions, in_turn, on_bus, on_storage_queue, through_outages
from entrypoints.http import body_of, ok, order_id_of, query_of
from operators.alerts import AlertDesk
from operators.bulk import BulkService
from operators.health import HealthService
from operators.openapi import Route, description
from operators.overview import OverviewService
from operators.poison import GIVEN_UP, PoisonService
from operators.requests import OperatorRequest, Query
from operators.retention import RetentionService
from operators.service import OperatorService
from stores.poison import PoisonStore

EVERY_HOUR = "0 17 * * * *"

ORDER = "orders/{orderId}"
POISON = "poison/{queue}/{messageId}"


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


def routes(its: OperatorServices) -> Sequence[Route]:
    """Return what operators may ask; each is a function of the app, and stands in the description of the API."""
    return [
        Route("operator_overview", "GET", "overview", its.overview.look),
        Route("operator_figures", "GET", "figures", its.overview.last_hour),
        Route("operator_orders", "GET", "orders", its.orders.list),
        Route("operator_search", "GET", "search", its.orders.search),
        Route("operator_order", "GET", ORDER, its.orders.inspect),
        Route("operator_explain", "GET", f"{ORDER}/explain", its.orders.explain),
        Route("operator_resubmit", "POST", f"{ORDER}/resubmit", its.orders.resubmit),
        Route("operator_skip", "POST", f"{ORDER}/skip", its.orders.skip),
        Route("operator_cancel", "POST", f"{ORDER}/cancel", its.orders.cancel),
        Route("operator_erase", "POST", f"{ORDER}/erase", its.retention.erase),
        Route("operator_bulk", "POST", "bulk", its.bulk.run),
        Route("operator_find_customer", "POST", "customers/find", its.retention.find),
        Route("operator_alerts", "GET", "alerts", its.alerts.list),
        Route("operator_alert_causes", "GET", "alerts/causes", its.alerts.causes),
        Route("operator_alerts_acknowledge", "POST", "alerts/acknowledge", its.alerts.acknowledge),
        Route("operator_poison", "GET", "poison", its.poison.list),
        Route("operator_poison_redrive", "POST", f"{POISON}/redrive", its.poison.redrive),
        Route("operator_poison_drop", "POST", f"{POISON}/drop", its.poison.drop),
    ]


def blueprint(services: OperatorServices, business: Mapping[str, Any]) -> func.Blueprint:
    """Return the operators' functions, the health check, and the description of the API, the business's included."""
    triggers, table = Functions(), routes(services)
    described = cache(partial(description, table, business))

    @triggers.route("api/health", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
    async def health_report(req: func.HttpRequest) -> func.HttpResponse:
        health = await services.health.report()
        return ok(health.model_dump(), 200 if health.status == "healthy" else 503)

    @triggers.route("api/openapi.json", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
    async def operator_openapi(req: func.HttpRequest) -> func.HttpResponse:
        return ok(described())

    @triggers.timer_trigger(arg_name="timer", schedule=EVERY_HOUR, use_monitor=False)
    async def operator_retention(timer: func.TimerRequest) -> None:
        await in_turn("operator_retention", services.retention.sweep)

    for route in table:
        _bind(triggers, route)
    return triggers


def _bind(triggers: Functions, route: Route) -> None:
    @triggers.function_name(route.name)
    @triggers.route(route.path, methods=[route.method], auth_level=func.AuthLevel.FUNCTION)
    async def operator(req: func.HttpRequest) -> func.HttpResponse:
        answer = await route.call(**dict(_arguments(route, req)))
        return ok(answer.model_dump(by_alias=True), route.status)


def _arguments(route: Route, req: func.HttpRequest) -> Iterator[tuple[str, Any]]:
    """Yield what the call takes, as its types say; raises `InvalidError` or `UnknownOrderError`."""
    for name, body in route.takes(OperatorRequest):
        yield name, body_of(req, body)
    for name, query in route.takes(Query):
        yield name, query_of(req, query)
    for name, _ in route.takes(str):
        yield name, order_id_of(req) if name == "order_id" else req.route_params[to_camel(name)]


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
