"""Binds the simulated services to HTTP."""

import math
import re
from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import urlsplit

import azure.functions as func

from engine.declarations.service_forms import METHODS, OperationRoute
from engine.domain.errors import InvalidError
from engine.http.responses import body_of, content_of, ok, problem
from engine.runtime.functions import Functions
from samples.simulator.rules import SimulatedFault, action_of, call_of
from samples.simulator.samples import SampleRequest
from samples.simulator.service import SampleService, SimulatedAnswer, Simulator

KEY = re.compile(r"[\x21-\x7e]{1,200}")
REFUSED_IN_KEYS = set("/\\#?")


def simulator_functions(service: Simulator, samples: SampleService) -> func.Blueprint:
    """Make the functions of all simulated services."""
    triggers = Functions()

    _bind_operators(triggers, service)
    _bind_samples(triggers, samples)

    @triggers.route(
        "simulator/{service}/{*path}", methods=METHODS, auth_level=func.AuthLevel.ANONYMOUS
    )
    async def simulator_service_call(req: func.HttpRequest) -> func.HttpResponse:
        name = req.route_params["service"]
        called = service.services.get(name)
        action = called and action_of(called, req.method, _path_below(req, name))
        if not called or not action:
            return _unknown()
        route, key = called.form.route(action), _key(req, called.form.key_header)
        call = call_of(called, action, key, content_of(req) if route.has_body else b"")
        return _answered(await service.call(name, action, key, call), route)

    return triggers


def _bind_operators(triggers: Functions, service: Simulator) -> None:
    @triggers.route(
        "simulator/{service}/ledger", methods=["GET"], auth_level=func.AuthLevel.FUNCTION
    )
    async def simulator_ledger(req: func.HttpRequest) -> func.HttpResponse:
        name = req.route_params["service"]
        if not service.knows(name):
            return _unknown()
        return ok(await service.report(name, req.params.get("orderId")))

    @triggers.route(
        "simulator/{service}/faults", methods=["GET", "PUT"], auth_level=func.AuthLevel.FUNCTION
    )
    async def simulator_faults(req: func.HttpRequest) -> func.HttpResponse:
        name = req.route_params["service"]
        if not service.knows(name):
            return _unknown()
        if req.method == "GET":
            return ok(await service.faults(name))
        return ok(await service.set_fault(name, body_of(req, SimulatedFault)))


def _bind_samples(triggers: Functions, samples: SampleService) -> None:
    @triggers.route("simulator", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    async def simulator_services(req: func.HttpRequest) -> func.HttpResponse:
        return ok(await samples.overview())

    @triggers.route("simulator/sample", methods=["POST"], auth_level=func.AuthLevel.FUNCTION)
    async def simulator_sample(req: func.HttpRequest) -> func.HttpResponse:
        return ok({"orderId": await samples.place(body_of(req, SampleRequest))}, 202)


def _path_below(req: func.HttpRequest, name: str) -> str:
    """Return the encoded path of a call below the address of the service."""
    return str(urlsplit(req.url).path).partition(f"/simulator/{name}")[2]


def _answered(answer: SimulatedAnswer, route: OperationRoute) -> func.HttpResponse:
    if answer.status == 200 and route.answer_may_be_empty:
        return func.HttpResponse(status_code=204)
    if answer.status == 200:
        return ok(answer.result)
    asks = _asks(answer.retry_after)
    if answer.status == 202:
        return ok({"status": "accepted"}, answer.status, asks)
    return problem(answer.status, "The call failed", answer.reason, headers=asks)


def _asks(pause: timedelta | None) -> Mapping[str, str]:
    """Return the header that requests a pause. Its seconds are rounded up."""
    return {"Retry-After": str(math.ceil(pause.total_seconds()))} if pause else {}


def _unknown() -> func.HttpResponse:
    return problem(404, "There is no such service or action")


def _key(req: func.HttpRequest, header: str) -> str:
    key = str(req.headers.get(header, ""))
    if not KEY.fullmatch(key) or REFUSED_IN_KEYS.intersection(key):
        raise InvalidError([f"{header}: expected 1 to 200 printable characters without / \\ # ?"])
    return key
