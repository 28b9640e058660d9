"""What the documents say of costs is what the counters say."""

from collections import Counter

import pytest

from bench.cost import Cost
from bench.counted import RATE, SECONDS, columns, counts_of, measured
from bench.prices import Deployed
from bench.simulation import workflow_of
from shop.business import SHOP
from testkit.memory import MemoryTable, in_memory
from tests.support.apps import app
from tests.support.builders import NOW

PAIRS = {"shop": 1}
"""Of steps that run at the same time."""
LOADED_BESIDES = 0.1
"""Orders at a rate may meet, or be found by a poll before their wake-up: the share that takes a load more."""


@pytest.mark.parametrize(("variant", "shape"), columns())
def test_an_order_of_the_page_costs_what_the_running_system_is_held_to(variant, shape):
    """The same limits are those of `tests/system/test_cost.py`, where each order comes by itself."""
    figures = measured(variant, shape)
    steps, orders = len(workflow_of(variant).steps), figures["samples"]
    assert orders == RATE * SECONDS
    cost = Cost(steps=steps, process_per_function=shape == "each", pairs=PAIRS.get(variant, 0))
    limits = dict(cost.limits(orders, SECONDS))
    least, most = limits["table_loads"]
    limits["table_loads"] = least, most + LOADED_BESIDES * orders
    counted = {name: round(figures[f"latency_{name}"] * orders) for name in limits}
    assert {
        name: count
        for name, count in counted.items()
        if not limits[name][0] <= count <= limits[name][1]
    } == {}


@pytest.mark.parametrize(("variant", "shape"), columns())
def test_the_parts_of_the_requests_to_tables_are_all_of_them(variant, shape):
    """Each is rounded."""
    total, *parts = list(counts_of(measured(variant, shape)).values())[:6]
    assert total == pytest.approx(sum(parts), abs=0.01)


async def test_a_timer_with_nothing_to_do_makes_as_many_requests_as_the_page_counts(monkeypatch):
    """So the idle day is counted too."""
    counted = Counter()
    for method in ("submit", "submit_separately", "get", "rows"):
        monkeypatch.setattr(MemoryTable, method, counting(counted, getattr(MemoryTable, method)))
    process = app(in_memory(clock=lambda: NOW), workflows=SHOP.workflows)
    engine, operations = process.engine, process.operations
    deployed = Deployed()
    assert len(engine.store.buckets) == deployed.buckets
    found = {}
    for timer, run in {
        "sweeps": engine.supervisor.sweep,
        "relays": operations.relay.relay,
        "polls": engine.scheduler.poll,
        "watches": operations.stall_detector.check,
        "notifies": operations.notifier.send,
    }.items():
        counted.clear()
        await run()
        found[timer] = counted.total()
    assert found == deployed.requests_of_run


def counting(counted, method):
    """The method, each call of which is counted."""

    async def called(*arguments, **options):
        counted[method.__name__] += 1
        return await method(*arguments, **options)

    return called
