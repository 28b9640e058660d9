"""The model of an order's cost agrees with counts of the running stack, and finds what fills up."""

import json

import pytest

from bench.simulated import Limits, Setup
from bench.simulation import Simulation, workflow_of
from development.servicebus_config import ROOT
from tests.support.bench_lines import COMPARED, WITHIN, counts_of

RECORDED = [
    json.loads(path.read_text()) for path in sorted((ROOT / "tools/bench/measured").glob("*.json"))
]
"""Lines of `make bench`; docs/scale.md says with which commands they were made."""
LISTS_RECORDED = 1
"""What was recorded read one list of what is due: no order could wait for an answer yet."""
RATE, SECONDS = 4.0, 30.0
UNLIMITED = Limits(
    bus_credits=1e9, account_requests=1e9, partition_entities=1e9, queue_messages=1e9
)


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
    found = simulated(
        line["variant"], process_per_function=per_function, lists_due=LISTS_RECORDED
    ).per_order()
    assert counted["orders"] == RATE * SECONDS
    assert {name: found[name] for name in COMPARED} == pytest.approx(
        {name: counted[name] for name in COMPARED}, rel=WITHIN
    )


def test_what_waits_for_an_answer_costs_a_list_more():
    """One query more of each bucket in each sweep and each watch."""

    def queries(lists):
        return simulated(lists_due=lists).per_order()["table_agenda_queries"]

    assert simulated().per_order()["table_agenda_queries"] == queries(2)
    assert 1.2 < queries(2) - queries(1) < 1.8  # 8 buckets, 4 orders/s, every 2 s and 5 s


def test_both_shapes_of_both_kinds_of_workflow_were_counted():
    """Steps one after the other, and side by side."""
    assert {line["variant"] for line in RECORDED} == {"3-step", "shop"}


def test_all_orders_end_while_nothing_is_full():
    """Four orders a second ask for little of anything."""
    found = simulated()
    assert len(found.took) == RATE * SECONDS
    assert max(found.shares().values()) < 0.1


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


def test_looks_grow_with_processes_and_with_buckets():
    """Twice as many processes look twice as often; twice as many buckets double a look's cost."""
    looks = {
        (instances, buckets): simulated(
            rate=40.0, seconds=10.0, process_per_function=True, instances=instances, buckets=buckets
        ).per_order()
        for instances, buckets in [(1, 8), (2, 8), (2, 16)]
    }
    assert looks[2, 8]["looks"] > 1.5 * looks[1, 8]["looks"]
    assert looks[2, 16]["table_look_queries"] == pytest.approx(
        17 / 9 * looks[2, 8]["table_look_queries"], rel=0.1
    )
