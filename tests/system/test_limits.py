"""What hosts keep to together: how much a service takes, and who goes first; and who notices when nobody works."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from engine.azure.connections import Connections
from engine.azure.settings import Settings
from engine.azure.tables.transactions import TableTransactions
from engine.storage.alert_log import AlertLog
from functions_alone.tests.support.waiting import eventually
from scheduler.service import WAKE_UP_TIME
from tests.support.client import QUICK
from tests.support.inspection import orders_of, states_of, until_processed, until_recorded
from tests.support.stacks import APP, FUNCTIONS, names, running
from tests.support.submitting import submit_new

IN_FLIGHT = 2
HOSTS = 2
NEEDED = ("inventory", "payment")
"""The capabilities for which an order of the shop waits first: both steps may start."""
SETTINGS = QUICK | {
    "STEP_TIMEOUT_SECONDS": "30",
    "REMOTE_CALL_TIMEOUT_SECONDS": "10",
    "CALLS_IN_FLIGHT": f'{{"inventory": {IN_FLIGHT}, "payment": 1}}',
    "STALL_DETECTOR_SCHEDULE": "* * * * * *",
    "PENDING_ALERT_SECONDS": "2",
    "SWEEP_ALERT_SECONDS": "2",
}
WITHOUT_WAKE_UPS = names(*FUNCTIONS, but={"scheduler_order_ready"})
"""Orders are found by polls alone, which look at all that wait: a wake-up brings the one that it names."""


@pytest.fixture(scope="module")
async def idle(tmp_path_factory):
    """A stack without hosts: each test starts what it needs."""
    folder = tmp_path_factory.mktemp("stack")
    async with running(folder, hosts=0, app=APP, functions=WITHOUT_WAKE_UPS, settings=SETTINGS) as (
        stack,
        client,
    ):
        yield stack, client


@pytest.fixture
async def connections(idle):
    """To the tables of the stack."""
    stack, _ = idle
    connections = Connections(Settings.model_validate(stack.app_environment()))
    yield connections
    await connections.close()


@pytest.fixture
async def start(idle):
    """Start hosts for as long as the test runs."""
    stack, _ = idle

    async def some(count, functions):
        await asyncio.gather(*(stack.start_host(functions) for _ in range(count)))

    yield some
    while stack.hosts:
        await stack.stop_host()


def at(entry):
    return datetime.fromisoformat(entry["at"])


async def first_claims(client, order_ids):
    """When each order was claimed first."""
    orders = await orders_of(client, order_ids)
    return {
        o["orderId"]: next(at(entry) for entry in o["history"] if entry["event"] == "claimed")
        for o in orders
    }


async def effects(client, service, order_ids):
    """When things happened at the service for these orders, in this order."""
    _, ledger = await client.request("GET", f"/simulator/{service}/ledger")
    found = [
        effect
        for effect in ledger["effects"]
        if effect["idempotencyKey"].partition(":")[0] in order_ids
    ]
    return sorted(map(at, found))


@pytest.mark.proves("SCH-11", "WRK-2")
@pytest.mark.soak
@pytest.mark.parametrize("orders", [(100, 25)])
async def test_high_priority_goes_first(idle, start, orders):
    """At an agent that takes its time, for all hosts together; urgent orders overtake, and leave some turns."""
    (stack, client), (normal, high) = idle, orders
    await start(1, "submission_record")
    low = await submit_new(stack, normal, workflow="payment-only")
    await until_recorded(client, low)
    urgent = await submit_new(stack, high, workflow="payment-only", priority="high")
    await until_recorded(client, urgent)
    recorded = max(row["UpdatedAt"] for row in (await states_of(client, urgent)).values())

    async def polls_find_all():
        return datetime.now(UTC) > recorded + WAKE_UP_TIME

    await eventually(polls_find_all)
    await start(HOSTS, WITHOUT_WAKE_UPS)
    await client.fault("slow", latencyMs=300, service="payment")
    await until_processed(client, [*low, *urgent])
    await client.fault("none", service="payment")

    claimed = await first_claims(client, [*low, *urgent])
    between = [
        order_id for order_id in low if claimed[order_id] < max(claimed[other] for other in urgent)
    ]
    assert (
        high / 10 <= len(between) <= high
    )  # each fifth turn, and more where hosts were after the same urgent order


@pytest.mark.proves("AGT-10", "WRK-2")
@pytest.mark.soak
async def test_no_host_has_more_calls_in_flight_than_its_agent_may(idle, start):
    """A service that takes half a second for each call never works on more at a time."""
    stack, client = idle
    await start(1, WITHOUT_WAKE_UPS)
    await client.fault("slow", latencyMs=500, service="inventory")
    placed = await submit_new(stack, 100, workflow="in-sequence")
    await until_processed(client, placed)
    await client.fault("none", service="inventory")
    called = await effects(client, "inventory", set(placed))
    spans = [last - first for first, last in zip(called, called[IN_FLIGHT:], strict=False)]
    assert len(spans) == len(placed) - IN_FLIGHT
    assert min(spans) >= timedelta(seconds=0.5)


@pytest.mark.proves("SUP-7")
@pytest.mark.soak
async def test_an_alert_comes_while_scheduler_and_supervisor_are_switched_off(
    idle, connections, start
):
    """One for each agent for which the order waits, and one for the sweep that stays away."""
    stack, _ = idle
    await start(1, names("submission_record", "alerts_relay", "alerts_record", "alerts_stalls"))
    (order_id,) = await submit_new(stack, 1)
    log = AlertLog(TableTransactions(partial(connections.table, "alerts")))

    async def alerts_are_recorded():
        alerts = [alert.event for alert in await log.newest(50)]
        stalled = {
            event.subject: event.data["orders"]
            for event in alerts
            if event.type == "OrderProcessing.Stalled"
        }
        alerts_are_recorded.__name__ = (
            f"{order_id} and the supervisor stand still; alerts are for {stalled}"
        )
        waits = {f"orders-waiting/{capability}": [order_id] for capability in NEEDED}
        return stalled == {"supervisor": []} | waits

    await eventually(alerts_are_recorded)
