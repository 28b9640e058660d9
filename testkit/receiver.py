"""ASGI middleware by which a service keeps its promises about idempotency keys.

Put `Receiver` in front of the service's own handlers. It needs only Python's standard library: copy
this file and `keys.py` into the service.
"""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from .keys import (  # relative, so that both files can be copied
    KeyStore,
    RememberedAnswer,
    RememberedCall,
    RememberedKey,
)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Headers = Iterable[tuple[bytes, bytes]]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApplication = Callable[[Scope, Receive, Send], Awaitable[None]]

SAFE = {"GET", "HEAD", "OPTIONS"}
KEY = re.compile(r"[\x21-\x7e]{1,200}")
MAX_BYTES = 1024 * 1024
"""The longest body of a call, in bytes."""


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True)
class Receiver:
    """Lets each call take effect once for its key.

    A call that has succeeded is answered from memory when it is repeated. Any other answer, or an
    exception, means that nothing was done, and the same key may be used again. So a handler must do
    all of its work or none.
    """

    app: AsgiApplication
    store: KeyStore
    undoes: Mapping[str, str] = field(default_factory=dict)
    """The path that each undo reverses, by the path of the undo, such as `/recall`: `/pay`."""
    longest: timedelta = timedelta(minutes=5)
    """After this time a call counts as ended, perhaps with its process, and may be repeated."""
    clock: Callable[[], datetime] = utc_now

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a call. Requests that change nothing are passed on."""
        if scope["type"] != "http" or scope["method"] in SAFE:
            await self.app(scope, receive, send)
            return
        key = _header(scope["headers"], b"idempotency-key")
        body = await _body(receive)
        if not KEY.fullmatch(key):
            await _send(send, problem(400, "Idempotency-Key: expected 1 to 200 characters"))
        elif body is None:
            await _send(send, problem(413, f"expected a body of at most {MAX_BYTES} bytes"))
        else:
            await _send(send, await self._answer(key, scope, body, receive))

    async def _answer(
        self, key: str, scope: Scope, body: bytes, receive: Receive
    ) -> RememberedAnswer:
        call = RememberedCall(
            path=scope["path"],
            fingerprint=fingerprint(scope["method"], body),
            token=uuid4().hex,
            since=self.clock(),
        )
        undone = self.undoes.get(call.path)
        expired = call.since - self.longest
        known = await self.store.update(key, lambda it: begin(it, call, undone, expired))
        if known is not None:
            return known
        answer = None
        try:
            answer = await _ask(self.app, scope, body, receive)
        finally:
            await self.store.update(key, lambda it: (end(it, call, answer), None))
        return answer


def begin(
    key: RememberedKey, call: RememberedCall, undoes: str | None, expired: datetime
) -> tuple[RememberedKey, RememberedAnswer | None]:
    """Return the new state of the key, and the answer, or None if the call has to be made.

    Calls that began before `expired` have ended. After an undo, the undone path is refused, whether
    or not it was ever called.
    """
    if call.path in key.undone:
        return key, problem(410, "it was undone under this key, so it is refused from then on")
    same = key.calls.get(call.path)
    if same and same.fingerprint != call.fingerprint:
        return key, problem(422, "this key was used with other content")
    if same and same.answer:
        return key, replace(same.answer, replayed=True)
    if any(earlier.answer is None and earlier.since > expired for earlier in key.calls.values()):
        return key, problem(409, "a call with this key is under way", retry_after="1")
    undone = key.undone | {undoes} if undoes else key.undone
    return RememberedKey(calls={**key.calls, call.path: call}, undone=undone), None


def end(key: RememberedKey, call: RememberedCall, answer: RememberedAnswer | None) -> RememberedKey:
    """Return the state of the key after a call. The answer is None if the call was interrupted.

    If another call has replaced this one, nothing changes.
    """
    current = key.calls.get(call.path)
    if current is None or current.token != call.token:
        return key
    calls = {path: earlier for path, earlier in key.calls.items() if path != call.path}
    if answer is not None and 200 <= answer.status < 300 and answer.status != 202:
        calls[call.path] = replace(call, answer=answer)
    return RememberedKey(calls=calls, undone=key.undone)


def fingerprint(method: str, body: bytes) -> str:
    """Return a digest of the content, which is the same for equal JSON."""
    with suppress(ValueError, RecursionError):  # of what is no JSON, each byte counts
        body = json.dumps(json.loads(body), sort_keys=True).encode()
    return hashlib.sha256(method.encode() + b" " + body).hexdigest()


def problem(status: int, detail: str, *, retry_after: str = "") -> RememberedAnswer:
    body = json.dumps({"status": status, "detail": detail}).encode()
    return RememberedAnswer(
        status=status,
        content_type="application/problem+json",
        body=body,
        headers=(("retry-after", retry_after),) if retry_after else (),
    )


def _header(headers: Headers, name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in headers if key == name), "")


async def _body(receive: Receive) -> bytes | None:
    """Return the body of a call. None if it is too long or incomplete."""
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MAX_BYTES:
            return None
    return body


async def _ask(app: AsgiApplication, scope: Scope, body: bytes, outer: Receive) -> RememberedAnswer:
    """Return the answer of the service's own handler.

    The handler receives the body once. Then it waits, as in a server, for the caller to disconnect.
    """
    start: Message = {"status": 500, "headers": ()}
    parts = list[bytes]()
    requests: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return requests.pop() if requests else await outer()

    async def send(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start":
            start = message
        elif message["type"] == "http.response.body":
            parts.append(message.get("body", b""))

    await app(scope, receive, send)
    headers = [(name.lower(), value) for name, value in start.get("headers", ())]
    return RememberedAnswer(
        status=start["status"],
        content_type=_header(headers, b"content-type"),
        body=b"".join(parts),
        headers=tuple(
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in headers
            if name != b"content-type"
        ),
    )


async def _send(send: Send, answer: RememberedAnswer) -> None:
    headers = list(answer.headers)
    if answer.content_type:
        headers.append(("content-type", answer.content_type))
    if answer.replayed:
        headers.append(("idempotent-replayed", "true"))
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
    await send({"type": "http.response.body", "body": answer.body})
