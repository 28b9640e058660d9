"""The line of the benchmark."""

import json

import pytest
from click.testing import CliRunner

from bench import __main__ as bench

FIXED = ("orders_per_s", "p50_ms", "table_entities", "lost", "recovery_s")


def line_of(monkeypatch, *arguments):
    """What the benchmark prints when each shape is measured at once."""

    async def measure(_, shape):
        return dict.fromkeys(FIXED, shape)

    monkeypatch.setattr(bench, "_measure", measure)
    ran = CliRunner().invoke(bench.main, arguments, catch_exceptions=False)
    (line,) = ran.stdout.splitlines()
    return json.loads(line)


def test_one_line_has_both_shapes(monkeypatch):
    """The figures of one process stand at the top, for readers; the other shape is nested."""
    line = line_of(monkeypatch)
    assert {name: line[name] for name in FIXED} == dict.fromkeys(FIXED, "one")
    assert line["each"] == dict.fromkeys(FIXED, "each")


@pytest.mark.parametrize(
    ("shape", "top", "nested"), [("one", "one", None), ("each", None, {"lost": "each"})]
)
def test_a_shape_alone_stands_where_it_stands_beside_the_other(monkeypatch, shape, top, nested):
    """So nobody takes the one for the other; what was not measured is null."""
    line = line_of(monkeypatch, "--shape", shape)
    assert line["lost"] == top
    assert (line["each"] and {"lost": line["each"]["lost"]}) == nested
