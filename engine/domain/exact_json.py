"""JSON with exact numbers: each value is read, kept and written without rounding."""

import math
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

import simplejson
from pydantic_core import to_jsonable_python
from simplejson.raw_json import RawJSON

LARGEST_WHOLE = 10**21
"""A number below this limit with a fraction of zeros, such as 2.0 or 1e2, is read as an integer."""


class ExactNumber(Decimal):
    """A number in JSON that a float would round."""

    __slots__ = ()


# Most messages do not match. Pydantic reads those directly, which is six times as fast.
NEEDS_CARE = re.compile(r'(?:"\s*:|[\[,])\s*-?(?:[0-9]+[.eE]|NaN|Infinity)')
"""Matches every JSON text with a fraction, an exponent, NaN or Infinity in an object or a list. It
may also match inside a string."""


def read(text: str | bytes) -> Any:
    """Return the value of a JSON text. A number that a float would round becomes an `ExactNumber`.

    Raises `ValueError` if the text is invalid or nested too deeply, or if a number is not valid in
    JSON (NaN, Infinity) or exceeds the range of a float (1e999).
    """
    try:
        return simplejson.loads(text, parse_float=_number, parse_constant=_no_number)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"no JSON that can be read: {type(error).__name__}") from None


def write(value: Any, *, is_ascii: bool = False) -> str:
    """Return the value as compact JSON.

    Raises `ValueError` for NaN and infinity.
    """
    return (_ASCII if is_ascii else _COMPACT).encode(value)


def _json_of(value: Any) -> Any:
    if isinstance(value, ExactNumber):
        return RawJSON(str(value))
    # An author made any other decimal. It becomes a text.
    return dict(value) if isinstance(value, Mapping) else to_jsonable_python(value)


def _encoder(**options: Any) -> simplejson.JSONEncoder:
    return simplejson.JSONEncoder(default=_json_of, allow_nan=False, use_decimal=False, **options)


# The encoders are kept, because making one takes nearly as long as writing a short text.
_COMPACT = _encoder(ensure_ascii=False, separators=(",", ":"))
_ASCII = _encoder(separators=(",", ":"))


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
    """Return whether a JSON value contains a number that a float would round."""
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
    """Return the value that a model wrote, with the received number where the model rounded it."""
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
