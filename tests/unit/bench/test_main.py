"""The line of the benchmark."""

import inspect
import json
import re
from collections import Counter
from fnmatch import fnmatch
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest
from click.testing import CliRunner

from bench import __main__ as bench
from bench import phases
from bench.concurrency import chosen
from bench.driver import Final, RemoteLedger
from bench.legend import LEGEND
from bench.phases import per_order
from bench.prices import Line, of_an_order

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


def test_as_many_calls_share_an_instance_as_a_slow_core_does_in_half_a_second():
    """Twice what was measured, since Azure's core may be slower; with more at a time each would wait for the others."""
    lines = [
        {"at_once": 16, "cpu_ms": 10},
        {"at_once": 25, "cpu_ms": 10},
        {"at_once": 26, "cpu_ms": 10},
    ]
    assert chosen(lines) == 25


@pytest.mark.parametrize(
    ("units", "used", "dollars"),
    [
        (10_000_000, 0, 0),
        (13_000_000, 0, 0),
        (14_000_000, 0, 0.80),
        (10_000_000, 13_000_000, 8),
        (10_000_000, 5_000_000, 1.60),
    ],
)
def test_a_line_costs_what_is_not_free_any_more(units, used, dollars):
    """Thirteen million operations of Service Bus are included in a month, and each million more costs 80 cents."""
    line = Line("Service Bus", "", "service_bus_operation", units, used)
    assert line.dollars == pytest.approx(dollars)


def test_what_an_order_costs_follows_from_what_was_counted():
    """Twice as many table transactions cost twice as much of tables, and of the log of who made them."""
    counted = {
        "service_bus_messages": 9,
        "service_bus_received": 9,
        "host_service_bus_settlements": 9,
        "table_transactions": 20,
        "client_cpu_ms": 30,
    }
    more = of_an_order(counted | {"table_transactions": 40}, "", "client_cpu_ms")
    cost = of_an_order(counted, "", "client_cpu_ms")
    for name, dollars in cost.items():
        more_of_tables = 20 * (0.00036 / 10_000 + 2.30 / 1_000_000)
        assert more[name] - dollars == pytest.approx(more_of_tables, rel=0.01)
    assert cost["usd_one_by_one"] - cost["usd_at_once"] == pytest.approx(
        (16 - 0.030 - 6 * 0.00525) * 2 * 0.000026, rel=0.01
    )


def test_every_figure_is_explained():
    """A line of fifty names says nothing to whoever has not written them."""
    names = [name for key in LEGEND for name in key.split(", ")]
    shown = CliRunner().invoke(bench.main, ["--legend"]).stdout
    figures = {*per_order(Counter(), 1, 0), *bench.FIGURES, *figures_of(phases)}
    assert [figure for figure in figures if not any(fnmatch(figure, name) for name in names)] == []
    assert all(name in shown for name in names)


def figures_of(module):
    """The names in the results that its functions return."""
    return re.findall(r'^        "(\w+)":', inspect.getsource(module), re.MULTILINE)


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
