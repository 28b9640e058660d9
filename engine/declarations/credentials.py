"""The credentials for a service, as data. The secrets themselves are settings."""

import re
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass

from engine.declarations.faults import Fault, FaultCode
from engine.declarations.service_forms import HEADER, HEADER_VALUE

SCOPE = "_SCOPE"
"""The suffix that makes the name of the token scope setting from the name of the address
setting."""
SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,100}")
"""The name of a setting, which is an environment variable."""

# What a setting holds, as messages about it say.
KEY = "the key of the service"
OAUTH_SCOPE = "the scope of a token"
OAUTH_SERVER = "the https:// address that issues tokens"
OAUTH_CLIENT = "the id of the client"
OAUTH_KEY = "the secret of the client"
CERTIFICATE = "a certificate and its key without a password, as PEM text or the path of a file"


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """A setting that an agent reads."""

    name: str
    required: bool = True
    """Whether the app does not start without the setting."""
    secret: bool = False
    """Whether the value is a secret. On Azure such a setting is a reference to a Key Vault."""
    meaning: str
    """The content of the setting, such as `the key of the service`."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A fixed key in a header."""

    setting: str
    """The setting with the key."""
    header: str = "Authorization"
    prefix: str = ""
    """The text before the key, such as `Bearer ` with its space."""

    def settings(self, address: str) -> tuple[Setting, ...]:
        """Return the settings that contain the credential.

        `address` is the setting with the service's address.
        """
        del address
        return (Setting(name=self.setting, secret=True, meaning=KEY),)

    def faults(self) -> Iterator[Fault]:
        """Yield the faults that would make every call invalid."""
        if not HEADER.fullmatch(self.header):
            yield Fault(
                FaultCode.PATTERN_MISMATCH,
                field="header",
                value=self.header,
                pattern=HEADER.pattern,
            )
        if self.prefix and not HEADER_VALUE.fullmatch(f"{self.prefix}x"):
            yield Fault(FaultCode.NOT_PRINTABLE, field="prefix")


@dataclass(frozen=True, slots=True)
class EntraToken:
    """A token of the app's identity for a scope, such as `api://<app id>/.default`."""

    scope: str | None = None
    """The setting with the scope. None for the name of the address setting plus `_SCOPE`."""
    _: KW_ONLY
    renew_on_403: bool = False
    """Whether the service answers 403 instead of 401 to a token that was withdrawn."""

    def settings(self, address: str) -> tuple[Setting, ...]:
        return (Setting(name=self.scope or address + SCOPE, meaning=OAUTH_SCOPE),)

    def faults(self) -> Iterator[Fault]:
        """Yield nothing. The setting is checked with all others."""
        yield from ()


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """A token of an OAuth server, by client credentials (RFC 6749, 4.4)."""

    token_url: str
    """The setting with the address that issues tokens."""
    client_id: str
    """The setting with the id of the client."""
    secret: str
    """The setting with the secret of the client."""
    _: KW_ONLY
    scope: str | None = None
    """The setting with the scope, or None if the server needs none."""
    in_body: bool = False
    """Whether the server expects id and secret in the body instead of HTTP Basic (2.3.1)."""
    renew_on_403: bool = False
    """Whether the service answers 403 instead of 401 to a token that was withdrawn."""

    def settings(self, address: str) -> tuple[Setting, ...]:
        del address
        named = [
            Setting(name=self.token_url, meaning=OAUTH_SERVER),
            Setting(name=self.client_id, meaning=OAUTH_CLIENT),
            Setting(name=self.secret, secret=True, meaning=OAUTH_KEY),
        ]
        if self.scope:
            named.append(Setting(name=self.scope, meaning=OAUTH_SCOPE))
        return tuple(named)

    def faults(self) -> Iterator[Fault]:
        """Yield nothing. The settings are checked with all others."""
        yield from ()


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate with its key, which every connection to the service presents (mutual TLS)."""

    setting: str
    """The setting with both as PEM text, or with the path of such a file."""

    def settings(self, address: str) -> tuple[Setting, ...]:
        del address
        return (Setting(name=self.setting, secret=True, meaning=CERTIFICATE),)

    def faults(self) -> Iterator[Fault]:
        """Yield nothing. The setting is checked with all others."""
        yield from ()


Auth = ApiKey | EntraToken | ClientCredentials | ClientCertificate
