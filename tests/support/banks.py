"""Banks that are called with idempotency keys: behind the kit's receiver, or with faults of their own."""

import asyncio
import json
from contextlib import asynccontextmanager
from itertools import count

from aiohttp import web
from aiohttp.test_utils import TestServer

from testkit.checks import CallResult

UNDOES = {"/recall": "/pay"}
CONTENT = {"amount": "10.00"}


class Bank:
    """An ASGI application that pays and recalls at every call, and knows no keys."""

    def __init__(self):
        self.effects = []
        self.gate = None
        """An event for which each call waits before it takes effect; None if none does."""
        self.breaks = []
        """What the next calls raise."""
        self.entered = asyncio.Queue()
        """The path of each call that has come."""
        self.status = 200
        """What it answers when it has taken effect."""
        self.headers = []
        """Pairs that its answers have besides."""

    async def __call__(self, scope, receive, send):
        self.entered.put_nowait(scope["path"])
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message.get("more_body")
        content = json.loads(body)
        if self.breaks:
            raise self.breaks.pop(0)
        if self.gate:
            await self.gate.wait()
        amount = content.get("order", content).get("amount")
        status, answer = 422, {"detail": "no such amount"}
        if amount is not None:
            self.effects.append(scope["path"])
            status, answer = self.status, {"reference": f"r-{len(self.effects)}"}
        headers = [(b"content-type", b"application/json"), *self.headers]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        body = json.dumps(answer).encode()
        await send({"type": "http.response.body", "body": body[:5], "more_body": True})
        await send({"type": "http.response.body", "body": body[5:]})


class AsgiAnswer:
    """An answer of an ASGI application to one call."""

    def __init__(self):
        self.status, self.headers, self.body = None, {}, b""
        self.pairs = []
        """All headers, also of the same name."""

    async def send(self, message):
        if message["type"] == "http.response.start":
            self.status, self.pairs = message["status"], list(message["headers"])
            self.headers = dict(self.pairs)
        else:
            self.body += message["body"]


async def ask(app, path="/pay", key="o:pay", content=CONTENT, **more):
    """Call an ASGI application once; `more` are a method, a body as bytes, a kind of event, or that it is cut off."""
    headers = [] if key is None else [(b"idempotency-key", key.encode("latin-1"))]
    scope = {"type": more.get("kind", "http"), "method": more.get("method", "POST"), "path": path}
    body = more.get("body", json.dumps(content).encode())
    parts = [
        {"type": "http.request", "body": body[:3], "more_body": True},
        {"type": "http.request", "body": body[3:]},
    ]
    if more.get("cut_off"):
        parts[1] = {"type": "http.disconnect"}
    coming = iter(parts)

    async def receive():
        return next(coming)

    answer = AsgiAnswer()
    await app(scope | {"headers": headers}, receive, answer.send)
    return answer


def poster(app):
    """What the checks call: an ASGI application without a network."""

    async def post(operation, key, content):
        answer = await ask(app, f"/{operation}", key, content)
        return CallResult(status=answer.status, content=json.loads(answer.body))

    return post


@asynccontextmanager
async def served(app):
    """The address of an ASGI application on this machine."""

    async def handle(request):
        answer = await ask(
            app,
            request.path,
            request.headers.get("Idempotency-Key"),
            method=request.method,
            body=await request.read(),
        )
        headers = {name.decode(): value.decode() for name, value in answer.headers.items()}
        return web.Response(status=answer.status, body=answer.body, headers=headers)

    server = web.Application()
    server.router.add_route("*", "/{path:.*}", handle)
    async with TestServer(server) as there:
        yield str(there.make_url("/")).rstrip("/")


class Faulty:
    """A bank that keeps the contract by itself, but for one fault that it is given."""

    def __init__(self, fault=""):
        self.fault = fault
        self.numbers = count()
        self.answers, self.undone, self.busy = {}, set(), set()

    async def post(self, operation, key, content):
        if operation == "recall":
            return self._recall(key)
        if key in self.undone and self.fault != "undone and done again":
            return CallResult(status=410, content={})
        if content.get("amount") is None:
            return self._refuse(key)
        if key in self.answers and self.fault != "forgets":
            return self._known(key, content)
        if key in self.busy:
            return CallResult(status=409, content={})
        return await self._pay(key, content)

    async def _pay(self, key, content):
        if self.fault != "races":
            self.busy.add(key)
        await asyncio.sleep(0)
        self.busy.discard(key)
        answer = CallResult(status=200, content={"reference": f"r-{next(self.numbers)}"})
        if self.fault == "says the same to all":
            answer = CallResult(status=200, content={})
        if self.fault == "says nothing":
            answer = CallResult(status=204)
        self.answers[key] = content, answer
        return answer

    def _known(self, key, content):
        before, answer = self.answers[key]
        if before is None:
            return answer
        if before != content and self.fault == "pays other content":
            return CallResult(status=200, content={"reference": f"r-{next(self.numbers)}"})
        if before != content and self.fault != "takes other content for the same":
            return CallResult(status=422, content={})
        return answer

    def _recall(self, key):
        unknown = key not in self.answers and key not in self.undone
        if unknown and self.fault == "knows no unknown key":
            return CallResult(status=404, content={})
        if key in self.undone and self.fault == "recalls once":
            return CallResult(status=404, content={})
        if not (unknown and self.fault == "forgets an undo"):
            self.undone.add(key)
        return CallResult(status=200, content={})

    def _refuse(self, key):
        status = {"stumbles": 500, "needs a card": 402}.get(self.fault, 422)
        refused = CallResult(status=status, content={})
        if self.fault == "remembers refusals":
            self.answers[key] = None, refused
        if self.fault == "is away after a refusal":
            self.answers[key] = None, CallResult(status=503)
        if self.fault == "knows no caller":
            refused = CallResult(status=401, content={})
            self.answers[key] = None, refused
        return refused
