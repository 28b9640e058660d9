"""Binds the simulated services to HTTP."""

import math
import re
from collections.abc import Mapping
from datetime import timedelta

import azure.functions as func

from core.errors import InvalidError
from entrypoints.functions import Functions
from entrypoints.http import body_of, ok, problem
from simulator.rules import Call, Fault
from simulator.samples import Trial
from simulator.service import SampleService, Simulator

KEY = re.compile(r"[\x21-\x7e]{1,200}")
REFUSED_IN_KEYS = set("/\\#?")


def blueprint(service: Simulator, samples: SampleService) -> func.Blueprint:
    """Return the functions of all simulated services."""
    triggers = Functions()

    _bind_operators(triggers, service)
    _bind_samples(triggers, samples)

    @triggers.route(
        "simulator/{service}/{action}", methods=["POST"], auth_level=func.AuthLevel.ANONYMOUS
    )
    async def simulator_call(req: func.HttpRequest) -> func.HttpResponse:
        name, action = req.route_params["service"], req.route_params["action"]
        if not service.knows(name, action):
            return _unknown()
        answer = await service.call(name, action, _key(req), body_of(req, Call))
        if answer.status == 200:
            return ok(answer.result)
        asks = _asks(answer.retry_after)
        if answer.status == 202:
            return ok({"status": "accepted"}, answer.status, asks)
        return problem(answer.status, "The call failed", answer.reason, headers=asks)

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
        return ok(await service.set_fault(name, body_of(req, Fault)))


def _bind_samples(triggers: Functions, samples: SampleService) -> None:
    @triggers.route("simulator", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    async def simulator_services(req: func.HttpRequest) -> func.HttpResponse:
        return ok(await samples.overview())

    @triggers.route("simulator/sample", methods=["POST"], auth_level=func.AuthLevel.FUNCTION)
    async def simulator_sample(req: func.HttpRequest) -> func.HttpResponse:
        return ok({"orderId": await samples.place(body_of(req, Trial))}, 202)


def _asks(pause: timedelta | None) -> Mapping[str, str]:
    """Return the header that asks for a pause, in whole seconds and no less."""
    return {"Retry-After": str(math.ceil(pause.total_seconds()))} if pause else {}


def _unknown() -> func.HttpResponse:
    return problem(404, "There is no such service or action")


def _key(req: func.HttpRequest) -> str:
    key = str(req.headers.get("Idempotency-Key", ""))
    if not KEY.fullmatch(key) or REFUSED_IN_KEYS.intersection(key):
        raise InvalidError(
            ["Idempotency-Key: expected 1 to 200 printable characters without / \\ # ?"]
        )
    return key
