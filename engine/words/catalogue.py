"""The catalogue of words: a text for each key, in the language of this process.

The file of a language has one text for each key. A text names its values in braces, such as
`{step}`. A text that depends on a number has the forms `KEY.one` and `KEY.other`. The value `count`
selects the form.

The language `pseudo` is made from English: each letter has an accent, and each word is longer. It
shows texts that bypass the catalogue, and places that are too narrow for longer words.
"""

import json
import math
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

ENGLISH = "en"
PSEUDO = "pseudo"
"""The language that is made from English for tests."""

LOCALE = "page.locale"
"""The key of the language tag with which pages format numbers and times. Its text is not for
people."""

_FOLDER = Path(__file__).parent
_VALUE = re.compile(r"(\{\w+(?:!r)?\})")
_WORD = re.compile(r"[^\W\d_]+")
_ACCENTED = str.maketrans(
    "ABCDEFGHIJKLMNOPRSTUVWYZabcdefghijklmnoprstuvwyz",
    "ÀƁĆĐÉƑĜĤÎĴĶĻṀŃÖÞŔŠŢŨṼŴÝŽàƀćđéƒĝĥîĵķļḿńöþŕšţũṽŵýž",
)
_LONGER_BY = 0.3

_language = ENGLISH


def use(language: str) -> None:
    """Set the language of this process.

    Raises `ValueError` if there is no file for it.
    """
    global _language  # noqa: PLW0603 - one process speaks one language
    if language not in languages():
        raise ValueError(f"{language} is not a language: choose one of {', '.join(languages())}")
    _language = language


def languages() -> list[str]:
    return [*sorted(path.stem for path in _FOLDER.glob("*.json")), PSEUDO]


def texts() -> Mapping[str, str]:
    """Return the texts of the language of this process by key."""
    return _texts_of(_language)


def text(key: str, /, **values: object) -> str:
    """Return the text of this key with its values.

    A key that is missing in the language is taken from English. Raises `KeyError` if English lacks
    it too.
    """
    if "count" in values and f"{key}.other" in _texts_of(ENGLISH):
        key = f"{key}.{'one' if values['count'] == 1 else 'other'}"
    return texts()[key].format_map(values)


@cache
def _texts_of(language: str) -> Mapping[str, str]:
    if language == PSEUDO:
        english = _texts_of(ENGLISH)
        return {key: words if key == LOCALE else pseudo(words) for key, words in english.items()}
    read: dict[str, str] = json.loads((_FOLDER / f"{language}.json").read_text("utf-8"))
    return read if language == ENGLISH else {**_texts_of(ENGLISH), **read}


def pseudo(words: str) -> str:
    """Return an English text with accents and brackets, about a third longer. Values stay."""
    parts = _VALUE.split(words)
    longer = "".join(part if _VALUE.fullmatch(part) else _longer(part) for part in parts)
    return f"[{longer}]"


def _longer(words: str) -> str:
    """Give each letter an accent, and make each word about a third longer."""
    return _WORD.sub(
        lambda word: word[0] + "~" * math.ceil(len(word[0]) * _LONGER_BY), words
    ).translate(_ACCENTED)
