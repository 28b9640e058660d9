"""Texts from services, errors and senders, made fit to be shown or kept."""

import re

PARTICULAR = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d\S*)?"  # a day, with its time
    r"|(?<![\w.:])\d{1,2}:\d\d(?::\d\d[.\d]*)?Z?"  # a time
    # an id: long, with digits, and not the name of a host
    r"|(?<![\w.-])(?=(?:[\w-]*\d){3})[\w-]{12,}(?![\w-]|\.\w)"
    r"|(?<![\w.:])\d{5,}"  # a count, or a short id
)


def plain(text: str, most: int) -> str:
    """Return the text on one line, cut to `most` characters, with spaces for unprintable ones."""
    if not text.isprintable():
        text = "".join(character if character.isprintable() else " " for character in text)
    return text.strip()[:most]


def without_particulars(text: str) -> str:
    """Return the text without ids and times, so that the same fault has the same text each time."""
    return PARTICULAR.sub("…", text)
