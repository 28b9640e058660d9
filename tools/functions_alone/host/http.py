"""The HTTP trigger: routes, keys, and the conversion between aiohttp's requests and Azure's."""

import hmac
import logging
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import HttpVersion11, web
from azure.functions.meta import Datum
from multidict import CIMultiDict, MultiDict, MultiMapping

from functions_alone.host import cors, itself
from functions_alone.host.connection import Server, is_gone
from functions_alone.host.errors import HostError, InvocationFailed
from functions_alone.host.http_answer import HttpAnswer
from functions_alone.host.index import ANONYMOUS, FUNCTION, AppFunction, HttpTrigger
from functions_alone.host.invoke import Invoker
from functions_alone.host.routes import (
    RouteTemplate,
    compile_route,
    encoded_anew,
    order_of_name,
    percent_decoded,
    without_dots,
)
from functions_alone.host.settings import HostSettings

if TYPE_CHECKING:
    import asyncio

    from aiohttp.http import RawRequestMessage
    from aiohttp.streams import StreamReader

    from functions_alone.host.invoke import FunctionCall

MAX_BODY_BYTES = 100 * 1024 * 1024
MAX_REQUEST_LINE_BYTES = 8192
_LONGEST_READ_LINE_BYTES = 8 * MAX_REQUEST_LINE_BYTES
"""The longest request line that is read. aiohttp itself refuses a longer one with 400."""

MAX_HEADERS_BYTES = 32 * 1024
MAX_HEADERS = 100
_OF_THE_HOST = ("/admin/", "/runtime/webhooks/")

_log = logging.getLogger("functions_alone.host.http")


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One route of one function."""

    route: RouteTemplate
    trigger: HttpTrigger
    call: "FunctionCall"

    def takes(self, method: str) -> bool:
        """Return whether the route serves a method. HEAD and OPTIONS count only if the function names them."""
        return not self.trigger.methods or method in self.trigger.methods


class HttpListener:
    """Serves the routes of several functions on one socket."""

    def __init__(
        self,
        *,
        functions: Sequence[AppFunction],
        prefix: str,
        own: HostSettings,
        invoker: Invoker,
        home_page: bool = True,
    ) -> None:
        endpoints = [_endpoint(function, prefix, invoker) for function in functions]
        # As in Azure the first route that fits is taken, and not the one that is the most specific.
        self._endpoints = sorted(
            endpoints, key=lambda endpoint: order_of_name(endpoint.call.function.name)
        )
        self._key = own.function_key.encode()
        self._origins = own.origins
        self._home_page = home_page
        self._runner = web.ServerRunner(
            Server(
                self._answer,
                request_factory=_request,
                access_log=None,
                max_line_size=_LONGEST_READ_LINE_BYTES,
                max_field_size=2 * MAX_HEADERS_BYTES,
                max_headers=10 * MAX_HEADERS,
                auto_decompress=False,  # a function gets the bytes that were sent, as in Azure
            ),
            shutdown_timeout=own.shutdown_seconds,
        )

    async def start(self, listening: socket.socket) -> None:
        """Begin to accept requests."""
        await self._runner.setup()
        await web.SockSite(self._runner, listening).start()

    async def stop(self) -> None:
        """Stop accepting requests, and wait for those in flight."""
        await self._runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if status := _refusal(request, self._origins):
            return _last(status)
        if request.headers.get("Origin") not in self._origins:
            return await self._answer_call(request)
        answer = (
            cors.permission(request)
            if cors.is_preflight(request)
            else await self._answer_call(request)
        )
        return cors.readable(answer, request)

    async def _answer_call(self, request: web.BaseRequest) -> web.StreamResponse:
        path = _path(request)
        if path.lower().startswith(_OF_THE_HOST):
            return self._answer_for_the_host(path.lower(), request)
        if path == itself.PATH:
            return await itself.answer(request) if self._has_key(request) else _empty(401)
        for endpoint in self._endpoints:
            if (
                endpoint.takes(request.method)
                and (parameters := endpoint.route.match(path)) is not None
            ):
                return await self._serve(endpoint, request, parameters)
        return self._nobody_takes(path)

    async def _serve(
        self, endpoint: Endpoint, request: web.BaseRequest, parameters: Mapping[str, str]
    ) -> web.Response:
        if not self._may_call(endpoint.trigger, request):
            return _empty(401)
        length = request.content_length or 0
        if length > MAX_BODY_BYTES:
            return _last(500)
        body = (
            await request.read() if length else b""
        )  # a body of unknown length is not handed over
        await endpoint.call.possible()
        if is_gone(request.transport):
            return _empty(499)
        try:
            answer = await endpoint.call(_datum(request, parameters, body), None)
            return _response(answer, chunked=request.version >= HttpVersion11)
        except InvocationFailed:
            return web.Response(status=500)
        except Exception:  # noqa: BLE001 - whatever an app returns, the caller gets an answer
            _log.exception("function %s: its answer cannot be sent", endpoint.call.function.name)
            return web.Response(status=500)

    def _answer_for_the_host(self, path: str, request: web.BaseRequest) -> web.Response:
        """Answer for one of the host's own pages.

        All but the ping need the master key, which nobody has here.
        """
        if path == "/admin/host/ping":
            return _empty(200)
        if self._has_key(request):
            return _empty(403)
        of_admin = path.startswith("/admin/")
        return web.Response(
            status=401, headers={"WWW-Authenticate": "Bearer"} if of_admin else None
        )

    def _nobody_takes(self, path: str) -> web.Response:
        if path != "/":
            return _empty(404)
        return (
            web.Response(text="The local Functions host is running.")
            if self._home_page
            else _empty(204)
        )

    def _may_call(self, trigger: HttpTrigger, request: web.BaseRequest) -> bool:
        """Return whether the caller may use the route. Nobody may use a route that needs the master key."""
        return trigger.level == ANONYMOUS or (trigger.level == FUNCTION and self._has_key(request))

    def _has_key(self, request: web.BaseRequest) -> bool:
        given = request.headers.get("x-functions-key") or request.query.get("code") or ""
        return bool(self._key) and hmac.compare_digest(given.encode(), self._key)


def _endpoint(function: AppFunction, prefix: str, invoker: Invoker) -> Endpoint:
    if not isinstance(function.trigger, HttpTrigger):
        raise TypeError(function.name)
    try:
        route = compile_route(prefix, function.trigger.route)
    except HostError as error:
        raise error.within(f"function {function.name}") from error
    return Endpoint(route=route, trigger=function.trigger, call=invoker.prepare(function))


def _request(
    message: "RawRequestMessage",
    payload: "StreamReader",
    protocol: Any,  # aiohttp's types of these two are private
    writer: Any,
    task: "asyncio.Task[None]",
) -> web.BaseRequest:
    """Make aiohttp's request without its limit of 1 MB.

    The announced length has already been compared with Azure's limit.
    """
    return web.BaseRequest(
        message, payload, protocol, writer, task, task.get_loop(), client_max_size=0
    )


def _refusal(request: web.BaseRequest, origins: Collection[str]) -> int:
    """Return the status with which a request is refused, or 0.

    Azure refuses malformed requests, and this host refuses pages of other sites.
    """
    if len(f"{request.method} {request.raw_path} HTTP/1.1\r\n") > MAX_REQUEST_LINE_BYTES:
        return 414
    if itself.is_from_elsewhere(request, origins):
        return 403
    if not all(value.isascii() for _, value in request.raw_headers):
        return 400
    size = sum(len(name) + len(value) + len(": \r\n") for name, value in request.raw_headers)
    return 431 if size > MAX_HEADERS_BYTES or len(request.raw_headers) > MAX_HEADERS else 0


def _last(status: int) -> web.Response:
    """Answer with a status, and close the connection afterwards."""
    response = _empty(status)
    response.force_close()
    return response


def _empty(status: int) -> web.Response:
    return web.Response(status=status)


def _datum(request: web.BaseRequest, parameters: Mapping[str, str], body: bytes) -> Datum:
    return Datum(
        {
            "method": Datum(request.method, "string"),
            "url": Datum(_url(request), "string"),
            "headers": {
                name: value for name, value in _joined(request.headers).items() if value.value
            },
            "query": _query(request.rel_url.raw_query_string),
            "params": {name: Datum(value, "string") for name, value in parameters.items()},
            "body": Datum(body, "bytes"),
        },
        "http",
    )


def _url(request: web.BaseRequest) -> str:
    """Return the address with its path decoded and encoded again. As in Azure, `%252F` becomes `%2F`."""
    query = request.rel_url.raw_query_string
    path = encoded_anew(_path(request))
    return f"{request.scheme}://{request.host}{path}{'?' if query else ''}{query}"


def _path(request: web.BaseRequest) -> str:
    """Return the decoded path. As in Azure, a `#` is part of it, because clients do not send a fragment."""
    sent = request.raw_path.partition("?")[0]
    # A target may be a whole address; the path of that has no `#`.
    raw = sent if sent.startswith("/") else request.rel_url.raw_path
    return without_dots(percent_decoded(raw, but="/"))


def _joined(pairs: MultiMapping[str]) -> dict[str, Datum]:
    """Join the values of one name into one, separated by commas, as in Azure."""
    return {name: Datum(",".join(pairs.getall(name)), "string") for name in pairs}


def _query(text: str) -> dict[str, Datum]:
    """Return the query parameters. Empty values do not reach a function in Python."""
    pairs = [pair.replace("+", " ").partition("=") for pair in text.split("&") if pair]
    given = _joined(
        MultiDict((percent_decoded(name), percent_decoded(value)) for name, _, value in pairs)
    )
    return {name: value for name, value in given.items() if value.value}


def _response(answer: object, *, chunked: bool) -> web.Response:
    if not isinstance(answer, HttpAnswer):
        raise TypeError(type(answer).__name__)
    response = web.Response(
        status=answer.status, headers=CIMultiDict(answer.headers), body=answer.body or None
    )
    if answer.body and chunked:
        response.enable_chunked_encoding()  # as Azure sends it, without a length
    return response
