"""The answer of a remote service: its parts, read within limits."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any

import aiohttp

from engine.domain import exact_json
from engine.domain.messages import MAX_RETRY_AFTER_SECONDS
from engine.domain.texts import plain

MAX_BYTES = 128 * 1024
"""The longest answer, in bytes. A reply on Service Bus Standard has 256 KB for headers and fields,
too."""
MAX_REASON_CHARACTERS = 500
MAX_IDENTIFIER_CHARACTERS = 90
"""Two identifiers of this length fit into the name of a group of causes."""
GENERIC = re.compile(r"about:blank$|https?://(tools\.ietf|datatracker\.ietf|www\.rfc-editor)\.org/")
"""The types that frameworks give to every problem with the same status (RFC 9457, 4.2.1)."""
LONGEST_PAUSE = timedelta(seconds=MAX_RETRY_AFTER_SECONDS)
"""The longest pause that a reply can hold."""
DEFAULT_PAUSE = timedelta(seconds=30)
"""The pause if the `Retry-After` of a service cannot be read.

It is also the pause before a deferred call is repeated, if the service names no time.
"""
SECONDS = re.compile(r"[0-9]+(\.[0-9]*)?")
"""A `Retry-After` in seconds. RFC 9110 has whole seconds, but rate limiters also send fractions."""


@dataclass(frozen=True, kw_only=True)
class ServiceAnswer:
    """The parts of an answer that decide what it means."""

    status: int
    body: bytes
    """The body, cut shortly after `MAX_BYTES` bytes."""
    retry_after: str
    is_followed: bool = False
    """Whether the answer names a resource that shows the outcome of the call."""
    charset: str | None = None
    """The encoding that the service declares, for a body that is not UTF-8."""

    @property
    def is_too_long(self) -> bool:
        """Whether the body is too long for a reply, as it came or as JSON."""
        return len(self.body) > MAX_BYTES or size(self.content) > MAX_BYTES

    @cached_property
    def content(self) -> dict[str, Any] | None:
        """The JSON object in the body. None if the body is anything else."""
        return json_object(self.body, self.charset)

    @property
    def is_text(self) -> bool:
        """Whether the body can be decoded as text."""
        try:
            _text(self.body, self.charset)
        except (ValueError, LookupError):
            return False
        return True

    @property
    def reason(self) -> str:
        """The service's explanation, as one plain line.

        It comes from problem details, `reason` or `error`. `error` may be text, or an object with a
        `message`, as Stripe sends it.
        """
        content = self.content or {}
        error = content.get("error")
        inner = error if isinstance(error, dict) else {}
        texts = [content.get(name) for name in ("detail", "reason", "title")]
        for text in (*texts, inner.get("message"), error):
            if isinstance(text, str):
                return plain(text, MAX_REASON_CHARACTERS)
        return ""

    @property
    def identifiers(self) -> Mapping[str, str]:
        """The `type` and the `code` of the problem, as plain lines.

        They may be in an object `error`, as Stripe sends them. Values that say no more than the
        status are left out.
        """
        content = self.content or {}
        error = content.get("error")
        places = (content, error) if isinstance(error, dict) else (content,)
        found = {}
        for name in ("type", "code"):
            texts = (place.get(name) for place in places)
            text = next((text for text in texts if isinstance(text, str)), "")
            line = plain(text, MAX_IDENTIFIER_CHARACTERS)
            if line not in ("", str(self.status)) and not GENERIC.match(line):
                found[name] = line
        return found

    def asks_to_wait(self, now: datetime, most: timedelta) -> timedelta | None:
        """Return the pause that `Retry-After` requests, up to `most`. None if it requests none.

        Fractions of seconds are rounded up. An unreadable value means `DEFAULT_PAUSE`.
        """
        if not self.retry_after:
            return None
        if SECONDS.fullmatch(self.retry_after):
            seconds = min(float(self.retry_after), most.total_seconds())
            wait = timedelta(seconds=math.ceil(seconds))
        else:
            until = _moment(self.retry_after)
            wait = until - now if until else DEFAULT_PAUSE
        return min(wait, most) if wait > timedelta() else None


async def answer_of(response: aiohttp.ClientResponse) -> ServiceAnswer:
    retry_after = response.headers.get("Retry-After", "").strip()
    return ServiceAnswer(
        status=response.status,
        body=await read(response),
        retry_after=retry_after,
        is_followed="Location" in response.headers,
        charset=response.charset,
    )


async def read(response: aiohttp.ClientResponse) -> bytes:
    """Return the body, cut shortly after `MAX_BYTES` bytes."""
    body = b""
    async for chunk in response.content.iter_chunked(16 * 1024):
        body += chunk
        if len(body) > MAX_BYTES:
            response.close()
            break
    return body


def json_object(body: bytes, charset: str | None = None) -> dict[str, Any] | None:
    """Return the JSON object in the body. None if the body is anything else.

    Half of a surrogate pair becomes U+FFFD (RFC 8259, 8.2). It is left, for example, when an emoji
    is cut.
    """
    try:
        value = _whole(exact_json.read(_text(body, charset)))
    except (ValueError, LookupError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _text(body: bytes, charset: str | None) -> str:
    """Decode the body as UTF-8, UTF-16 or UTF-32, or else in the declared encoding."""
    try:
        return body.decode(json.detect_encoding(body), "surrogatepass")
    except UnicodeDecodeError:
        if charset is None:
            raise
        return body.decode(charset)


def _whole(value: Any) -> Any:
    """Replace each half of a surrogate pair in a JSON value by U+FFFD."""
    match value:
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case list():
            return [_whole(part) for part in value]
        case dict():
            return {_whole(name): _whole(member) for name, member in value.items()}
    return value


def size(value: Any) -> int:
    """Return the approximate size of the value in a reply, in bytes.

    Raises ValueError if not Unicode.
    """
    return len(exact_json.write(value).encode())


def _moment(text: str) -> datetime | None:
    """Return the time of an HTTP date. None if the text is not an HTTP date."""
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):  # the parser raises all of these
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
