"""What the command line shows: tables, text, JSON. What others wrote is shown, and never obeyed."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click


def printable(value: object) -> str:
    """Return the text with everything escaped that a terminal could obey, or that could make it look otherwise."""
    text = "" if value is None else str(value)
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table, its columns as wide as what stands in them."""
    lines = [list(header), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(header))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def as_json(answer: object) -> str:
    """Return JSON, in which everything that is not ASCII is escaped."""
    return json.dumps(answer, indent=2)


def show(draw: Callable[[], tuple[Any, str]], *, in_json: bool, every: float | None) -> None:
    """Show what `draw` returns, as JSON or as text; `every` so many seconds anew, until Ctrl-C."""
    while True:
        answer, text = draw()
        if every is not None:
            click.clear()  # in a terminal only
        click.echo(as_json(answer) if in_json else text)
        if every is None:
            return
        time.sleep(every)
