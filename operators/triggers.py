"""Binds the operators' API to HTTP: nothing under /api/operator works without the key (OPR-5)."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import azure.functions as func

from core.errors import InvalidError
from core.orders import ProcessState
from edge.functions import Functions
from edge.http import answers, body_of, ok, order_id_of
from edge.timers import in_turn
from operators.alerts import AcknowledgeRequest, AlertDesk
from operators.bulk import BulkService
from operators.health import HealthService
from operators.openapi import MOST_LISTED, description
from operators.overview import OverviewService
from operators.poison import PoisonService, Settled
from operators.requests import BEGINNING_OF_ID, KEY, BulkRequest, FindRequest, OperatorRequest, SkipRequest
from operators.retention import RetentionService
from operators.service import AGENDA_OF, OperatorService
from operators.views import Acted, View

BEGINNING = re.compile(BEGINNING_OF_ID)
LIMIT = re.compile(r"[0-9]{1,3}")
WRONG_LIMIT = f"limit: expected a number from 1 to {MOST_LISTED}"

Request = TypeVar("Request", bound=OperatorRequest)


EVERY_HOUR = "0 17 * * * *"


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
        return ok(description())

    @triggers.route("api/operator/overview", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    @answers
    async def operator_overview(req: func.HttpRequest) -> func.HttpResponse:
        return shown(await services.overview.look())

    _bind_orders(triggers, services.orders)
    _bind_actions(triggers, services.orders)
    _bind_bulk(triggers, services.bulk)
    _bind_alerts(triggers, services.alerts)
    _bind_poison(triggers, services.poison)
    _bind_retention(triggers, services.retention)
    return triggers


def shown(view: View, status: int = 200) -> func.HttpResponse:
    """Answer with a view."""
    return ok(view.model_dump(mode="json", by_alias=True), status)


def _bind_orders(triggers: func.Blueprint, service: OperatorService) -> None:
    @triggers.route("api/operator/orders", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    @answers
    async def operator_orders(req: func.HttpRequest) -> func.HttpResponse:
        return shown(await service.list(*_listing_of(req)))

    @triggers.route("api/operator/search", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    @answers
    async def operator_search(req: func.HttpRequest) -> func.HttpResponse:
        beginning = req.params.get("id", "").strip()
        if not BEGINNING.fullmatch(beginning):
            raise InvalidError(["id: expected the beginning of an order id, such as b07-01JCX"])
        return shown(await service.search(beginning))

    @triggers.route("api/operator/orders/{orderId}", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    @answers
    async def operator_order(req: func.HttpRequest) -> func.HttpResponse:
        return shown(await service.inspect(order_id_of(req)))

    @triggers.route("api/operator/orders/{orderId}/explain", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    @answers
    async def operator_explain(req: func.HttpRequest) -> func.HttpResponse:
        return shown(await service.explain(order_id_of(req)))


def _bind_actions(triggers: func.Blueprint, service: OperatorService) -> None:
    @triggers.route("api/operator/orders/{orderId}/resubmit", methods=["POST"], auth_level=func.AuthLevel.FUNCTION)
    @answers
    async def operator_resubmit(req: func.HttpRequest) -> func.HttpResponse:
        return await _act(req, OperatorRequest, service.resubmit, "resubmitted")

    @triggers.route("api/operator/orders/{orderId}/skip", methods=["POST"], auth_level=func.AuthLevel.FUNCTION)
    @answers
    async def operator_skip(req: func.HttpRequest) -> func.HttpResponse:
        return await _act(req, SkipRequest, service.skip, "skipped")

    @triggers.route("api/operator/orders/{orderId}/cancel", methods=["POST"], auth_level=func.AuthLevel.FUNCTION)
    @answers
    async def operator_cancel(req: func.HttpRequest) -> func.HttpResponse:
        return await _act(req, OperatorRequest, service.cancel, "cancelled")


async def _act(
    req: func.HttpRequest, body: type[Request], action: Callable[[str, Request], Awaitable[None]], done: str
) -> func.HttpResponse:
    order_id = order_id_of(req)
    await action(order_id, body_of(req, body))
    return shown(Acted(order_id=order_id, status=done), 202)


def _bind_bulk(triggers: func.Blueprint, bulk: BulkService) -> None:
    @triggers.route("api/operator/bulk", methods=["POST"], auth_level=func.AuthLevel.FUNCTION)
    @answers
    async def operator_bulk(req: func.HttpRequest) -> func.HttpResponse:
        return shown(await bulk.run(body_of(req, BulkRequest)))


def _bind_alerts(triggers: func.Blueprint, alerts: AlertDesk) -> None:
    @triggers.route("api/operator/alerts", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    @answers
    async def operator_alerts(req: func.HttpRequest) -> func.HttpResponse:
        return shown(await alerts.list(*_page_of(req)))

    @triggers.route("api/operator/alerts/causes", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    @answers
    async def operator_alert_causes(req: func.HttpRequest) -> func.HttpResponse:
        return shown(await alerts.causes())

    @triggers.route("api/operator/alerts/acknowledge", methods=["POST"], auth_level=func.AuthLevel.FUNCTION)
    @answers
    async def operator_alerts_acknowledge(req: func.HttpRequest) -> func.HttpResponse:
        return shown(await alerts.acknowledge(body_of(req, AcknowledgeRequest)))


def _bind_retention(triggers: func.Blueprint, retention: RetentionService) -> None:
    @triggers.timer_trigger(arg_name="timer", schedule=EVERY_HOUR, use_monitor=False)
    async def operator_retention(timer: func.TimerRequest) -> None:
        await in_turn("operator_retention", retention.sweep)

    @triggers.route("api/operator/orders/{orderId}/erase", methods=["POST"], auth_level=func.AuthLevel.FUNCTION)
    @answers
    async def operator_erase(req: func.HttpRequest) -> func.HttpResponse:
        return await _act(req, OperatorRequest, retention.erase, "erased")

    @triggers.route("api/operator/customers/find", methods=["POST"], auth_level=func.AuthLevel.FUNCTION)
    @answers
    async def operator_find_customer(req: func.HttpRequest) -> func.HttpResponse:
        return shown(await retention.find(body_of(req, FindRequest)))


def _bind_poison(triggers: func.Blueprint, poison: PoisonService) -> None:
    @triggers.route("api/operator/poison", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    @answers
    async def operator_poison(req: func.HttpRequest) -> func.HttpResponse:
        return shown(await poison.list())

    @triggers.route(
        "api/operator/poison/{queue}/{messageId}/redrive", methods=["POST"], auth_level=func.AuthLevel.FUNCTION
    )
    @answers
    async def operator_poison_redrive(req: func.HttpRequest) -> func.HttpResponse:
        queue, message_id = req.route_params["queue"], req.route_params["messageId"]
        await poison.redrive(queue, message_id, body_of(req, OperatorRequest))
        return shown(Settled(queue=queue, id=message_id, status="redriven"), 202)

    @triggers.route(
        "api/operator/poison/{queue}/{messageId}/drop", methods=["POST"], auth_level=func.AuthLevel.FUNCTION
    )
    @answers
    async def operator_poison_drop(req: func.HttpRequest) -> func.HttpResponse:
        queue, message_id = req.route_params["queue"], req.route_params["messageId"]
        await poison.drop(queue, message_id, body_of(req, OperatorRequest))
        return shown(Settled(queue=queue, id=message_id, status="dropped"), 202)


def _listing_of(req: func.HttpRequest) -> tuple[ProcessState, int, str | None]:
    """Read which orders are asked for, how many, and from where on; raises `InvalidError` with every fault."""
    state = req.params.get("state", ProcessState.ERROR)
    faults = [] if state in AGENDA_OF else [f"state: expected one of {', '.join(AGENDA_OF)}"]
    limit, continuation = _page_of(req, faults)
    return ProcessState(state), limit, continuation


def _page_of(req: func.HttpRequest, faults: Sequence[str] = ()) -> tuple[int, str | None]:
    """Read how many are asked for, and from where on; raises `InvalidError` with these and all further faults."""
    limit, continuation = req.params.get("limit", "50"), req.params.get("continuation")
    more = [] if LIMIT.fullmatch(limit) and 1 <= int(limit) <= MOST_LISTED else [WRONG_LIMIT]
    if continuation is not None and not re.fullmatch(KEY, continuation):
        more.append("continuation: expected what the page before said")
    if faults or more:
        raise InvalidError([*faults, *more])
    return int(limit), continuation
