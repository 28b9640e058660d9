"""The line of the benchmark."""

import json
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest
from click.testing import CliRunner

from bench import __main__ as bench
from bench import phases
from bench.driver import Final, RemoteLedger

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


@pytest.mark.parametrize(
    ("others", "done", "why"),
    [
        (0.2, 10, []),
        (1.7, 10, ["the machine was busy (others took 1.7 cores)"]),
        (0.2, 3, ["7 orders were unfinished when the time was up (--max-s)"]),
    ],
)
def test_a_throughput_that_says_nothing_is_not_valid(others, done, why):
    """On a busy machine it is the throughput of the others."""
    result = {"cores": {"others_on_machine": others}, "orders": 10, "done": done}
    assert list(bench._why_not_valid(result)) == why


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (["Processed"] * 3, {"lost": 0, "unfinished": 0}),
        (["Processed", "Processed", None], {"lost": 1}),
        (["Processed", "Error", "Processing"], {"lost": 0, "unfinished": 2}),
    ],
)
async def test_a_crash_tells_what_is_lost_and_what_is_unfinished(monkeypatch, states, expected):
    """Of a lost order nothing is recorded; with one that is not processed nobody knows how long it takes to recover."""
    monkeypatch.setattr(phases, "PAUSE_SECONDS", 0)
    result = await phases.crash(driver_of(states), len(states), 1)
    assert {name: result[name] for name in expected} == expected
    assert (result["recovery_s"] is None) == (set(states) != {"Processed"})


def driver_of(states):
    """A driver whose orders end in these states; None for one without a row."""
    order_ids = [f"order-{number}" for number in range(len(states))]
    final = {
        order_id: Final(state=state, failures=0, updated_at=0.0)
        for order_id, state in zip(order_ids, states, strict=True)
        if state
    }
    return SimpleNamespace(
        new_orders=lambda _: order_ids,
        submit_all=AsyncMock(),
        wait_for=AsyncMock(return_value={}),
        final_states=AsyncMock(return_value=final),
        remote_ledger=AsyncMock(return_value=RemoteLedger(calls=0, effects=[])),
        stack=AsyncMock(),
    )
