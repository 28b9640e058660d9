"""The form in which a trigger passes a message: bytes if its binding says so, otherwise text.

As in Azure's host, the members of a text that is a JSON object replace the message's own metadata. The texts of a
batch are read as JSON and written again.
"""

import json
import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace

from azure.functions.meta import Datum

Metadata = Mapping[str, Datum]

_TRAILING_ZEROS = re.compile(
    r'("\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.0+|(\.\d*[1-9])0+)(?=(?:Z|[+-]\d\d:\d\d)?")'
)
"""Trailing zeros in the seconds of a JSON string that is a time. The groups hold the part that stays."""


def of_one(body: bytes, metadata: Metadata, *, binary: bool) -> tuple[Datum, Metadata]:
    """Return the body and the metadata of a message. Bytes that are not UTF-8 are replaced."""
    if binary:
        return Datum(body, "bytes"), metadata
    text = body.decode(errors="replace")
    return Datum(text, "string"), _overridden(metadata, text)


def of_many(bodies: Sequence[bytes], *, binary: bool) -> Datum:
    """Return the bodies of a batch.

    Raises `ValueError` if they are passed as text and one of them is not JSON.
    """
    if binary:
        return Datum(SimpleNamespace(bytes=list(bodies)), "collection_bytes")
    return Datum(f"[{','.join(map(_as_json, bodies))}]", "json")


def _as_json(body: bytes) -> str:
    if not body.strip():
        return "null"
    try:
        return _TRAILING_ZEROS.sub(r"\1\2", json.dumps(json.loads(body.decode())))
    except RecursionError as error:
        raise ValueError("a body is nested too deeply") from error


def _overridden(metadata: Metadata, text: str) -> Metadata:
    """Return the metadata, replaced by the members of a JSON object. The case of names does not matter."""
    names = {name.lower(): name for name in metadata}
    members = {
        names.get(name.lower(), name): _value(value)
        for name, value in _members(text).items()
        if value is not None and not isinstance(value, list)
    }
    return {**metadata, **members}


def _members(text: str) -> Mapping[str, object]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _value(value: object) -> Datum:
    if isinstance(value, dict):
        return Datum(json.dumps(value), "json")
    return Datum(value if isinstance(value, str) else str(value), "string")
