"""The HTTP trigger: routes, keys, and the way from aiohttp's requests to Azure's and back."""

import hmac
import logging
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web
from azure.functions.meta import Datum
from multidict import CIMultiDict, MultiMapping

from local.host.errors import HostError, InvocationFailed
from local.host.http_answer import HttpAnswer
from local.host.index import Function, HttpTrigger
from local.host.invoke import Invoker
from local.host.routes import Route, compile_route

if TYPE_CHECKING:
    import asyncio

    from aiohttp.http import RawRequestMessage
    from aiohttp.streams import StreamReader

    from local.host.invoke import Call

MAX_BODY_BYTES = 100 * 1024 * 1024

_log = logging.getLogger("local.host.http")


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One route of one function."""

    route: Route
    trigger: HttpTrigger
    call: "Call"

    def takes(self, method: str) -> bool:
        """Tell whether a method is served; HEAD is served as GET without its body."""
        methods = self.trigger.methods
        return not methods or method in methods or (method == "HEAD" and "GET" in methods)


class HttpListener:
    """Serves the routes of some functions on one socket."""

    def __init__(self, *, functions: Sequence[Function], prefix: str, key: str, invoker: Invoker, grace: float) -> None:
        endpoints = [_endpoint(function, prefix, invoker) for function in functions]
        self._endpoints = sorted(endpoints, key=lambda each: each.route.rank)
        self._key = key.encode()
        self._runner = web.ServerRunner(
            web.Server(self._answer, request_factory=_request, access_log=None), shutdown_timeout=grace
        )

    def serves_root(self) -> bool:
        """Tell whether a function has the path `/`."""
        return any(each.route.match("/") is not None for each in self._endpoints)

    async def start(self, listening: socket.socket) -> None:
        """Begin to accept requests."""
        await self._runner.setup()
        await web.SockSite(self._runner, listening).start()

    async def stop(self) -> None:
        """Accept nothing more and wait for the requests in flight."""
        await self._runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.rel_url.raw_path
        matches = [(e, p) for e in self._endpoints if (p := e.route.match(path)) is not None]
        for endpoint, parameters in matches:
            if endpoint.takes(request.method):
                return await self._serve(endpoint, request, parameters)
        return _nobody_takes(request.method, [endpoint for endpoint, _ in matches], path)

    async def _serve(self, endpoint: Endpoint, request: web.BaseRequest, parameters: Mapping[str, str]) -> web.Response:
        if not endpoint.trigger.anonymous and not self._has_key(request):
            return web.Response(status=401)
        body = await request.read()
        try:
            return _response(await endpoint.call(_datum(request, parameters, body), None))
        except InvocationFailed:
            return web.Response(status=500)
        except Exception:  # noqa: BLE001 - whatever an app returns, the caller gets an answer
            _log.exception("function %s: its answer cannot be sent", endpoint.call.function.name)
            return web.Response(status=500)

    def _has_key(self, request: web.BaseRequest) -> bool:
        given = request.headers.get("x-functions-key") or request.query.get("code") or ""
        return bool(self._key) and hmac.compare_digest(given.encode(), self._key)


def _endpoint(function: Function, prefix: str, invoker: Invoker) -> Endpoint:
    if not isinstance(function.trigger, HttpTrigger):
        raise TypeError(function.name)
    try:
        route = compile_route(prefix, function.trigger.route)
    except HostError as error:
        raise HostError(f"function {function.name}: {error}") from error
    return Endpoint(route=route, trigger=function.trigger, call=invoker.prepare(function))


def _request(
    message: "RawRequestMessage",
    payload: "StreamReader",
    protocol: Any,  # aiohttp's types of these two are private
    writer: Any,
    task: "asyncio.Task[None]",
) -> web.BaseRequest:
    """Make aiohttp's request with Azure's limit of the body instead of its own 1 MB."""
    return web.BaseRequest(message, payload, protocol, writer, task, task.get_loop(), client_max_size=MAX_BODY_BYTES)


def _nobody_takes(method: str, candidates: Sequence[Endpoint], path: str) -> web.Response:
    if not candidates:
        return web.Response(text="The local Functions host is running.") if path == "/" else _empty(404)
    allowed = sorted({m for each in candidates for m in each.trigger.methods} | {"OPTIONS"})
    headers = {"Allow": ", ".join(allowed)}
    return web.Response(status=204 if method == "OPTIONS" else 405, headers=headers)


def _empty(status: int) -> web.Response:
    return web.Response(status=status)


def _datum(request: web.BaseRequest, parameters: Mapping[str, str], body: bytes) -> Datum:
    return Datum(
        {
            "method": Datum(request.method, "string"),
            "url": Datum(f"{request.scheme}://{request.host}{request.path_qs}", "string"),
            "headers": _joined(request.headers),
            "query": _joined(request.query),
            "params": {name: Datum(value, "string") for name, value in parameters.items()},
            "body": Datum(body, "bytes"),
        },
        "http",
    )


def _joined(pairs: MultiMapping[str]) -> dict[str, Datum]:
    """Several values of one name become one, separated by commas, as in Azure."""
    return {name: Datum(",".join(pairs.getall(name)), "string") for name in pairs}


def _response(answer: object) -> web.Response:
    if not isinstance(answer, HttpAnswer):
        raise TypeError(type(answer).__name__)
    return web.Response(status=answer.status, headers=CIMultiDict(answer.headers), body=answer.body or None)
