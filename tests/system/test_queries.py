"""What the periodic work costs: only ranges of one partition, and nothing more when the store is full of history."""

import re
from collections import Counter
from urllib.parse import parse_qs, urlsplit

import pytest
from azure.core.pipeline.transport import AioHttpTransport

from engine.azure.clock import new_id, order_ids, utc_now
from engine.azure.connect import connect
from engine.azure.connections import Connections
from engine.azure.settings import Settings
from engine.concurrency import run_all
from engine.decisions.transitions import HistoryEntry, Transition
from engine.domain.keys import bucket_of, buckets
from engine.storage.agent_health import AgentHealth
from engine.storage.orders import columns_of_record, of_transition
from engine.storage.tables import Insert
from operations.api.requests import OrdersPage
from tests.support.apps import app as app_of
from tests.support.builders import (
    TIMEOUT,
    TOLERANCE,
    orders,
    scheduler,
    some,
    transition,
    under_way,
)
from tests.support.scale import both_sizes
from tests.support.stacks import running

RANGE = re.compile(r"^PartitionKey eq '[^']+' and RowKey ge '[^']+' and RowKey lt '[^']+'$")


class Recorder(AioHttpTransport):
    """Notes every request on its way to the real Azurite."""

    def __init__(self):
        super().__init__()
        self.requests = []

    async def send(self, request, **options):
        url = urlsplit(request.url)
        target = url.path.partition("/devstoreaccount1/")[2].partition("(")[0]
        self.requests.append(
            (request.method, target, parse_qs(url.query).get("$filter", [None])[0])
        )
        return await super().send(request, **options)

    def operations(self):
        return Counter((method, target) for method, target, _ in self.requests)

    def filters(self):
        return [query for _, _, query in self.requests if query]


@pytest.fixture(scope="module")
async def storage(tmp_path_factory):
    """A stack without hosts."""
    async with running(tmp_path_factory.mktemp("stack"), hosts=0) as (stack, _):
        yield Settings.model_validate(stack.app_environment())


@pytest.fixture(scope="module")
async def periodic(storage):
    """The periodic work of all roles, on a store that nobody else touches."""
    settings, recorder = storage, Recorder()
    parts = connect(settings, Connections(settings, transport=lambda: recorder))
    app = app_of(parts, buckets=settings.buckets)
    roles = app.engine.scheduler, app.engine.supervisor, app.operations.relay, app.operations.orders
    yield app, recorder, roles
    await parts.close()


async def run_once(roles):
    """One turn of everything that a timer or an operator's list does."""
    schedules, supervises, outbox, operates = roles
    await schedules.poll()
    recovered = await supervises.sweep()
    await outbox.relay()
    listed = await operates.list(OrdersPage())
    return recovered, listed.orders


def finished_order(order_id: str) -> Transition:
    """The rows of an order that was processed."""
    order = orders.processed(order_id=order_id)
    entry = HistoryEntry(at=utc_now(), actor="scheduler/s1", events=some("processed"))
    return Transition(before=None, after=order, entry=entry)


async def fill(store, count):
    """Record that many finished orders, many to a transaction."""
    table, new_id = store.table, order_ids(len(buckets(8)))
    await run_all(
        (
            table.submit(bucket_of(order_id), operations_of(order_id))
            for order_id in (new_id() for _ in range(count))
        ),
        at_most=400,
    )


def operations_of(order_id):
    return [
        Insert(w.key, columns_of_record(w.row)) for w in of_transition(finished_order(order_id))[1]
    ]


@pytest.mark.proves("SUP-2", "SCH-1")
@both_sizes(finished=(500, 5_000))
async def test_periodic_work_costs_the_same_with_a_store_full_of_finished_orders(
    periodic, finished
):
    """Poll, sweep, relay and list ask for key ranges only, and as many with thousands of finished orders as before."""
    app, recorder, roles = periodic
    await run_once(roles)  # creates the lease's blob
    recorder.requests.clear()
    assert await run_once(roles) == (0, [])
    empty, filters = recorder.operations(), recorder.filters()
    assert len(filters) == 8 * len(("poll", "sweep", "what waits", "relay", "list")) + len(
        ["health of the agents"]
    )
    assert [query for query in filters if not RANGE.match(query)] == []

    await fill(app.engine.store, finished)
    recorder.requests.clear()
    assert await run_once(roles) == (0, [])
    assert recorder.operations() == empty


async def test_the_figures_of_the_last_hour_cost_one_range(periodic):
    """However many minutes and processes there are."""
    app, recorder, _ = periodic
    recorder.requests.clear()
    assert (await app.operations.services.overview.last_hour()).minutes == []
    (query,) = recorder.filters()
    assert RANGE.match(query)


async def end(store, order_id):
    """Leave nothing to do for the order."""
    order = await store.load(order_id)
    entry = HistoryEntry(at=utc_now(), actor="t", events=some("processed"), change_id=new_id())
    await store.commit(transition(order, orders.processed(order), entry))


@pytest.mark.proves("SUP-2")
async def test_a_sweep_costs_as_much_as_there_is_to_recover(periodic):
    """With one order overdue it is loaded and written once, and what agents said is read once.

    Besides eight ranges of what agents do, eight of what is awaited, the lease, and the log of it.
    """
    app, recorder, (_, supervises, _, _) = periodic
    await supervises.sweep()
    order = orders.new()
    claimed = scheduler.claim(order, utc_now() - TIMEOUT - 2 * TOLERANCE)
    assert claimed
    await app.engine.store.commit(
        Transition(
            before=None,
            after=claimed.after,
            entry=HistoryEntry(at=utc_now(), actor="t", events=some("claimed")),
        )
    )
    report = AgentHealth(
        agent="payment", instance="1", at=utc_now(), begun=under_way(claimed.after)
    )
    await app.engine.agent_health.publish(report)
    recorder.requests.clear()
    assert await supervises.sweep() == 1
    assert recorder.operations() == {
        ("PUT", "leases/supervisor"): 1,
        ("GET", "orders"): 17,
        ("GET", "agents"): 1,
        ("POST", "$batch"): 2,
    }
    await end(app.engine.store, order.order_id)
