"""Digests of JSON values. Two values with the same content have the same digest."""

import hashlib
from collections.abc import Mapping
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Any

import simplejson
from simplejson.raw_json import RawJSON

# Enough: two answers to one step do not share 64 bits by chance.
LENGTH = 16
"""The number of hexadecimal digits in a digest (64 bits)."""


def digest_of(value: Any) -> str:
    """Return the digest of a JSON value.

    As in JSON, the order of names and the form of a number make no difference, but true is not 1.
    """
    return hashlib.sha256(canonical_text(value).encode()).hexdigest()[:LENGTH]


def canonical_text(value: Any) -> str:
    """Return the one text that all forms of a JSON value have in common (see `digest_of`)."""
    return simplejson.dumps(_canonical(value), sort_keys=True, allow_nan=True)


def _canonical(value: Any) -> Any:
    match value:
        case Mapping():
            return {name: _canonical(part) for name, part in value.items()}
        case list() | tuple():
            return [_canonical(part) for part in value]
        case float() if value.is_integer():
            return int(value)
        case Decimal():
            return int(value) if value == value.to_integral_value() else RawJSON(_shortest(value))
    return value


def _shortest(value: Decimal) -> str:
    """Return the same text for equal numbers, regardless of the number of digits."""
    digits = Context(prec=len(value.as_tuple().digits), Emin=MIN_EMIN, Emax=MAX_EMAX)
    return str(value.normalize(digits))
