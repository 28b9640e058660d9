"""The settings of the agents: the addresses and the credentials of their services."""

from collections.abc import Iterator, Mapping, Sequence

from pydantic import SecretStr

from engine.azure.credentials import context_of
from engine.declarations.business import AgentDefinition, is_simulated
from engine.declarations.credentials import (
    ApiKey,
    ClientCertificate,
    ClientCredentials,
    EntraToken,
    Setting,
)
from engine.declarations.faults import Fault, FaultCode
from engine.declarations.service_forms import HEADER_VALUE
from engine.urls import is_private, takes_paths

UNRESOLVED = "@Microsoft.KeyVault("
"""A value starts like this if the platform could not resolve its Key Vault reference."""

Environ = Mapping[str, str]


def addresses_of(agents: Sequence[AgentDefinition], environ: Environ) -> Mapping[str, str]:
    given = {agent.name: environ.get(agent.address, "") for agent in agents}
    return {name: address for name, address in given.items() if address}


def scopes_of(agents: Sequence[AgentDefinition], environ: Environ) -> Mapping[str, str]:
    scopes: dict[str, str] = {}
    for agent in agents:
        auth = EntraToken() if agent.auth is None else agent.auth
        if isinstance(auth, EntraToken):
            (setting,) = auth.settings(agent.address)
            if scope := environ.get(setting.name):
                scopes[agent.name] = scope
    return scopes


def values_of(agents: Sequence[AgentDefinition], environ: Environ) -> Mapping[str, SecretStr]:
    """Return the credentials, and the values that activities read, by the name of their setting."""
    names = {
        setting.name for agent in agents for setting in (*agent.auth_settings, *agent.code_settings)
    }
    return {name: SecretStr(environ[name]) for name in sorted(names) if environ.get(name)}


def faults_of(agents: Sequence[AgentDefinition], environ: Environ) -> Iterator[Fault]:
    """Yield a fault for each missing or invalid setting of the agents.

    Faults do not contain the value.
    """
    for agent in agents:
        address = environ.get(agent.address, "")
        if agent.address and (address or not agent.optional):
            yield from _address_faults(agent, address)
        if address or not (agent.address and agent.optional):
            yield from _other_faults(agent, environ)


def _address_faults(agent: AgentDefinition, address: str) -> Iterator[Fault]:
    if not address:
        yield Fault(FaultCode.ADDRESS_MISSING, agent.address, agent=agent.name)
    elif not is_private(address) and agent.optional:
        yield Fault(FaultCode.OPTIONAL_ADDRESS_INVALID, agent.address, agent=agent.name)
    elif not is_private(address):
        yield Fault(FaultCode.ADDRESS_INVALID, agent.address, agent=agent.name)
    elif not takes_paths(address):
        yield Fault(FaultCode.ADDRESS_WITH_QUERY, agent.address, agent=agent.name)


def _other_faults(agent: AgentDefinition, environ: Environ) -> Iterator[Fault]:
    shown = () if is_simulated(agent.name, environ.get(agent.address, "")) else agent.auth_settings
    for setting in (*shown, *agent.code_settings):
        value = environ.get(setting.name, "")
        if value.startswith(UNRESOLVED):
            yield Fault(FaultCode.KEY_VAULT_UNRESOLVED, setting.name)
        elif code := _fault_in(agent, setting, value):
            yield Fault(code, setting.name, expected=setting.meaning, agent=agent.name)


def _fault_in(agent: AgentDefinition, setting: Setting, value: str) -> FaultCode | None:
    if not value:
        return FaultCode.AGENT_SETTING_MISSING if setting.required else None
    match agent.auth:
        case ApiKey() if not HEADER_VALUE.fullmatch(value):
            return FaultCode.AGENT_SETTING_NOT_IN_HEADER
        case ClientCredentials(token_url=name) if name == setting.name and not is_private(value):
            return FaultCode.AGENT_SETTING_NO_ADDRESS
        case ClientCertificate() if not _is_certificate(value):
            return FaultCode.AGENT_SETTING_UNUSABLE
    return None


def _is_certificate(value: str) -> bool:
    try:
        context_of(value)
    except (OSError, ValueError):  # ValueError: a path with a zero
        return False
    return True
