"""Runs two programs alternately that print figures as a JSON line, and compares them as ratios.

Machines are noisy, and their speed varies, so only runs beside each other can be compared.
"""

import json
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from bench.phases import Result


class NoFiguresError(Exception):
    """A program has failed, or its last line is not a JSON object."""


def alternating(
    own: Sequence[str], other: str, pairs: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Run both programs this many times, alternating which one comes first.

    `other` is a shell command. Returns the ratio of own to other for each figure: the median of the pairs, the least
    and the greatest. Also returns the medians of both. Raises `NoFiguresError`.
    """
    commands = {"own": own, "other": ["sh", "-c", other]}
    found: dict[str, list[Mapping[str, float]]] = {name: [] for name in commands}
    for number in range(pairs):
        for name in sorted(commands, reverse=number % 2 == 0):
            say(f"pair {number + 1} of {pairs}: {name}")
            found[name].append(dict(_numbers(_figures(commands[name]))))
    figures = set.intersection(*(set(run) for runs in found.values() for run in runs))
    return {
        "beside": other,
        "pairs": pairs,
        "figures": {name: _compared(name, **found) for name in sorted(figures)},
    }


def _figures(command: Sequence[str]) -> Result:
    # A person's own command.
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
    lines = ran.stdout.strip().splitlines()
    try:
        figures = json.loads(lines[-1])
    except (IndexError, ValueError):
        figures = None
    if ran.returncode or not isinstance(figures, dict):
        what = f"exit code {ran.returncode}, last line {lines[-1:]}"
        raise NoFiguresError(f"{shlex.join(command)} printed no figures: {what}")
    return figures


def _numbers(figures: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield each number, with the names of its enclosing objects."""
    for name, value in figures.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{prefix}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{prefix}{name}", value


def _compared(
    name: str, own: Sequence[Mapping[str, float]], other: Sequence[Mapping[str, float]]
) -> dict[str, float | None]:
    pairs = [(ours[name], theirs[name]) for ours, theirs in zip(own, other, strict=True)]
    ratios = [ours / theirs for ours, theirs in pairs if theirs]
    return {
        "own": median(ours for ours, _ in pairs),
        "other": median(theirs for _, theirs in pairs),
        "ratio": round(median(ratios), 3) if ratios else None,
        "least": round(min(ratios), 3) if ratios else None,
        "most": round(max(ratios), 3) if ratios else None,
    }
