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
"""Of an answer. A message on Service Bus Standard has 256 KB; headers and the rest of a reply take their part."""
TOO_LONG = f"the service's answer is too long to be passed on: more than {MAX_BYTES} bytes"
MAX_REASON_CHARACTERS = 500

REFUSALS = {410, 422}
"""The service's own word that it will not do it, now or later: 410 is for a key that was undone."""
FAULTS_OF_OURS = {400, 413}
"""What is asked is wrong, and would be so each time."""
ACCEPTED = 202
"""Not done: it may take effect later, or never."""
PASSING = {ACCEPTED, 408, 409, 425, 429}
"""The service's own word that it may yet be done, as are most of 5xx.

409 says that a call with the same key is still under way (draft-ietf-httpapi-idempotency-key-header).
"""
NOT_IMPLEMENTED = 501
BUSY = {429, 503}
"""With these a service may say when to come again (RFC 9110, 10.2.3; RFC 6585, 4)."""
SECONDS = re.compile("[0-9]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What of an answer decides what it means."""

    status: int
    body: bytes
    retry_after: str

    @property
    def is_done(self) -> bool:
        """Whether what was asked for has been done, if the body says what came of it."""
        return 200 <= self.status < 300 and self.status != ACCEPTED

    @property
    def is_at_door(self) -> bool:
        """Whether it is no word of the service: what no service has reason to say, a gateway or a proxy has said."""
        has_failed = 500 <= self.status < 600 and self.status != NOT_IMPLEMENTED
        return not has_failed and self.status not in PASSING


@dataclass(frozen=True, kw_only=True)
class HttpRemoteService:
    """`RemoteService` at `<base_url>/<operation>`."""

    base_url: str
    session: Callable[[], aiohttp.ClientSession]
    token: Callable[[], Awaitable[str]] | None = None
    """Returns what shows the service who calls; None if the service does not ask."""
    refusals: Collection[int] = ()
    """With which statuses the service refuses for good, besides those with which all do."""
    longest_wait: timedelta
    """For how long the service may ask not to be called."""
    clock: Clock

    async def call(self, request: AgentRequest, timeout_seconds: float) -> Mapping[str, Any]:
        """See `RemoteService.call`; the token and the whole answer have to be there within the time-out."""
        if not OPERATION.fullmatch(
            request.operation
        ):  # perhaps it is a way to elsewhere on the same host
            raise RejectedError("what is asked for is no operation", for_operator=True)
        try:
            async with asyncio.timeout(timeout_seconds):
                answer = await self._post(request)
        except (aiohttp.ClientError, AzureError, OSError, TimeoutError) as error:
            raise TransientError(f"no answer: {summary(error)}") from error
        return self._result(answer)

    def _result(self, answer: Answer) -> Mapping[str, Any]:
        """Return what the service did; what is final is listed, and everything else may pass."""
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
        """Return for how long the service asks to be left alone, within bounds; None if it says nothing of use."""
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
            return Answer(
                status=response.status, body=await _read(response), retry_after=retry_after
            )

    async def _credential(self) -> Mapping[str, str]:
        return {} if self.token is None else {"Authorization": f"Bearer {await self.token()}"}


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """Return the body; of one that is too long, only so much that this can be seen."""
    body = b""
    async for chunk in response.content.iter_chunked(16 * 1024):
        body += chunk
        if len(body) > MAX_BYTES:
            response.close()
            break
    return body


def _json_object(body: bytes) -> dict[str, Any] | None:
    """Return the object that the body holds; None if it is anything else, or no proper Unicode."""
    try:
        value = json.loads(body, parse_constant=_no_number)
        _size(value)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _size(value: Any) -> int:
    """Return how many bytes it takes in a reply, or a few less than that; raises `ValueError` if it is no Unicode."""
    return len(json.dumps(value, ensure_ascii=False).encode())


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def _moment(text: str) -> datetime | None:
    """Return the time that an HTTP date names; None if it is none."""
    try:
        moment = parsedate_to_datetime(text)
    except (
        ValueError,
        TypeError,
        IndexError,
        OverflowError,
    ):  # whatever the parser makes of what a stranger wrote
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _passed_on(answer: Answer, content: dict[str, Any] | None) -> Mapping[str, Any]:
    """Return what a reply can say of what was done."""
    if (
        len(answer.body) > MAX_BYTES or _size(content) > MAX_BYTES
    ):  # it would be answered like this each time
        raise RejectedError(TOO_LONG, in_doubt=True, for_operator=True)
    if content is None:
        raise TransientError(f"answer {answer.status} is no JSON object", at_door=answer.is_at_door)
    return content


def _reason(answer: Mapping[str, Any]) -> str:
    """Return the service's own words, from problem details or from `reason`: plain text of one line."""
    text = next(
        (
            answer[name]
            for name in ("detail", "reason", "title")
            if isinstance(answer.get(name), str)
        ),
        "",
    )
    return plain(text, MAX_REASON_CHARACTERS)
