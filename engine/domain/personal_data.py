"""Personal values in data of any shape: which texts they are, and whose they are."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from engine.domain.encodings import readable
from engine.domain.texts import same_to_people

ESCAPES = re.compile(r"(?:\\u[0-9A-Fa-f]{4})+")
"""Characters as JSON may write them."""


def texts_in(value: Any) -> Iterator[str]:
    """Yield the texts and numbers in a value."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from texts_in(part)
    elif value not in (None, ""):
        yield str(value)


def names_person(value: Any, email: str) -> bool:
    """Whether one of the texts in a value is this person's address, in any spelling."""
    return same_to_people(email) in map(same_to_people, texts_in(value))


def holds_address(body: bytes, email: str) -> bool:
    """Whether a message holds this person's address, in any spelling, encoding or JSON escapes."""
    wanted = same_to_people(email)
    text = f"{body.decode(errors='backslashreplace')} {readable(body)}"
    return bool(wanted) and wanted in same_to_people(ESCAPES.sub(_unescaped, text))


def _unescaped(found: re.Match[str]) -> str:
    return str(json.loads(f'"{found[0]}"'))
