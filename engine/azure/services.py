"""The remote services of a deployment, from the declared agents and the settings."""

import ssl
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from functools import cache, partial

import aiohttp

from engine.azure.clock import utc_now
from engine.azure.code import CodeService
from engine.azure.connections import Connections
from engine.azure.credentials import Certificate, ClientGrant, Credential, Fixed, Tokens
from engine.azure.remote import FORBIDDEN, UNAUTHORIZED, HttpRemoteService
from engine.azure.settings import Settings
from engine.declarations.business import AgentDefinition, is_simulated
from engine.declarations.credentials import (
    ApiKey,
    Auth,
    ClientCertificate,
    ClientCredentials,
    EntraToken,
)
from engine.ports import RemoteService

Value = Callable[[str], str]
"""Returns the value of a setting."""
Session = Callable[[], aiohttp.ClientSession]


def services(settings: Settings, pool: Connections) -> Mapping[str, RemoteService]:
    """Make the service of each deployed agent. Nothing connects before a service is called."""
    return {name: _service(settings.declared[name], settings, pool) for name in settings.agents}


def _service(agent: AgentDefinition, settings: Settings, pool: Connections) -> RemoteService:
    address = settings.addresses.get(agent.name)
    over_http = _over_http(agent, address, settings, pool) if address else None
    if over_http and not agent.code:
        return over_http
    takes = settings.calls_in_flight.get(agent.name, agent.calls_in_flight)
    return CodeService(
        agent=agent.name,
        operations=agent.code,
        other=over_http,
        settings={name: settings.value(name) for name in agent.reads},
        at_once=min(takes, settings.max_concurrent_calls),
        answer_within=agent.answer_within,
        longest_wait=timedelta(seconds=settings.longest_retry_after_seconds),
    )


def _over_http(
    agent: AgentDefinition, address: str, settings: Settings, pool: Connections
) -> HttpRemoteService:
    simulated = is_simulated(agent.name, address)
    return HttpRemoteService(
        base_url=address,
        session=cache(lambda: pool.http),
        form=agent.form,
        credential=_credential(agent, settings, pool),
        renew_on=renew_on(agent.auth),
        certificate=None if simulated else _certificate(agent, settings),
        refusals=agent.refusals,
        answer_within=agent.answer_within,
        calls_back=agent.calls_back,
        longest_wait=timedelta(seconds=settings.longest_retry_after_seconds),
        clock=utc_now,
    )


def _credential(agent: AgentDefinition, settings: Settings, pool: Connections) -> Credential | None:
    """Return the credential for the agent's calls. None if there is none."""
    if is_simulated(agent.name, settings.addresses[agent.name]):
        return None
    if scope := settings.scopes.get(agent.name):
        return Tokens(partial(pool.token, scope), utc_now)
    return credential_of(agent.auth, settings.value, lambda: pool.http)


def credential_of(auth: Auth | None, value: Value, session: Session) -> Credential | None:
    """Return the credential for this declaration. None for a certificate or a token of the app."""
    match auth:
        case ApiKey(setting, header, prefix):
            return Fixed({header: prefix + value(setting)})
        case ClientCredentials():
            return Tokens(_grant(auth, value, session), utc_now)
        case ClientCertificate() | EntraToken() | None:
            return None


def renew_on(auth: Auth | None) -> Collection[int]:
    """Return the statuses after which another token is presented."""
    may_be_withdrawn = isinstance(auth, ClientCredentials | EntraToken) and auth.renew_on_403
    return {UNAUTHORIZED, FORBIDDEN} if may_be_withdrawn else {UNAUTHORIZED}


def _grant(auth: ClientCredentials, value: Value, session: Session) -> ClientGrant:
    return ClientGrant(
        session=session,
        url=value(auth.token_url),
        client_id=value(auth.client_id),
        secret=value(auth.secret),
        scope=value(auth.scope) if auth.scope else None,
        in_body=auth.in_body,
        clock=utc_now,
    )


def _certificate(agent: AgentDefinition, settings: Settings) -> Callable[[], ssl.SSLContext] | None:
    """Return the function that makes the context with the agent's certificate."""
    if not isinstance(agent.auth, ClientCertificate):
        return None
    setting = agent.auth.setting
    return Certificate(setting, settings.value(setting), utc_now).context
