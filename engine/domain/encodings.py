"""The encodings of JSON from outside the app: one rule for all queues, and one for bodies.

JSON is UTF-8, with or without a byte order mark. On a queue it may also be base64, which many tools
use. Any other encoding is rejected by name, and never guessed.
"""

import base64
import binascii
import codecs
import json
from contextlib import suppress

from engine.domain.errors import InputFault, InvalidError

GZIP = b"\x1f\x8b"
BEGINNINGS = (b"{", b"[", codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, GZIP)
"""The possible beginnings of a decoded base64 text. With any other beginning, the text was not
base64, for example `null`."""


def unpacked(body: bytes) -> bytes:
    """Return the body of a queue message, decoded if it is base64."""
    if body.startswith(b"{"):
        return body
    try:
        text = base64.b64decode(b"".join(body.split()), validate=True)
    except binascii.Error:
        return body
    return text if text.lstrip().startswith(BEGINNINGS) else body


def in_utf8(body: bytes) -> bytes:
    """Return the text without its byte order mark.

    Raises `InvalidError` if the text is not UTF-8. The fault names the other encoding, or the first
    invalid byte.
    """
    text = body.removeprefix(codecs.BOM_UTF8)
    encoding = encoding_of(text)
    if encoding != "utf-8":
        raise InvalidError([InputFault("body", "other-encoding", {"encoding": encoding})])
    try:
        text.decode()
    except UnicodeDecodeError as fault:
        facts = {"position": fault.start + 1, "byte": f"{text[fault.start]:02X}"}
        raise InvalidError([InputFault("body", "no-utf-8", facts)]) from None
    return text


def encoding_of(text: bytes) -> str:
    """Return the encoding of a JSON text, which its first bytes show (RFC 4627, 3)."""
    return "gzip" if text.startswith(GZIP) else json.detect_encoding(text)


def readable(body: bytes) -> str:
    """Return a message as text for people and searches, in whatever encoding its JSON came.

    Anything else is shown as UTF-8, with escapes for invalid bytes.
    """
    text = unpacked(body)
    encoding = json.detect_encoding(text)
    if not encoding.startswith("utf-8"):
        with suppress(UnicodeDecodeError):
            decoded = text.decode(encoding)
            if decoded.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
                return decoded
        encoding = "utf-8"
    return text.decode(encoding, errors="backslashreplace")
