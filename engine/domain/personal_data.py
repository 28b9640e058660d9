"""Search for personal data in values of any shape."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from engine.domain.encodings import readable
from engine.domain.texts import same_to_people

ESCAPES = re.compile(r"(?:\\u[0-9A-Fa-f]{4})+")
"""Escaped characters in JSON."""


def texts_in(value: Any) -> Iterator[str]:
    """Yield the texts in a value, and its numbers as texts."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from texts_in(part)
    elif value not in (None, ""):
        yield str(value)


def names_person(value: Any, email: str) -> bool:
    """Return whether a text in the value is this person's address, in any spelling."""
    return same_to_people(email) in map(same_to_people, texts_in(value))


def holds_address(body: bytes, email: str) -> bool:
    """Return whether a message contains this address, in any spelling, encoding or escape."""
    wanted = same_to_people(email)
    text = f"{body.decode(errors='backslashreplace')} {readable(body)}"
    return bool(wanted) and wanted in same_to_people(ESCAPES.sub(_unescaped, text))


def _unescaped(found: re.Match[str]) -> str:
    return str(json.loads(f'"{found[0]}"'))
