"""CORS: the origins in a setting may call from their pages, as with Core Tools and in Azure."""

from aiohttp import web

REQUESTED, ALLOWED = "Access-Control-Request-", "Access-Control-Allow-"


def origins_in(text: str) -> frozenset[str]:
    """Return the origins in a text, separated by commas. `*` is not an origin, and allows nobody."""
    return frozenset(filter(None, map(str.strip, text.split(","))))


def is_preflight(request: web.BaseRequest) -> bool:
    """Return whether this is a browser's preflight, which asks what a page may call."""
    return request.method == "OPTIONS" and f"{REQUESTED}Method" in request.headers


def permission(request: web.BaseRequest) -> web.Response:
    """Allow what the preflight asks for. The call itself still needs its key."""
    granted = {
        f"{ALLOWED}Methods": f"{REQUESTED}Method",
        f"{ALLOWED}Headers": f"{REQUESTED}Headers",
    }
    given = {
        name: request.headers[header]
        for name, header in granted.items()
        if header in request.headers
    }
    return web.Response(status=204, headers=given)


def readable(answer: web.StreamResponse, request: web.BaseRequest) -> web.StreamResponse:
    """Let the page read the answer, but never with cookies."""
    answer.headers[f"{ALLOWED}Origin"] = request.headers["Origin"]
    answer.headers.add("Vary", "Origin")
    return answer
