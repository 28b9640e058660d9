"""A remote service over HTTP, as its agent calls it."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NoReturn

import aiohttp
from azure.core.exceptions import AzureError

from adapters.failures import summary
from core.errors import RejectedError, TransientError
from core.messages import OPERATION, AgentRequest
from core.texts import plain

MAX_BYTES = 128 * 1024
"""Of an answer. A message on Service Bus Standard has 256 KB; headers and the rest of a reply take their part."""
TOO_LONG = f"the service's answer is too long to be passed on: more than {MAX_BYTES} bytes"
MAX_REASON_CHARACTERS = 500
PASSING = {408, 409, 425, 429}
"""409 says that a call with the same key is still under way (draft-ietf-httpapi-idempotency-key-header)."""


class HttpRemoteService:
    """`RemoteService` at `<base_url>/<operation>`."""

    def __init__(
        self,
        base_url: str,
        session: Callable[[], aiohttp.ClientSession],
        token: Callable[[], Awaitable[str]] | None = None,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._session = session
        self._token = token
        """Returns what shows the service who calls; None if the service does not ask."""

    async def call(self, request: AgentRequest, timeout_seconds: float) -> Mapping[str, Any]:
        """See `RemoteService.call`; the token and the whole answer have to be there within the time-out."""
        if not OPERATION.fullmatch(request.operation):
            raise RejectedError("what is asked for is no operation")  # but perhaps a way to elsewhere on the same host
        try:
            async with asyncio.timeout(timeout_seconds):
                status, body = await self._post(request)
        except (aiohttp.ClientError, AzureError, OSError, TimeoutError) as error:
            raise TransientError(f"no answer: {summary(error)}") from error
        answer = _json_object(body)
        if status >= 400 or status < 200:
            _refuse(status, answer)
        if status < 300 and (len(body) > MAX_BYTES or _size(answer) > MAX_BYTES):
            raise RejectedError(TOO_LONG, in_doubt=True)  # it was done, and would be answered like this each time
        if status >= 300 or answer is None:
            raise TransientError(f"answer {status} is no JSON object")
        return answer

    async def _post(self, request: AgentRequest) -> tuple[int, bytes]:
        credential = await self._credential()
        async with self._session().post(
            f"{self._base_url}/{request.operation}",
            json={"orderId": request.order_id, "step": request.step, "order": dict(request.content)},
            headers={"Idempotency-Key": request.idempotency_key, **credential},
            timeout=aiohttp.ClientTimeout(),
            allow_redirects=False,
        ) as response:
            return response.status, await _read(response)

    async def _credential(self) -> Mapping[str, str]:
        return {} if self._token is None else {"Authorization": f"Bearer {await self._token()}"}


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


def _refuse(status: int, answer: Mapping[str, Any] | None) -> NoReturn:
    reason = _reason(answer or {})
    if 400 <= status < 500 and status not in PASSING:
        raise RejectedError(reason or f"the service answered {status}")
    raise TransientError(f"{status} {reason}".strip())


def _reason(answer: Mapping[str, Any]) -> str:
    """Return the service's own words, from problem details or from `reason`: plain text of one line."""
    text = next((answer[name] for name in ("detail", "reason", "title") if isinstance(answer.get(name), str)), "")
    return plain(text, MAX_REASON_CHARACTERS)
