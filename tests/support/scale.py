"""How large the large tests are: in `make test` enough to see what they look for, in `make soak` as large as can be."""

import os
from typing import Any

import pytest

NIGHTLY = os.environ.get("NIGHTLY") == "1"
"""Whether this is the nightly run, in which the largest sizes and longest outages have their time."""


def both_sizes(**sizes: tuple[object, object]) -> pytest.MarkDecorator:
    """Run a test twice, with the first value of each pair, and in `make soak` with the second.

    Seconds that are promised are measured only there, where nothing else uses the machine: with None no time is held
    against a limit.
    """
    small, full = zip(*sizes.values(), strict=True)
    runs = [
        pytest.param(*small, id="small"),
        pytest.param(*full, id="full", marks=pytest.mark.soak),
    ]
    return pytest.mark.parametrize(tuple(sizes), runs)


def in_soak(*values: object) -> list[Any]:
    """Values of a parameter with which a test runs in `make soak` alone."""
    return [pytest.param(value, marks=pytest.mark.soak) for value in values]
