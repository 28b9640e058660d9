"""Binds the calls of the API to HTTP. Only open calls work without the key (OPR-5).

If operators sign in, the other calls are made in the name of the signed-in person (OPR-10).
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import azure.functions as func
from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from engine.domain.errors import InputFault, InvalidError
from engine.domain.messages import MAX_FAULTS, MAX_OF_NAME, faults_of
from engine.domain.texts import plain
from engine.http.call_limits import CallLimits
from engine.http.models import Parameters
from engine.http.openapi import Route, description
from engine.http.responses import body_of, ok, order_id_of, unless_known
from engine.http.sign_in import SignIn
from engine.runtime.functions import Functions


def http_functions(
    routes: Sequence[Route], sign_in: SignIn | None = None, limits: CallLimits | None = None
) -> func.Blueprint:
    """Make a function for each call, and one for the OpenAPI description.

    Open calls are limited in number. The other calls are made in the name of the signed-in person.
    """
    triggers = Functions()
    described = cache(lambda: ok(description(routes)).get_body())

    @triggers.route("api/openapi.json", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
    async def operator_openapi(req: func.HttpRequest) -> func.HttpResponse:
        return func.HttpResponse(described(), mimetype="application/json")

    for route in routes:
        limit = limits if route.is_limited else None
        _bind(triggers, route, None if route.open else sign_in, limit)
    return triggers


def _bind(
    triggers: Functions, route: Route, sign_in: SignIn | None, limits: CallLimits | None
) -> None:
    level = func.AuthLevel.ANONYMOUS if route.open else func.AuthLevel.FUNCTION

    @triggers.function_name(route.name)
    @triggers.route(route.path, methods=[route.method], auth_level=level)
    async def call(req: func.HttpRequest) -> func.HttpResponse:
        if limits:
            limits.check(req.headers)
        arguments: Mapping[str, Any] = dict(_arguments(route, req))
        if sign_in:
            arguments = sign_in.in_the_name_of(req.headers, arguments)
        view = await route.call(**arguments)
        answer = ok(view.model_dump(by_alias=True), view.http_status, view.headers())
        return unless_known(req, answer) if view.etag else answer


def _arguments(route: Route, req: func.HttpRequest) -> Iterator[tuple[str, Any]]:
    """Yield the call's arguments by its types. Raises `InvalidError` or `UnknownOrderError`."""
    if route.method != "GET":
        _check_query(route, req)
    for name, body in route.bodies:
        yield name, body_of(req, body)
    for name, parameters in route.takes(Parameters):
        yield name, _read(parameters, req)
    for name, _ in route.takes(str):
        yield name, order_id_of(req) if name == "order_id" else req.route_params[to_camel(name)]


KEY_IN_QUERY = {"code", "clientId"}
"""The query parameters in which Azure's host accepts a function key."""


def _check_query(route: Route, req: func.HttpRequest) -> None:
    """Raise `InvalidError` for an unknown query parameter."""
    known = set(KEY_IN_QUERY)
    for _, parameters in route.takes(Parameters):
        if parameters.place == "query":
            known |= {field.alias or name for name, field in parameters.model_fields.items()}
    # The call would ignore it, and act differently from what the caller expects.
    if unknown := [name for name in req.params if name not in known]:
        faults = [InputFault(plain(name, MAX_OF_NAME), "extra_forbidden") for name in unknown]
        raise InvalidError(faults[:MAX_FAULTS])


def _read(parameters: type[Parameters], req: func.HttpRequest) -> Parameters:
    given = req.params if parameters.place == "query" else req.headers
    names = [field.alias or name for name, field in parameters.model_fields.items()]
    known = {name: given[name] for name in names if name in given}
    try:
        return parameters.model_validate_strings(known)
    except ValidationError as error:
        raise InvalidError(faults_of(error)) from None
