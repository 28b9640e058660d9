"""The command line's output: tables, text and JSON, with control characters escaped."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click


def printable(value: object) -> str:
    """Return the text with all characters escaped that are not printable."""
    text = "" if value is None else str(value)
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table whose columns are as wide as their widest cell."""
    lines = [list(header), *(list(map(printable, row)) for row in rows)]
    columns = list(zip(*lines, strict=True))
    widths = [max(map(len, column)) for column in columns]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def as_json(answer: object) -> str:
    """Return indented JSON in ASCII."""
    return json.dumps(answer, indent=2)


def show(draw: Callable[[], tuple[Any, str]], *, in_json: bool, every: float | None) -> None:
    """Print the JSON or the text that `draw` returns; repeat it `every` seconds, if given."""
    while True:
        answer, text = draw()
        if every is not None:
            click.clear()  # in a terminal only
        click.echo(as_json(answer) if in_json else text)
        if every is None:
            return
        time.sleep(every)
