"""JSON whose numbers are exact: the value of each is read, kept and written as it came."""

import math
import re
from collections.abc import Mapping
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


NEEDS_CARE = re.compile(r'(?:"\s*:|[\[,])\s*-?(?:[0-9]+[.eE]|NaN|Infinity)')
"""Matches every JSON object or list that holds a number with a fraction or an exponent, or none.

It may also match inside a string. Most messages do not match, and pydantic reads those directly:
six times as fast.
"""


def read(text: str | bytes) -> Any:
    """Return the value of a JSON text; a number that a float would round is an `ExactNumber`.

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
    # An author made any other decimal. It becomes a text.
    return dict(value) if isinstance(value, Mapping) else to_jsonable_python(value)


def _encoder(**options: Any) -> simplejson.JSONEncoder:
    return simplejson.JSONEncoder(default=_json_of, allow_nan=False, use_decimal=False, **options)


_COMPACT = _encoder(ensure_ascii=False, separators=(",", ":"))
_ASCII = _encoder(separators=(",", ":"))
"""The encoders are kept, since making one takes nearly as long as writing a short text."""


def _number(text: str) -> int | float | ExactNumber:
    near = float(text)
    try:
        exact = ExactNumber(text)
    except InvalidOperation:  # its exponent has too many digits
        _no_number(text)
    if math.isinf(near):
        _no_number(text)
    is_minus_zero = near == 0 and exact.is_signed()
    if abs(exact) < LARGEST_WHOLE and exact == (whole := int(exact)) and not is_minus_zero:
        return whole
    return near if Decimal(repr(near)) == exact else exact


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text[:20]} is no number that JSON can hold")


def has_exact(value: Any) -> bool:
    """Whether a JSON value holds a number that a float would round."""
    left = [value]
    while left:
        match left.pop():
            case ExactNumber():
                return True
            case Mapping() as members:
                left += members.values()
            case list() as parts:
                left += parts
    return False


def with_exact(written: Any, received: Any) -> Any:
    """Return what a model wrote. Where it rounded a number, put back the number that came."""
    match written, received:
        case float(), ExactNumber() if written == float(received):
            return received
        case str(), ExactNumber() if written == str(received):
            return received
        case Mapping(), Mapping():
            return {name: with_exact(part, received.get(name)) for name, part in written.items()}
        case list(), list() | tuple() if len(written) == len(received):
            return list(map(with_exact, written, received))
    return written
