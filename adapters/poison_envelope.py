"""What a poison queue keeps of a message: its body, the reason, and what it needs to be put back.

A Storage Queue takes 64 KiB of text. What does not fit as it is, is deflated; what does not fit then either is kept
shortened, which shows what it was, but cannot be put back.
"""

import base64
import binascii
import json
import re
import zlib
from collections.abc import Iterator
from typing import Any

from pydantic import Base64Bytes, BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from core.poison import PoisonMessage

MOST_BYTES = 64 * 1024
MOST_BODY_BYTES = 2**20
"""Inflates to no more, whoever wrote it."""

MOST_REASON_CHARACTERS = 4000
MOST_CORRELATION_CHARACTERS = 200
SHORTENED_TO_BYTES = 8 * 1024
"""Together they always fit: a character takes up to 12 bytes of JSON."""

NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Storage Queues travel in XML, which has no way to write these."""


class _Envelope(BaseModel):
    """A message with its reason. Fields come and go, so that what an earlier version kept can be read."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)
    reason: str
    received_at: str
    body: str | None = None
    body_base64: Base64Bytes | None = None
    body_deflated: str | None = None
    shortened: bool = False
    correlation_id: str | None = None

    def original(self) -> bytes:
        """Return the message as it was received; raises `ValueError` if it was not we who deflated it."""
        if self.body_deflated is not None:
            return _inflated(self.body_deflated)
        return self.body_base64 or (self.body or "").encode()


def seal(body: bytes, reason: str, received_at: str, correlation_id: str | None = None) -> str:
    """Return what the poison queue keeps: never more than `MOST_BYTES`, whatever is given."""
    known: dict[str, Any] = {"reason": reason[:MOST_REASON_CHARACTERS], "receivedAt": received_at}
    if correlation_id:
        known["correlationId"] = correlation_id[:MOST_CORRELATION_CHARACTERS]
    return next(text for text in _forms(body, known) if len(text.encode()) <= MOST_BYTES)


def _forms(body: bytes, known: dict[str, Any]) -> Iterator[str]:
    """Yield how the message may be kept, best first: the last form is never too long."""
    try:
        text = body.decode()
        yield json.dumps(known | {"body": text})
    except UnicodeDecodeError:
        text = ""
        yield json.dumps(known | {"bodyBase64": _text(body)})
    if len(body) <= MOST_BODY_BYTES:
        yield json.dumps(known | {"bodyDeflated": _text(zlib.compress(body))})
    if text and "correlationId" not in known and not NO_XML.search(text):
        yield text  # as it came off a Storage Queue: better whole and without its reason than not whole
    yield json.dumps(known | {"bodyBase64": _text(body[:SHORTENED_TO_BYTES]), "shortened": True})


def unseal(source: str, message_id: str, text: str, kept_at: str) -> PoisonMessage:
    """Read what a poison queue holds: our own envelope, or a message as the functions host gave it up."""
    try:
        envelope = _Envelope.model_validate_json(text)
        body = envelope.original()
    except ValueError:  # pydantic's `ValidationError` is one, too
        return PoisonMessage(source=source, message_id=message_id, body=text.encode(), kept_at=kept_at)
    return PoisonMessage(
        source=source,
        message_id=message_id,
        body=body,
        reason=envelope.reason,
        kept_at=envelope.received_at,
        correlation_id=envelope.correlation_id,
        shortened=envelope.shortened,
    )


def _text(body: bytes) -> str:
    return base64.b64encode(body).decode()


def _inflated(text: str) -> bytes:
    try:
        inflating = zlib.decompressobj()
        body = inflating.decompress(base64.b64decode(text, validate=True), MOST_BODY_BYTES)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(str(error)) from error
    if not inflating.eof:
        raise ValueError("it is not complete, or too long")
    return body
