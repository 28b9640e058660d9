"""Two hosts that differ: one with other workflows and a clock that is ahead, beside one that has the true time."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.support.client import DONE, QUICK, claims_and_recoveries_alternate
from tests.support.inspection import orders_of, poisoned, until_processed
from tests.support.stacks import APP, FUNCTIONS, is_by, names, running

AHEAD = timedelta(seconds=1)
"""What app_ahead adds to the time."""
TIMEOUT = timedelta(seconds=4)
SETTINGS = QUICK | {
    "STEP_TIMEOUT_SECONDS": str(TIMEOUT.total_seconds()),
    "CLOCK_TOLERANCE_SECONDS": "2",
    "FAILURE_THRESHOLD": "1000",
    "UNKNOWN_NAME_MAX_DELIVERIES": "90",
    "AzureFunctionsJobHost__extensions__queues__visibilityTimeout": "00:00:01",
}
ROUNDS = 20
"""So often a coin is tossed that shows one side at last."""
OLD = names(
    *(
        "submission_record",
        "scheduler_order_ready",
        "scheduler_poll",
        "scheduler_inventory_responses",
        "scheduler_payment_responses",
    ),
    "supervisor_sweep",
)


@pytest.fixture(scope="module")
async def side_by_side(tmp_path_factory):
    """A new host that does all but sweep, and the old one, which schedules too, and is the only supervisor."""
    folder, new = tmp_path_factory.mktemp("stack"), names(*FUNCTIONS, but={"supervisor_sweep"})
    async with running(folder, app=APP, functions=new, settings=SETTINGS) as (stack, client):
        old = await stack.start_host(OLD, app=Path(__file__).parent / "app_ahead")
        yield stack, client, old


@pytest.mark.proves("FLT-9", "SUP-3")
@pytest.mark.soak
async def test_a_supervisor_whose_clock_is_ahead_takes_no_order_before_its_time_is_up(side_by_side):
    """As long as the clocks differ by less than the tolerance; and every order is processed, with one effect."""
    stack, client, old = side_by_side
    await client.fault("hang", "TEA-ROOIBOS")
    orders = []
    for _ in range(ROUNDS):
        orders += (fresh := [await client.place("TEA-ROOIBOS") for _ in range(3)])
        found = [await client.until(order_id, "Processing", failures=1) for order_id in fresh]
        if any(not is_by(old, claim) for order in found for claim, _ in turns(order)):
            break
    else:
        pytest.fail(
            f"in {ROUNDS} rounds of orders none was claimed by the clock that is right, and recovered by the other"
        )
    await client.fault("none", "TEA-ROOIBOS")
    await until_processed(client, orders)

    def true_time(entry):
        return datetime.fromisoformat(entry["at"]) - (AHEAD if is_by(old, entry) else timedelta())

    for order in await orders_of(client, orders):
        assert claims_and_recoveries_alternate(order), order["history"]
        for claim, recovery in turns(order):
            assert true_time(recovery) >= true_time(claim) + TIMEOUT
    assert {order_id: await client.actions(order_id) for order_id in orders} == dict.fromkeys(
        orders, DONE
    )
    assert await poisoned(stack) == []


def turns(order):
    """Each recovery with the claim before it; an order may be claimed again without one, if it was put back."""
    claim = None
    for entry in order["history"]:
        if entry["event"] == "claimed":
            claim = entry
        if entry["event"] == "recovered":
            yield claim, entry
