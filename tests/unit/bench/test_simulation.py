"""The model of an order's cost agrees with counts of the running stack, and finds what fills up."""

import json

import pytest

from bench.simulated import Limits, Setup
from bench.simulation import Simulation, workflow_of
from development.servicebus_config import ROOT

RECORDED = [
    json.loads(path.read_text()) for path in sorted((ROOT / "tools/bench/measured").glob("*.json"))
]
"""Lines of `make bench`; docs/operations/cost.md says with which commands they were made."""
COMPARED = (
    "table_transactions",
    "table_writes",
    "table_entities",
    "table_agenda_queries",
    "table_look_queries",
    "looks",
    "service_bus_messages",
    "service_bus_received",
    "storage_queue_operations",
    "remote_calls",
)
"""What the model of `tools/bench/simulation.py` says of an order."""

WITHIN = 0.1
RATE, SECONDS = 4.0, 30.0
UNLIMITED = Limits(
    bus_credits=1e9, account_requests=1e9, partition_entities=1e9, queue_messages=1e9
)


def counts_of(line, per_function):
    """What an order cost at a fixed rate, with one process or with one for each function, and how many were counted."""
    figures = line["each"] if per_function else line
    return {name: figures[f"latency_{name}"] for name in COMPARED} | {"orders": figures["samples"]}


def simulated(variant="shop", **changes):
    """A run of the model."""
    return Simulation(
        Setup(workflow=workflow_of(variant), **({"rate": RATE, "seconds": SECONDS} | changes))
    ).run()


@pytest.mark.parametrize(
    "per_function", [False, True], ids=["one process", "a process for each function"]
)
@pytest.mark.parametrize("line", RECORDED, ids=lambda line: line["variant"])
def test_the_model_agrees_with_what_was_counted(line, per_function):
    """Requests to tables, rows, messages and looks for each order, within a tenth."""
    counted = counts_of(line, per_function)
    found = simulated(line["variant"], process_per_function=per_function).per_order()
    assert counted["orders"] == RATE * SECONDS
    assert {name: found[name] for name in COMPARED} == pytest.approx(
        {name: counted[name] for name in COMPARED}, rel=WITHIN
    )


@pytest.mark.parametrize(
    ("full", "changes"),
    [
        ("bus", {"rate": 80.0, "seconds": 5.0}),
        (
            "partition",
            {
                "rate": 80.0,
                "seconds": 5.0,
                "buckets": 1,
                "limits": Limits(bus_credits=1e9, partition_entities=1_000),
            },
        ),
        ("table account", {"limits": Limits(account_requests=20)}),
        ("submission queue", {"limits": Limits(queue_messages=5)}),
    ],
)
def test_what_is_full_first_is_found_and_holds_the_orders_up(full, changes):
    """More is asked of it than it has, or than of any other part; so orders take longer."""
    found, unlimited = simulated(**changes), simulated(**changes | {"limits": UNLIMITED})
    shares = found.shares()
    assert max(shares, key=shares.get) == full
    assert shares[full] > 1
    assert max(found.took) > 2 * max(unlimited.took)
