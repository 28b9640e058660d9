"""A remote service over HTTP."""

import asyncio
import ssl
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import aiohttp
from azure.core.exceptions import AzureError
from yarl import URL

from engine.azure.answers import (
    DEFAULT_PAUSE,
    LONGEST_PAUSE,
    MAX_BYTES,
    ServiceAnswer,
    answer_of,
)
from engine.azure.credentials import Credential
from engine.azure.failures import summary
from engine.azure.forms import body_of, path_of
from engine.declarations.service_forms import Form
from engine.domain import exact_json
from engine.domain.errors import (
    AnswersLaterError,
    CallTimeoutError,
    DeferredError,
    GatewayError,
    InvalidRequestError,
    InvalidResultError,
    RejectedError,
    ThrottledError,
    TransientError,
)
from engine.domain.messages import AgentRequest
from engine.ports import Clock

TOO_LONG = f"the service's answer is too long to be passed on: more than {MAX_BYTES} bytes"

REFUSALS = {410, 422}
"""The statuses of a final refusal by the service. 410 is for a key that was undone."""
FAULTS_OF_OURS = {400, 413}
"""The statuses of an invalid request. A repeat would be invalid, too."""
ACCEPTED = 202
"""The status of a deferred call. It may take effect later, or never."""
PASSING = {ACCEPTED, 408, 409, 425, 429}
"""The statuses, besides most 5xx, with which the service itself requests another attempt.

409 means that a call with the same key is still in progress
(draft-ietf-httpapi-idempotency-key-header).
"""
NOT_IMPLEMENTED = 501
BUSY = {429, 503}
"""The statuses that may come with `Retry-After` (RFC 9110, 10.2.3; RFC 6585, 4)."""
UNAUTHORIZED = 401
"""The status of a call whose credential the service does not accept, or no longer accepts."""
FORBIDDEN = 403
"""The status with which some services answer a revoked token."""
CALLBACK_URL = "Callback-Url"
"""The header with the callback URL, at which the service can answer later without a key of the app.
"""


def is_done(answer: ServiceAnswer) -> bool:
    """Whether the operation was done, if the body is a valid result."""
    return 200 <= answer.status < 300 and answer.status != ACCEPTED


def is_from_gateway(answer: ServiceAnswer) -> bool:
    """Whether a gateway or proxy answered. The service itself does not use this status."""
    has_failed = 500 <= answer.status < 600 and answer.status != NOT_IMPLEMENTED
    return not has_failed and answer.status not in PASSING


@dataclass(frozen=True, kw_only=True)
class HttpRemoteService:
    """`RemoteService` over HTTP. All operations are below one address."""

    base_url: str
    session: Callable[[], aiohttp.ClientSession]
    form: Form = field(default_factory=Form)
    credential: Credential | None = None
    """The credential for the service. None if the service needs none."""
    renew_on: Collection[int] = (UNAUTHORIZED,)
    """The statuses after which another token is presented, once."""
    certificate: Callable[[], ssl.SSLContext] | None = None
    """Returns the context of connections that present a certificate. None for ordinary connections.
    """
    refusals: Collection[int] = ()
    """The statuses of a final refusal by this service, besides `REFUSALS`."""
    answer_within: timedelta | None = None
    """How long the service may take for deferred work. None if it never defers."""
    calls_back: bool = False
    """Whether the service uses the callback URL for deferred work without a time to ask again."""
    longest_wait: timedelta
    """The longest pause that the service may request."""
    clock: Clock

    async def call(self, request: AgentRequest, timeout_seconds: float) -> Mapping[str, Any]:
        """Call the service. The time-out includes the token and the whole answer."""
        try:
            async with asyncio.timeout(timeout_seconds):
                answer = await self.answer(request)
        except TimeoutError as error:
            raise CallTimeoutError(f"no answer: {_why(error)}") from error
        except (aiohttp.ClientError, AzureError, OSError) as error:
            raise TransientError(f"no answer: {_why(error)}") from error
        return self._result(request, answer)

    async def answer(self, request: AgentRequest) -> ServiceAnswer:
        """Return the service's answer, whatever it is. The caller sets the time limit.

        If the service refuses the token and another one is available, the call is repeated once.
        Raises `InvalidRequestError` if the request has no path, and the errors of the connection.
        """
        path = path_of(self.form, request)
        if self.credential is None:
            return await self._send(path, request, {})
        shown = await self.credential.headers()
        answer = await self._send(path, request, shown)
        may_renew = answer.status in self.renew_on
        if may_renew and (renewed := await self.credential.renewed(shown)):
            return await self._send(path, request, renewed)
        return answer

    async def _send(
        self, path: str, request: AgentRequest, shown: Mapping[str, str]
    ) -> ServiceAnswer:
        route = self.form.route(request.operation)
        body = body_of(self.form, route, request)
        async with self.session().request(
            route.method,
            URL(str(URL(self.base_url)).rstrip("/") + path, encoded=True),
            data=None if body is None else aiohttp.JsonPayload(body, dumps=exact_json.write),
            headers={**self._headers(request), **shown},
            ssl=self.certificate() if self.certificate else True,
            timeout=aiohttp.ClientTimeout(),
            allow_redirects=False,
        ) as response:
            return await answer_of(response)

    def _headers(self, request: AgentRequest) -> Mapping[str, str]:
        """Return the headers of a call, without its credential."""
        headers = {**self.form.headers, self.form.key_header: request.idempotency_key}
        return headers | ({CALLBACK_URL: request.callback_url} if request.callback_url else {})

    def _result(self, request: AgentRequest, answer: ServiceAnswer) -> Mapping[str, Any]:
        """Return the service's result, or raise an error. Only the listed statuses are final."""
        if is_done(answer):
            may_be_empty = self.form.route(request.operation).answer_may_be_empty
            return _passed_on(answer, may_be_empty=may_be_empty)
        if answer.status in REFUSALS.union(self.refusals):
            reason = answer.reason or f"the service answered {answer.status}"
            raise RejectedError(reason, identifiers=answer.identifiers)
        fault = f"{answer.status} {answer.reason}".strip()
        if answer.status in FAULTS_OF_OURS:
            raise InvalidRequestError(f"the request is not valid: {fault}")
        self._refuse_for_now(request, answer, fault)
        raise _passing(answer, fault)

    def _refuse_for_now(self, request: AgentRequest, answer: ServiceAnswer, fault: str) -> None:
        """Raise the error for an answer that requests a pause, if this is one."""
        if answer.status == ACCEPTED and self.answer_within:
            most = min(self.answer_within, LONGEST_PAUSE)
            wait = answer.asks_to_wait(self.clock(), most)
            usual = most if self.calls_back else min(DEFAULT_PAUSE, most)
            raise DeferredError(fault, retry_after=wait or usual)
        if answer.status == ACCEPTED and request.callback_url and not _may_be_polled(answer):
            raise AnswersLaterError(fault)
        if answer.status in BUSY:
            wait = answer.asks_to_wait(self.clock(), self.longest_wait)
            if wait:
                raise ThrottledError(fault, wait)


def _passing(answer: ServiceAnswer, fault: str) -> TransientError:
    """Return the error for an answer that may be different in another attempt."""
    return GatewayError(fault) if is_from_gateway(answer) else TransientError(fault)


def _may_be_polled(answer: ServiceAnswer) -> bool:
    """Whether a service that deferred a call says when or where to ask for the outcome."""
    return bool(answer.retry_after) or answer.is_followed


def _why(error: BaseException) -> str:
    """Return why there is no answer."""
    if isinstance(error, aiohttp.ClientResponseError | aiohttp.InvalidURL):
        # Without the path of the call, which may be personal.
        return type(error).__name__  # its text has the whole address
    return summary(error)


def _passed_on(answer: ServiceAnswer, *, may_be_empty: bool) -> Mapping[str, Any]:
    """Return the result for the reply. Raises an error if it is too long or not a JSON object."""
    if may_be_empty and not answer.body:
        return {}
    # Another try would get the same long answer.
    if answer.is_too_long:
        raise InvalidResultError(TOO_LONG)
    if (content := answer.content) is None:
        fault = "is not a JSON object" if answer.is_text else "is not UTF-8"
        raise _passing(answer, f"answer {answer.status} {fault}")
    return content
