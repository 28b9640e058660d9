"""The settings of the agents: the addresses of their services, and what shows who calls."""

import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from pydantic import SecretStr

from adapters.credentials import context_of
from core.business import Agent, is_simulated
from core.credentials import ApiKey, ClientCertificate, ClientCredentials, EntraToken, Setting
from core.forms import HEADER_VALUE

URL = re.compile(r"https?://[^\s/@]+(/[^\s@]*)?")
"""An address without a user name and password, which would be readable in a plain setting."""
LOOPBACK = {"localhost", "127.0.0.1", "::1"}
UNRESOLVED = "@Microsoft.KeyVault("
"""The beginning of a value that the platform could not replace by the secret that it names."""

Environ = Mapping[str, str]


def addresses_of(agents: Sequence[Agent], environ: Environ) -> Mapping[str, str]:
    """Return the addresses of the agents' services, by agent."""
    given = {each.name: environ.get(each.address, "") for each in agents}
    return {name: address for name, address in given.items() if address}


def scopes_of(agents: Sequence[Agent], environ: Environ) -> Mapping[str, str]:
    """Return the scopes of the tokens for the agents' services, by agent."""
    scopes: dict[str, str] = {}
    for agent in agents:
        auth = EntraToken() if agent.auth is None else agent.auth
        if isinstance(auth, EntraToken):
            (setting,) = auth.settings(agent.address)
            if scope := environ.get(setting.name):
                scopes[agent.name] = scope
    return scopes


def values_of(agents: Sequence[Agent], environ: Environ) -> Mapping[str, SecretStr]:
    """Return what shows who calls, and what functions read, by the names of the settings."""
    names = {each.name for agent in agents for each in (*agent.auth_settings, *agent.code_settings)}
    return {name: SecretStr(environ[name]) for name in sorted(names) if environ.get(name)}


def faults_of(agents: Sequence[Agent], environ: Environ) -> Iterator[str]:
    """Yield a line for each setting of the agents that is missing or wrong, without its value."""
    for agent in agents:
        address = environ.get(agent.address, "")
        if agent.address and (address or not agent.optional):
            yield from _address_faults(agent, address)
        if address or not (agent.address and agent.optional):
            yield from _other_faults(agent, environ)


def _address_faults(agent: Agent, address: str) -> Iterator[str]:
    service = f"the address of the {agent.name} service"
    expected = f"expected {service}, https:// (http:// on this machine only)"
    if not address:
        yield f"{agent.address}: missing; {expected}"
    elif not is_private(address):
        alternative = ", or nothing" if agent.optional else ""
        yield f"{agent.address}: no address; {expected}{alternative}"


def _other_faults(agent: Agent, environ: Environ) -> Iterator[str]:
    shown = () if is_simulated(agent.name, environ.get(agent.address, "")) else agent.auth_settings
    for setting in (*shown, *agent.code_settings):
        value = environ.get(setting.name, "")
        if not value:
            if setting.required:
                yield f"{setting.name}: missing; expected {setting.meaning}, for agent {agent.name}"
        elif value.startswith(UNRESOLVED):
            yield f"{setting.name}: its reference to a Key Vault leads to no secret"
        elif fault := _fault_in(agent, setting, value):
            yield f"{setting.name}: {fault}; expected {setting.meaning}, for agent {agent.name}"


def _fault_in(agent: Agent, setting: Setting, value: str) -> str | None:
    """Return what is wrong with the value of a setting; None if nothing is."""
    match agent.auth:
        case ApiKey() if not HEADER_VALUE.fullmatch(value):
            return "a header cannot hold it"
        case ClientCredentials(token_url=name) if name == setting.name and not is_private(value):
            return "no address"
        case ClientCertificate() if not _is_certificate(value):
            return "it cannot be used"
    return None


def _is_certificate(value: str) -> bool:
    try:
        context_of(value)
    except (OSError, ValueError):  # ValueError: a path with a zero
        return False
    return True


def is_private(address: str) -> bool:
    """Whether requests to the address are protected: it is https, or on this machine."""
    if not URL.fullmatch(address):
        return False
    try:
        parts = urlsplit(address)
    except ValueError:  # a missing bracket, as in http://[::1
        return False
    return parts.scheme == "https" or parts.hostname in LOOPBACK
