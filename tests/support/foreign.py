"""A service that is not built for the app, and gives out the tokens that it wants: over real HTTP."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from aiohttp import web
from multidict import CIMultiDictProxy


@dataclass(frozen=True, kw_only=True)
class ReceivedCall:
    """One call of the service."""

    method: str
    target: str
    """The path and the query, as they were sent."""
    headers: CIMultiDictProxy[str]
    body: str


class ForeignService:
    """Answers `200 {}` to any call but those for which `statuses` has another status.

    At `/token` it gives out tokens, each with a number.
    """

    def __init__(self) -> None:
        self.calls: list[ReceivedCall] = []
        self.token_requests: list[ReceivedCall] = []
        self.statuses: list[int] = []
        self.token: Mapping[str, object] = {"expires_in": 3600}
        """What it says of a token."""
        self.token_status = 200
        self.may_answer = asyncio.Event()
        """Cleared, it gives out no token until it is set."""
        self.may_answer.set()
        self.app = web.Application()
        self.app.router.add_post("/token", self._token)
        self.app.router.add_route("*", "/{path:.*}", self._answer)

    async def _answer(self, request: web.Request) -> web.Response:
        self.calls.append(await received(request))
        status = self.statuses.pop(0) if self.statuses else 200
        return web.Response(status=status, text="" if status == 204 else "{}")

    async def _token(self, request: web.Request) -> web.Response:
        self.token_requests.append(await received(request))
        number = len(self.token_requests)
        await self.may_answer.wait()
        token = {"access_token": f"token-{number}", "token_type": "Bearer"}
        elsewhere = {"Location": "/elsewhere"} if self.token_status == 302 else {}
        return web.json_response(token | self.token, status=self.token_status, headers=elsewhere)

    def shown(self, header: str = "Authorization") -> list[str | None]:
        """What each call had in this header."""
        return [call.headers.get(header) for call in self.calls]


async def received(request: web.Request) -> ReceivedCall:
    """Note a request."""
    return ReceivedCall(
        method=request.method,
        target=request.raw_path,
        headers=request.headers,
        body=await request.text(),
    )
