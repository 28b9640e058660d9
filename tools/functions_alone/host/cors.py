"""Which pages of other sites may call: those whose origins a setting lists, as with Core Tools and in Azure (CORS)."""

from aiohttp import web

REQUESTED, ALLOWED = "Access-Control-Request-", "Access-Control-Allow-"


def origins_in(text: str) -> frozenset[str]:
    """Return the origins that are listed, with commas between them; `*` is none, and lets nobody in."""
    return frozenset(filter(None, map(str.strip, text.split(","))))


def is_preflight(request: web.BaseRequest) -> bool:
    """Tell whether a browser asks what a page may call, before the page does."""
    return request.method == "OPTIONS" and f"{REQUESTED}Method" in request.headers


def permission(request: web.BaseRequest) -> web.Response:
    """Allow what is asked for: what a call needs besides, such as a key, the call itself is asked for."""
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
    """Let the page read the answer; never with cookies."""
    answer.headers[f"{ALLOWED}Origin"] = request.headers["Origin"]
    answer.headers.add("Vary", "Origin")
    return answer
