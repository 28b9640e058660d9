"""A remote service over HTTP, as its agent calls it."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn

import aiohttp
from azure.core.exceptions import AzureError

from adapters.failures import summary
from core.errors import AskedToWaitError, RejectedError, TransientError
from core.messages import OPERATION, AgentRequest
from core.ports import Clock
from core.texts import plain

MAX_BYTES = 128 * 1024
"""The longest answer: a reply on Service Bus Standard has 256 KB, with headers and other fields."""
TOO_LONG = f"the service's answer is too long to be passed on: more than {MAX_BYTES} bytes"
MAX_REASON_CHARACTERS = 500

REFUSALS = {410, 422}
"""The statuses of a final refusal by the service; 410 is for a key that was undone."""
FAULTS_OF_OURS = {400, 413}
"""The statuses of a request that is wrong, and stays wrong if it is sent again."""
ACCEPTED = 202
"""The status of a call that is not done: it may take effect later, or never."""
PASSING = {ACCEPTED, 408, 409, 425, 429}
"""The statuses, besides most of 5xx, by which the service itself asks for another try.

409 means that a call with the same key is still under way
(draft-ietf-httpapi-idempotency-key-header).
"""
NOT_IMPLEMENTED = 501
BUSY = {429, 503}
"""The statuses with which `Retry-After` may be sent (RFC 9110, 10.2.3; RFC 6585, 4)."""
SECONDS = re.compile("[0-9]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The parts of an answer that decide its meaning."""

    status: int
    body: bytes
    retry_after: str

    @property
    def is_done(self) -> bool:
        """Whether the operation was done, provided that the body is a valid result."""
        return 200 <= self.status < 300 and self.status != ACCEPTED

    @property
    def is_at_door(self) -> bool:
        """Whether a gateway or a proxy answered: the service itself does not use this status."""
        has_failed = 500 <= self.status < 600 and self.status != NOT_IMPLEMENTED
        return not has_failed and self.status not in PASSING


@dataclass(frozen=True, kw_only=True)
class HttpRemoteService:
    """`RemoteService` at `<base_url>/<operation>`."""

    base_url: str
    session: Callable[[], aiohttp.ClientSession]
    token: Callable[[], Awaitable[str]] | None = None
    """Returns a bearer token for the service; None if the service needs none."""
    refusals: Collection[int] = ()
    """The statuses of a final refusal by this service, besides `REFUSALS`."""
    longest_wait: timedelta
    """The longest pause that the service may ask for."""
    clock: Clock

    async def call(self, request: AgentRequest, timeout_seconds: float) -> Mapping[str, Any]:
        """See `RemoteService.call`; the time-out includes the token and the whole answer."""
        # A malformed operation could be a path to another resource of the same host.
        if not OPERATION.fullmatch(request.operation):
            raise RejectedError("what is asked for is no operation", for_operator=True)
        try:
            async with asyncio.timeout(timeout_seconds):
                answer = await self._post(request)
        except (aiohttp.ClientError, AzureError, OSError, TimeoutError) as error:
            raise TransientError(f"no answer: {summary(error)}") from error
        return self._result(answer)

    def _result(self, answer: Answer) -> Mapping[str, Any]:
        """Return the service's result; raises an error, final for the listed statuses only."""
        content = _json_object(answer.body)
        if answer.is_done:
            return _passed_on(answer, content)
        reason = _reason(content or {})
        if answer.status in REFUSALS.union(self.refusals):
            raise RejectedError(reason or f"the service answered {answer.status}")
        fault = f"{answer.status} {reason}".strip()
        if answer.status in FAULTS_OF_OURS:
            raise RejectedError(f"the request is wrong: {fault}", for_operator=True)
        if answer.status in BUSY and (wait := self._asked_to_wait(answer.retry_after)):
            raise AskedToWaitError(fault, wait, in_doubt=True)
        raise TransientError(fault, at_door=answer.is_at_door)

    def _asked_to_wait(self, retry_after: str) -> timedelta | None:
        """Return the pause that the service asks for, up to `longest_wait`; None if it has none."""
        if SECONDS.fullmatch(retry_after):
            seconds = min(float(retry_after), self.longest_wait.total_seconds())
            wait = timedelta(seconds=seconds)
        else:
            until = _moment(retry_after)
            wait = min(until - self.clock(), self.longest_wait) if until else timedelta()
        return wait if wait > timedelta() else None

    async def _post(self, request: AgentRequest) -> Answer:
        credential = await self._credential()
        async with self.session().post(
            f"{self.base_url.rstrip('/')}/{request.operation}",
            json={
                "orderId": request.order_id,
                "step": request.step,
                "order": dict(request.content),
            },
            headers={"Idempotency-Key": request.idempotency_key, **credential},
            timeout=aiohttp.ClientTimeout(),
            allow_redirects=False,
        ) as response:
            retry_after = response.headers.get("Retry-After", "").strip()
            body = await _read(response)
            return Answer(status=response.status, body=body, retry_after=retry_after)

    async def _credential(self) -> Mapping[str, str]:
        return {} if self.token is None else {"Authorization": f"Bearer {await self.token()}"}


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """Return the body, cut soon after `MAX_BYTES` if it is longer."""
    body = b""
    async for chunk in response.content.iter_chunked(16 * 1024):
        body += chunk
        if len(body) > MAX_BYTES:
            response.close()
            break
    return body


def _json_object(body: bytes) -> dict[str, Any] | None:
    """Return the JSON object in the body; None if it is anything else, or invalid Unicode."""
    try:
        value = json.loads(body, parse_constant=_no_number)
        _size(value)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _size(value: Any) -> int:
    """Return about how many bytes the value takes in a reply; raises ValueError if not Unicode."""
    return len(json.dumps(value, ensure_ascii=False).encode())


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def _moment(text: str) -> datetime | None:
    """Return the time of an HTTP date; None if the text is not one."""
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):  # the parser raises all of these
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _passed_on(answer: Answer, content: dict[str, Any] | None) -> Mapping[str, Any]:
    """Return the result for the reply; raises an error if it is too long or no JSON object."""
    # Another try would get the same long answer.
    if len(answer.body) > MAX_BYTES or _size(content) > MAX_BYTES:
        raise RejectedError(TOO_LONG, in_doubt=True, for_operator=True)
    if content is None:
        raise TransientError(f"answer {answer.status} is no JSON object", at_door=answer.is_at_door)
    return content


def _reason(answer: Mapping[str, Any]) -> str:
    """Return the service's words, from problem details or `reason`, as one line of plain text."""
    for name in ("detail", "reason", "title"):
        if isinstance(text := answer.get(name), str):
            return plain(text, MAX_REASON_CHARACTERS)
    return ""
