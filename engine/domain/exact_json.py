"""JSON whose numbers are exact: each is read, kept and written as the number that came."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

import simplejson
from pydantic_core import to_jsonable_python
from simplejson.raw_json import RawJSON

LARGEST_WHOLE = 10**21
"""Below it a number with a fraction of zeros, such as 2.0 or 1e2, is read as an integer."""


class ExactNumber(Decimal):
    """A number in JSON that a float would round."""

    __slots__ = ()


Place = tuple[str | int, ...]
"""The names and indexes that lead to a part of a JSON value."""


NEEDS_CARE = re.compile(r'(?:":|[\[,])\s*-?(?:[0-9]+[.eE]|NaN|Infinity)')
"""Found in each JSON text with a number in an object or a list that a float may change.

It may also be found inside a string. Most messages have none, and are read six times as fast.
"""


def read(text: str | bytes) -> Any:
    """Return the value of a JSON text; one that a float would round is an `ExactNumber`.

    Raises ValueError if the text is invalid or nested too deeply, or if a number is none in JSON
    (NaN, Infinity) or beyond all floats (1e999).
    """
    try:
        return simplejson.loads(text, parse_float=_number, parse_constant=_no_number)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"no JSON that can be read: {type(error).__name__}") from None


def write(value: Any, *, is_ascii: bool = False) -> str:
    """Return the value as compact JSON; raises ValueError for NaN and infinity."""
    return (_ASCII if is_ascii else _COMPACT).encode(value)


def _json_of(value: Any) -> Any:
    if isinstance(value, ExactNumber):
        return RawJSON(str(value))
    # Any other decimal is one that an author made, and becomes a text.
    return dict(value) if isinstance(value, Mapping) else to_jsonable_python(value)


def _encoder(**options: Any) -> simplejson.JSONEncoder:
    return simplejson.JSONEncoder(default=_json_of, allow_nan=False, use_decimal=False, **options)


_COMPACT = _encoder(ensure_ascii=False, separators=(",", ":"))
_ASCII = _encoder(separators=(",", ":"))
"""Kept: to make one takes nearly as long as to write a short text."""


def _number(text: str) -> int | float | ExactNumber:
    near = float(text)
    try:
        exact = ExactNumber(text)
    except InvalidOperation:  # its exponent has too many digits
        _no_number(text)
    if math.isinf(near):
        _no_number(text)
    if abs(exact) < LARGEST_WHOLE and exact == (whole := int(exact)):
        return whole
    return near if Decimal(repr(near)) == exact else exact


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text[:20]} is no number that JSON can hold")


def rounded_places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the places of the numbers that a float would round."""
    if isinstance(value, ExactNumber):
        yield place
    for name, part in _parts(value):
        yield from rounded_places(part, (*place, name))


def _parts(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, list | tuple):
        yield from enumerate(value)


def with_texts(value: Any, places: Sequence[Place]) -> Any:
    """Return the value with texts for the numbers at these places."""
    return _with_texts(value, set(places), ())


def _with_texts(value: Any, places: set[Place], place: Place) -> Any:
    match value:
        case ExactNumber() if place in places:
            return str(value)
        case Mapping():
            return {k: _with_texts(part, places, (*place, k)) for k, part in value.items()}
        case list():
            return [_with_texts(part, places, (*place, i)) for i, part in enumerate(value)]
    return value


def with_exact(written: Any, received: Any) -> Any:
    """Return what a model wrote, with the numbers that came where a float rounded them."""
    match written, received:
        case _, ExactNumber():
            return received
        case Mapping(), Mapping():
            return {name: with_exact(part, received.get(name)) for name, part in written.items()}
        case list(), list() | tuple() if len(written) == len(received):
            return list(map(with_exact, written, received))
    return written
