"""The command line's output: tables, text and JSON, with control characters escaped."""

import re
import shutil
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

import click
import simplejson

from engine.words.catalogue import text
from operations.cli.client import BrokenError, UnreachableError

IN_UTC = "operators.in_utc"
"""The key in a command's context that is set if times are shown in UTC."""

COLUMNS = 100
"""The width of tables if the output is not a terminal and `COLUMNS` is not set."""

GAP = "  "
NARROWEST = 30
"""The narrowest column of free text. With less space, the text is placed below its row."""

INDENT = "    "
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
CLOCK = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?) UTC")
"""A time in a sentence of the API."""

TIME_FORM = "%Y-%m-%d %H:%M:%S"


class Verbatim(str):
    """A text whose times are left unchanged, because a user may have to enter it exactly."""

    __slots__ = ()


def verbatim(value: object) -> Verbatim:
    """Return the value as text whose times are left unchanged. None becomes an empty text."""
    return Verbatim("" if value is None else value)


def printable(value: object) -> str:
    """Return the text with all unprintable characters escaped."""
    shown = "" if value is None else str(value)
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in shown
    )


def zone() -> tzinfo | None:
    """Return the zone in which times are shown and read. None means the zone of this machine."""
    context = click.get_current_context(silent=True)
    return UTC if context is None or context.meta.get(IN_UTC, True) else None


def in_zone(value: object) -> str:
    """Return the printable text, with the API's times in the zone in which times are shown."""
    shown = TIME.sub(_short, printable(value))
    return shown if zone() else CLOCK.sub(_local, shown)


def _short(found: re.Match[str]) -> str:
    """Return a time, without its date if it is today. A `Z` marks UTC."""
    try:
        local = datetime.fromisoformat(found[0]).astimezone(zone())
    except (ValueError, OverflowError):
        # The text may come from others, and contain digits that are not a time.
        return found[0]
    form = "%H:%M:%S" if local.date() == datetime.now(local.tzinfo).date() else TIME_FORM
    return local.strftime(form) + ("Z" if zone() else "")


def _local(found: re.Match[str]) -> str:
    try:
        at = datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
        return at.astimezone().strftime(TIME_FORM)
    except (ValueError, OverflowError):
        return found[0]


def table(header: Sequence[str], rows: Iterable[Sequence[object]], *, free: int = 1) -> str:
    """Return a table that fits into the terminal, without empty columns.

    The last `free` columns are free text. The first of these that does not fit is wrapped. If even
    that needs too much space, it is placed below its row, together with the columns after it.
    """
    lines = [list(map(_cell, row)) for row in rows]
    used = [
        number
        for number in range(len(header))
        if number == 0 or not lines or any(line[number] for line in lines)
    ]
    free = sum(number >= len(header) - free for number in used)
    names, *lines = ([line[number] for number in used] for line in [list(header), *lines])
    columns = shutil.get_terminal_size((COLUMNS, 0)).columns
    widths = _widths(
        [max(map(len, column)) for column in zip(names, *lines, strict=True)], free, columns
    )
    drawn = [*_row(names, widths)]
    for line in lines:
        drawn += _row(line, widths)
        drawn += _below(names[len(widths) :], line[len(widths) :], columns)
    return "\n".join(line.rstrip() for line in drawn)


def headers(*names: str) -> tuple[str, ...]:
    return tuple(text(f"cli.header.{name}") for name in names)


def _cell(value: object) -> str:
    return printable(value) if isinstance(value, Verbatim) else in_zone(value)


def _widths(natural: Sequence[int], free: int, columns: int) -> Sequence[int]:
    """Return the widths of the columns that are placed side by side."""
    for count in range(len(natural), len(natural) - free, -1):
        *fixed, last = natural[:count]
        space = columns - sum(width + len(GAP) for width in fixed)
        if space >= min(last, NARROWEST):
            return [*fixed, min(last, space)]
    return natural[: len(natural) - free]


def _row(line: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """Yield the lines of a row. Its last column may have several lines."""
    *fixed, last = line[: len(widths)]
    for part in _wrapped(last, widths[-1]):
        yield GAP.join(map(str.ljust, [*fixed, part], widths))
        fixed = [""] * len(fixed)


def _below(names: Sequence[str], texts: Sequence[str], columns: int) -> Iterator[str]:
    """Yield the lines below a row: each of the other columns with its name."""
    for name, shown in zip(names, texts, strict=True):
        if shown:
            parts = _wrapped(f"{name.lower()}: {shown}", columns - len(INDENT))
            yield from (f"{INDENT}{part}" for part in parts)


def _wrapped(shown: str, width: int) -> Sequence[str]:
    return textwrap.wrap(shown, max(width, 1), break_on_hyphens=False) or [""]


def as_json(answer: object) -> str:
    return simplejson.dumps(answer, indent=2)


def show(draw: Callable[[], tuple[Any, str]], *, in_json: bool, every: float | None) -> None:
    """Print the JSON or the text that `draw` returns. Repeat this every `every` seconds, if given.

    With repetition, wait while the app is unavailable or fails. Otherwise raises `ApiError`.
    """
    if every is None:
        click.echo(_drawn(draw, in_json=in_json))
        return
    while True:
        try:
            shown = _drawn(draw, in_json=in_json)
        except (UnreachableError, BrokenError) as away:
            click.echo(text("cli.another-try", why=printable(away), seconds=f"{every:g}"), err=True)
        else:
            click.clear()  # in a terminal only
            click.echo(shown)
        time.sleep(every)


def _drawn(draw: Callable[[], tuple[Any, str]], *, in_json: bool) -> str:
    answer, shown = draw()
    return as_json(answer) if in_json else shown
