"""The credentials that calls present to a service: a key, a token or a certificate."""

import asyncio
import logging
import ssl
import tempfile
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote_plus

import aiohttp

from engine.azure.answers import json_object, read
from engine.concurrency import GroupCommit
from engine.declarations.service_forms import HEADER_VALUE
from engine.domain.errors import GatewayError
from engine.ports import Clock

log = logging.getLogger(__name__)

EARLY = timedelta(seconds=60)
"""A token is replaced this long before it expires, or a tenth of its life if that is shorter."""
UNSAID = timedelta(minutes=5)
"""The life of a token whose server does not say when it expires."""
BETWEEN_REFUSALS = timedelta(seconds=30)
"""How often a token may be replaced because the service refuses it."""
FETCH_SECONDS = 30
"""The time limit for a token server, however many calls wait."""


class Credential(Protocol):
    """The credential that the calls of a service present."""

    async def headers(self) -> Mapping[str, str]:
        """Return the headers that carry the credential in a call to a service.

        Raises `GatewayError` or `AzureError` if there is no credential.
        """

    async def renewed(self, refused: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return other headers after a refusal. None if there are no others, or not now."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Headers that are the same for all calls."""

    shown: Mapping[str, str] = field(repr=False)

    async def headers(self) -> Mapping[str, str]:
        return self.shown

    async def renewed(self, refused: Mapping[str, str]) -> None:
        del refused


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """A bearer token."""

    text: str = field(repr=False)
    ends: datetime


Fetch = Callable[[bool], Awaitable[Token]]
"""Fetches a token. The argument says whether the last one was refused."""


class Tokens:
    """Bearer tokens from a server. Each is kept until shortly before it expires.

    Concurrent callers share a fetch. The fetch continues even if its callers leave.
    """

    def __init__(self, fetch: Fetch, clock: Clock) -> None:
        self._fetch, self._clock = fetch, clock
        self._kept: Token | None = None
        self._refused_at: datetime | None = None
        self._fetches = GroupCommit(self._fetched)

    async def headers(self) -> Mapping[str, str]:
        return self._shown(self._usable() or await self._fetches.submit("", None))

    async def renewed(self, refused: Mapping[str, str]) -> Mapping[str, str] | None:
        kept = self._usable()
        if kept is None or self._shown(kept) == refused:
            kept = await self._fetches.submit("", kept)
        shown = self._shown(kept)
        return None if shown == refused else shown

    async def _fetched(self, lane: str, refused: Sequence[Token | None]) -> Sequence[Token]:
        """Return the token for all waiting callers.

        It is fetched unless another fetch has just made it.
        """
        del lane
        kept = self._usable()
        if kept is None or (kept in refused and self._may_replace()):
            async with asyncio.timeout(FETCH_SECONDS):
                kept = self._kept = await self._fetch(kept is not None)
        return [kept] * len(refused)

    def _may_replace(self) -> bool:
        """Whether a refused token may be replaced now."""
        now, last = self._clock(), self._refused_at
        # A service that refuses every token must not cause a fetch for every call.
        if last and now < last + BETWEEN_REFUSALS:
            return False
        self._refused_at = now
        return True

    def _usable(self) -> Token | None:
        kept = self._kept
        return kept if kept and self._clock() < kept.ends else None

    @staticmethod
    def _shown(token: Token) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {token.text}"}


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientGrant:
    """Fetches tokens of an OAuth server by client credentials (RFC 6749, 4.4)."""

    session: Callable[[], aiohttp.ClientSession]
    url: str
    client_id: str
    secret: str = field(repr=False)
    scope: str | None
    in_body: bool
    clock: Clock

    async def __call__(self, refused: bool) -> Token:  # noqa: FBT001 - the type is `Fetch`
        """Fetch a token. Raises `GatewayError`, which contains nothing of the request."""
        del refused
        requested_at = self.clock()
        async with self.session().post(
            self.url,
            data=self._form(),
            headers={"Accept": "application/json", **self._basic()},
            timeout=aiohttp.ClientTimeout(),
            allow_redirects=False,
        ) as response:
            answer = json_object(await read(response)) or {}
            status = response.status
        text = answer.get("access_token")
        if status != 200 or not isinstance(text, str) or not HEADER_VALUE.fullmatch(text):
            raise GatewayError(f"no token: {status} {_code(answer)}".strip())
        return Token(text=text, ends=requested_at + _lasts(answer.get("expires_in")))

    def _form(self) -> Mapping[str, str]:
        form = {"grant_type": "client_credentials"}
        if self.scope:
            form["scope"] = self.scope
        if self.in_body:
            form |= {"client_id": self.client_id, "client_secret": self.secret}
        return form

    def _basic(self) -> Mapping[str, str]:
        if self.in_body:
            return {}
        pair = f"{quote_plus(self.client_id)}:{quote_plus(self.secret)}"
        return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


ERRORS = {
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
}
"""The errors that a token server can name (RFC 6749, 5.2). Its other texts are not repeated."""


def _code(answer: Mapping[str, Any]) -> str:
    error = answer.get("error")
    return error if isinstance(error, str) and error in ERRORS else ""


def _lasts(expires_in: Any) -> timedelta:
    """Return how long a token can be presented, from the life in seconds that its server names."""
    try:
        life = timedelta(seconds=max(0.0, min(float(expires_in), 86_400)))
    except (TypeError, ValueError):
        life = UNSAID
    return usable(life)


def usable(life: timedelta) -> timedelta:
    """Return for how long a token is used. The last part of its life is a reserve."""
    return life - min(EARLY, life / 10)


FileVersion = tuple[int, ...]
"""Values that differ after a file was written or replaced."""
FILE_CHECK_INTERVAL = timedelta(seconds=10)
"""How often the certificate's file is checked for changes, while calls are made."""


class Certificate:
    """A certificate with its key, as PEM text or as a file that is read again after a change.

    If the changed file cannot be read, the last good certificate is presented.
    """

    def __init__(self, setting: str, value: str, clock: Clock) -> None:
        self._setting, self._value, self._clock = setting, value, clock
        self._context: ssl.SSLContext | None = None
        self._version: FileVersion = ()
        """The version of the file from which the context was made."""
        self._checked_at: datetime | None = None
        self._unreadable: FileVersion | None = None
        """The version of the unreadable file that was last reported."""

    def context(self) -> ssl.SSLContext:
        """Return the context of connections that present the certificate.

        A new certificate gets a new context, so that no connection with the old one is used again.
        Raises OSError if the certificate could never be read.
        """
        if self._context is None:
            self._context = self._read(self._version_now())
        elif self._is_due():
            self._renew()
        return self._context

    def _is_due(self) -> bool:
        """Whether the file has to be checked.

        This is so if the last check is too long ago, or if the clock was put back since.
        """
        now, last = self._clock(), self._checked_at
        if last and timedelta() <= now - last < FILE_CHECK_INTERVAL:
            return False
        self._checked_at = now
        return True

    def _renew(self) -> None:
        version = self._version_now()
        if version == self._version:
            return
        try:
            self._context = self._read(version)
        except OSError as error:
            if version != self._unreadable:
                self._unreadable = version
                facts = {"setting": self._setting, "why": type(error).__name__}
                log.warning("certificate.not_renewed", extra=facts)

    def _read(self, version: FileVersion) -> ssl.SSLContext:
        context = context_of(self._value)
        self._version, self._unreadable = version, None
        return context

    def _version_now(self) -> FileVersion:
        """Return the version of the file. Empty for PEM text, or if there is no file."""
        if _is_pem(self._value):
            return ()
        try:
            found = Path(self._value).stat()
        except OSError:
            return ()
        return (found.st_mtime_ns, found.st_size, found.st_ino)


def _is_pem(certificate: str) -> bool:
    return certificate.lstrip().startswith("-----BEGIN")


def context_of(certificate: str) -> ssl.SSLContext:
    """Make a context that presents this certificate, given as PEM text or as the path of a file.

    Raises OSError (of which `ssl.SSLError` is one) if the certificate cannot be used.
    """
    context = ssl.create_default_context()
    # A key with a password would make `ssl` ask for it on a terminal.
    if not _is_pem(certificate):
        context.load_cert_chain(certificate, password="")
        return context
    # `ssl` reads files only; this one is for our eyes, and there for a moment.
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "certificate.pem"
        file.touch(mode=0o600)
        file.write_text(certificate)
        context.load_cert_chain(file, password="")
    return context
