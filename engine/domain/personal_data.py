"""Personal values in data of any shape: which texts they are, and whose they are."""

from collections.abc import Iterator, Mapping
from typing import Any


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
    """Whether one of the texts in a value is this person's address, in any case."""
    return email.casefold() in map(str.casefold, texts_in(value))
