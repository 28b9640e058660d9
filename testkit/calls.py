"""Calls a service from outside, in the same way as its agent does."""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import aiohttp

from engine.azure.answers import LONGEST_PAUSE, ServiceAnswer
from engine.azure.clock import utc_now
from engine.azure.credentials import Fixed, context_of
from engine.azure.remote import ACCEPTED, HttpRemoteService
from engine.azure.services import credential_of, renew_on
from engine.declarations.business import AgentDefinition, is_simulated
from engine.declarations.credentials import ClientCertificate, EntraToken
from engine.domain.messages import AgentRequest
from testkit.checks import CallResult

SHORTEST = 0.1
"""The shortest pause between two calls, in seconds, whatever the service requests."""

BUILT_FOR_THE_APP = AgentDefinition(name="check", offers="check", address="CHECK_URL")
"""The agent of a service that is called in the default form."""


class NotCalledError(Exception):
    """The service cannot be called. The text of the error says why."""


def declared(name: str) -> AgentDefinition:
    """Return the agent with this name in a business, such as `shop.business:provider`.

    Raises `NotCalledError`.
    """
    module, _, attribute = name.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = getattr(import_module(module), attribute, None)
    except (ImportError, ValueError) as error:
        raise NotCalledError(f"{name}: {error}") from error
    if hasattr(found, "declaration"):  # the agent of a flow
        found = found.declaration()
    if isinstance(found, AgentDefinition):
        return found
    raise NotCalledError(f"{name} is not an agent; expected a name such as shop.business:provider")


def setting(name: str) -> str:
    """Return an agent's setting from the environment. Raises `NotCalledError` if it is empty."""
    if value := os.environ.get(name):
        return value
    raise NotCalledError(f"the environment variable {name} is empty")


def remote(
    agent: AgentDefinition, url: str, token: str | None, session: aiohttp.ClientSession
) -> HttpRemoteService:
    """Return the client of the service, with a bearer token or the agent's declared credential.

    The settings of the agent come from the environment. Raises `NotCalledError`.
    """
    service = HttpRemoteService(
        base_url=url,
        session=lambda: session,
        credential=Fixed({"Authorization": f"Bearer {token}"}) if token else None,
        longest_wait=timedelta(0),
        clock=utc_now,
        form=agent.form,
    )
    if is_simulated(agent.name, url):
        return service
    if isinstance(agent.auth, EntraToken) and not token:
        raise NotCalledError("the token is one of the app's identity; give one with --token-from")
    return replace(
        service,
        credential=service.credential or credential_of(agent.auth, setting, lambda: session),
        renew_on=renew_on(agent.auth),
        certificate=_certificate(agent),
    )


def _certificate(agent: AgentDefinition) -> Callable[[], Any] | None:
    if not isinstance(agent.auth, ClientCertificate):
        return None
    try:
        context = context_of(setting(agent.auth.setting))
    except OSError as error:
        raise NotCalledError(f"{agent.auth.setting}: no certificate with its key") from error
    return lambda: context


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Calls a service over HTTP."""

    remote: HttpRemoteService
    timeout: float
    """The time limit of a call, in seconds."""
    patience: float
    """How long a deferred call (202) is repeated, in seconds."""

    async def post(self, operation: str, key: str, content: Mapping[str, Any]) -> CallResult:
        """Call an operation. A deferred call is repeated until it has a result.

        Raises `InvalidRequestError` if the content lacks a field of the path.
        """
        left = self.patience
        while True:
            answer = await self._once(operation, key, content)
            if answer.status != ACCEPTED or left <= 0:
                return CallResult(status=answer.status, content=self._content(operation, answer))
            seconds = _pause(answer)
            await asyncio.sleep(min(seconds, left))
            left -= seconds

    async def _once(self, operation: str, key: str, content: Mapping[str, Any]) -> ServiceAnswer:
        # The key says who calls, so it is not that of an order, and no order has this id.
        now = utc_now()
        request = AgentRequest.model_construct(
            order_id=key.partition(":")[0],
            step="check",
            action="do",
            attempt=1,
            issued_at=now,
            complete_by=now + timedelta(seconds=self.timeout),
            operation=operation,
            idempotency_key=key,
            content=content,
        )
        async with asyncio.timeout(self.timeout):
            return await self.remote.answer(request)

    def _content(self, operation: str, answer: ServiceAnswer) -> Mapping[str, Any] | None:
        """Return the JSON object of an answer. None if it is no JSON object or too long."""
        if not answer.body and self.remote.form.route(operation).answer_may_be_empty:
            return {}
        return None if answer.is_too_long else answer.content


def _pause(answer: ServiceAnswer) -> float:
    """Return the pause before the next call, in seconds. The default is one second."""
    if answer.retry_after == "0":
        return SHORTEST
    wait = answer.asks_to_wait(utc_now(), LONGEST_PAUSE)
    return max(SHORTEST, wait.total_seconds()) if wait else 1.0
