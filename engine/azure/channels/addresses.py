"""The addresses in the settings of channels: of people, and of a mail server."""

import re
from dataclasses import dataclass, field
from enum import Enum, auto
from urllib.parse import SplitResult, unquote, urlsplit

from engine.urls import LOOPBACK

MOST_RECIPIENTS = 50
"""How many recipients Azure Communication Services accepts for an email."""
MAX_ADDRESS_CHARACTERS = 254
TLS_PORT, STARTTLS_PORT = 465, 587
MAIL_ADDRESS = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
    r"(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*"
)
HOST = re.compile(r"[A-Za-z0-9.-]+|[0-9a-f:]+")
PRINTABLE = re.compile("[!-~]+")


def is_mail_address(text: str) -> bool:
    """Whether the text is one ASCII address without a name, which fits into a header unchanged."""
    return len(text) <= MAX_ADDRESS_CHARACTERS and MAIL_ADDRESS.fullmatch(text) is not None


def addresses_in(text: str) -> list[str]:
    """Split the text at its commas. The addresses may be invalid."""
    return [address for part in text.split(",") if (address := part.strip())]


class Encryption(Enum):
    """How the connection to a mail server is encrypted."""

    TLS = auto()
    """From the beginning."""
    STARTTLS = auto()
    """Before anything is sent. A server that cannot encrypt gets nothing."""
    NONE = auto()
    """Not at all. Only for a server on this machine."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SmtpServer:
    """A mail server with its login."""

    host: str
    port: int
    encryption: Encryption
    user: str = field(default="", repr=False)
    """Empty if there is no login."""
    password: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if self.encryption is Encryption.NONE and self.host.lower() not in LOOPBACK:
            raise ValueError("only a server on this machine may be used without encryption")


def smtp_server(url: str) -> SmtpServer:
    """Parse the address of a server, such as `smtps://user:password@host:465`.

    `smtp://` means STARTTLS, or no encryption if the server is on this machine. Port 465 always
    means TLS. Raises ValueError for any other text.
    """
    parts, port = _split(url)
    host = parts.hostname or ""
    is_complete = PRINTABLE.fullmatch(url) and HOST.fullmatch(host)
    if not is_complete or parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError("not an address of a mail server")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if bool(user) != bool(password):
        raise ValueError("a user without a password, or a password without a user")
    encryption = _encryption(parts.scheme, host, port)
    usual = TLS_PORT if encryption is Encryption.TLS else STARTTLS_PORT
    return SmtpServer(
        host=host, port=port or usual, encryption=encryption, user=user, password=password
    )


def _split(url: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("not an address of a mail server") from None  # its text has the address
    if parts.scheme not in ("smtp", "smtps") or port == 0:
        raise ValueError("neither smtps:// nor smtp://, or its port is 0")
    return parts, port


def _encryption(scheme: str, host: str, port: int | None) -> Encryption:
    if scheme == "smtps" or port == TLS_PORT:
        return Encryption.TLS
    return Encryption.NONE if host in LOOPBACK else Encryption.STARTTLS
