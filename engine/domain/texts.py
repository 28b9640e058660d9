"""Texts from services, errors and senders, prepared to be shown, kept or compared."""

import re
import unicodedata
from collections.abc import Mapping

PARTICULAR = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d\S*)?"  # a day, with its time
    r"|(?<![\w.:])\d{1,2}:\d\d(?::\d\d[.\d]*)?Z?"  # a time
    # an id: long, with digits, and not the name of a host
    r"|(?<![\w.-])(?=(?:[\w-]*\d){3})[\w-]{12,}(?![\w-]|\.\w)"
    r"|(?<![\w.:])\d{5,}"  # a count, or a short id
)


def plain(text: str, most: int) -> str:
    """Return the text on one line, cut to `most` characters.

    Spaces replace unprintable characters.
    """
    if not text.isprintable():
        text = "".join(character if character.isprintable() else " " for character in text)
    return text.strip()[:most]


def without_particulars(text: str) -> str:
    """Return the text without ids and times, so that the same fault always has the same text."""
    return PARTICULAR.sub("…", text)


SAME: Mapping[int, int | str | None] = {
    **{wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)},
    **dict.fromkeys((0x3002, 0xFF61), "."),
    **dict.fromkeys((0xAD, 0x2060, 0xFEFF, *range(0x200B, 0x2010))),
}
"""East Asian forms of ASCII and of the dots of a domain, and characters without a width."""
ENCODED_LABEL = re.compile(r"(?<![\w-])xn--([a-z0-9-]{1,59})")
"""A part of a domain in its DNS form (RFC 5890)."""


def same_to_people(text: str) -> str:
    """Return the one form of all texts that name the same person, such as an e-mail address.

    Width, case, Unicode form, blanks around the text and the form of a domain make no difference
    (RFC 8265, 3.3). Apply this function to both sides of a comparison, or to the whole text of a
    search.
    """
    narrow = unicodedata.normalize("NFC", text.translate(SAME)).casefold()
    decoded = ENCODED_LABEL.sub(_decoded, narrow)
    return unicodedata.normalize("NFC", decoded.casefold()).strip()


def _decoded(label: re.Match[str]) -> str:
    """Return a part of a domain as people read it. An invalid part stays unchanged."""
    try:
        return label[1].encode().decode("punycode")
    except UnicodeError:
        return label[0]
