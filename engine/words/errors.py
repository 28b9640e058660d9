"""The words of errors for people.

The text of an error is `error.NAME` in the catalogue, in which `NAME` is made from its class. An
error with a cause has the words of its cause.
"""

import re

from engine.domain.errors import AppError, CausedError, InputFault, InvalidError
from engine.words import causes
from engine.words.catalogue import text, texts
from engine.words.causes import words_of

_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


def words_of_error(error: AppError) -> str:
    """Return why the app did not do what was requested, or empty if no more is known."""
    match error:
        case CausedError():
            return words_of(error.cause)
        case InvalidError():
            return "; ".join(map(words_of_fault, error.faults))
    key = f"error.{name_of(type(error))}"
    return text(key, **vars(error)) if key in texts() else ""


def words_of_fault(fault: InputFault | str) -> str:
    return causes.words_of_fault(fault if isinstance(fault, str) else fault.as_json())


def name_of(kind: type[AppError]) -> str:
    """Return the name of a class of errors in the catalogue, such as `unknown-order`."""
    return _CAPITAL.sub("-", kind.__name__.removesuffix("Error")).lower()
