"""What a trigger hands over of a message: bytes where its binding says so, else text, as Azure's host makes it.

A text that is a JSON object brings metadata: its members take the place of the message's own. The texts of a batch are
read as JSON and written anew.
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
"""Of the seconds of a time that is the whole of a JSON string; before them what stays."""


def of_one(body: bytes, metadata: Metadata, *, binary: bool) -> tuple[Datum, Metadata]:
    """Return body and metadata of a message; what is not UTF-8 is replaced."""
    if binary:
        return Datum(body, "bytes"), metadata
    text = body.decode(errors="replace")
    return Datum(text, "string"), _overridden(metadata, text)


def of_many(bodies: Sequence[bytes], *, binary: bool) -> Datum:
    """Return the bodies of a batch; raises `ValueError` if they are not handed over as bytes and one is no JSON."""
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
    """Return the metadata with the members of a JSON object in their place; names match in any case."""
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
