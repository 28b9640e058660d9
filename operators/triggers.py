"""Binds the operators' API to HTTP: nothing under /api/operator works without the key (OPR-5)."""

import azure.functions as func

from core.errors import InvalidError
from core.orders import ProcessState
from edge.http import answers, body_of, ok, order_id_of
from operators.health import HealthService
from operators.poison import PoisonService
from operators.rules import AGENDA_OF, OperatorRequest
from operators.service import OperatorService


def blueprint(service: OperatorService, poison: PoisonService, health: HealthService) -> func.Blueprint:
    """Return the operators' functions, and the health check."""
    triggers = func.Blueprint()

    @triggers.route("api/operator/orders", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    @answers
    async def operator_orders(req: func.HttpRequest) -> func.HttpResponse:
        state, limit = _listing_of(req)
        return ok(await service.list(state, limit, req.params.get("continuation")))

    @triggers.route("api/operator/orders/{orderId}", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    @answers
    async def operator_order(req: func.HttpRequest) -> func.HttpResponse:
        return ok(await service.inspect(order_id_of(req)))

    @triggers.route("api/operator/orders/{orderId}/resubmit", methods=["POST"], auth_level=func.AuthLevel.FUNCTION)
    @answers
    async def operator_resubmit(req: func.HttpRequest) -> func.HttpResponse:
        order_id = order_id_of(req)
        await service.resubmit(order_id, body_of(req, OperatorRequest))
        return ok({"orderId": order_id, "status": "resubmitted"}, 202)

    @triggers.route("api/operator/alerts", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    @answers
    async def operator_alerts(req: func.HttpRequest) -> func.HttpResponse:
        return ok(await service.alerts())

    @triggers.route("api/health", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
    @answers
    async def health_report(req: func.HttpRequest) -> func.HttpResponse:
        healthy, report = await health.report()
        return ok(report, 200 if healthy else 503)

    _bind_poison(triggers, poison)
    return triggers


def _bind_poison(triggers: func.Blueprint, poison: PoisonService) -> None:
    @triggers.route("api/operator/poison", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    @answers
    async def operator_poison(req: func.HttpRequest) -> func.HttpResponse:
        return ok(await poison.list())

    @triggers.route(
        "api/operator/poison/{queue}/{messageId}/redrive", methods=["POST"], auth_level=func.AuthLevel.FUNCTION
    )
    @answers
    async def operator_poison_redrive(req: func.HttpRequest) -> func.HttpResponse:
        queue, message_id = req.route_params["queue"], req.route_params["messageId"]
        await poison.redrive(queue, message_id, body_of(req, OperatorRequest))
        return ok({"queue": queue, "id": message_id, "status": "redriven"}, 202)

    @triggers.route(
        "api/operator/poison/{queue}/{messageId}/drop", methods=["POST"], auth_level=func.AuthLevel.FUNCTION
    )
    @answers
    async def operator_poison_drop(req: func.HttpRequest) -> func.HttpResponse:
        queue, message_id = req.route_params["queue"], req.route_params["messageId"]
        await poison.drop(queue, message_id, body_of(req, OperatorRequest))
        return ok({"queue": queue, "id": message_id, "status": "dropped"}, 202)


def _listing_of(req: func.HttpRequest) -> tuple[ProcessState, int]:
    state, limit = req.params.get("state", ProcessState.ERROR), req.params.get("limit", "50")
    faults = []
    if state not in AGENDA_OF:
        faults.append(f"state: expected one of {', '.join(AGENDA_OF)}")
    if not (limit.isdecimal() and 1 <= int(limit) <= 500):
        faults.append("limit: expected a number from 1 to 500")
    if faults:
        raise InvalidError(faults)
    return ProcessState(state), int(limit)
