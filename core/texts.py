"""Texts that others wrote, made fit to be shown or kept: services, errors, senders may say anything."""

import re

PARTICULAR = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d\S*)?"  # a day, with its time
    r"|(?<![\w.:])\d{1,2}:\d\d(?::\d\d[.\d]*)?Z?"  # a time
    r"|(?<![\w.-])(?=(?:[\w-]*\d){3})[\w-]{12,}(?![\w-]|\.\w)"  # an id: long, with digits, and no name of a host
    r"|(?<![\w.:])\d{5,}"  # a count, or a short id
)


def plain(text: str, most: int) -> str:
    """Return the text on one line, without what does not print, and cut to so many characters."""
    return "".join(character if character.isprintable() else " " for character in text).strip()[
        :most
    ]


def without_particulars(text: str) -> str:
    """Return the text without ids and times, so that it is the same whenever the same thing happens."""
    return PARTICULAR.sub("…", text)
