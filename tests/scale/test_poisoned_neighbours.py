"""Operators hear of an order with which something is wrong; every other beside it ends in time.

Beside it means: in the same bucket, lane, batch of messages, and page. Group commits are in the
contract of the state store.
"""

from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from unittest.mock import patch

import pytest

import engine.storage.bucket_reader
from engine.alerts.conditions import MAX_ORDERS
from engine.decisions.operator_actions import BY_NAME
from engine.decisions.transitions import HistoryEntry
from engine.domain.errors import ConflictError, InvalidError, QueueRefusedError, UnavailableError
from engine.domain.keys import bucket_of, history_key
from engine.storage.orders import columns_of_record
from engine.storage.tables import Insert
from operations.api.requests import OperatorRequest
from scheduler.admission.admission import REFRESH_INTERVAL
from tests.support.builders import NOW, seconds, some
from tests.support.neighbourhood import LASTS, street
from tests.support.scale import NIGHTLY

SMALL = {
    "engine.storage.bucket_reader.PAGE": 8,
    "engine.storage.bucket_reader.LONG_PAGE": 10,
    "supervisor.service.PAGE": 8,
    "operations.alerts.relay.PAGE": 8,
    "tests.support.neighbourhood.BATCH": 8,
    "scheduler.admission.adaptive.PROBE_REQUESTS": 8,
}
"""What is read, sent, or given to an agent at once, so that few neighbours are many."""

END_OF_TIME = datetime.max.replace(tzinfo=UTC)
"""After which there is no time to wait for."""

MANY, VERY_MANY = 110, 1100
"""More than fit a page, and more than any request to the store returns."""


def garbage(kind, *without, **columns):
    """Its row of this kind says nonsense, or lacks something."""

    async def spoil(there, order_id):
        there.spoil(order_id, kind, *without, **columns)

    return spoil


def newer(kind):
    """A newer version of the app has written its row of this kind."""
    return garbage(kind, SchemaVersion=99)


def no_row(kind):
    """Its row of this kind is not there."""

    async def spoil(there, order_id):
        del there.rows(order_id)[there.key(order_id, kind)]

    return spoil


async def is_not_there(there, order_id):
    """Somebody has deleted its rows, but not what stands in the work index."""
    for kind in ("|order", "|state"):
        await no_row(kind)(there, order_id)


def elsewhere(kind, place):
    """Its row in the work index has a key that means nothing."""

    async def spoil(there, order_id):
        rows, key = there.rows(order_id), there.key(order_id, kind)
        count, row = rows.pop(key)
        there = place.format(order_id)
        rows[there] = (count, row)

    return spoil


async def next_history_row_is_there(there, order_id):
    """Each change of it conflicts, and nobody else has made it."""
    version = (await there.load(order_id)).version + 1
    entry = HistoryEntry(at=there.now, actor="t", events=some("left over"))
    row = Insert(history_key(order_id, version), columns_of_record(entry))
    await there.store.table.submit(bucket_of(order_id), [row])


def refusing(do, error):
    """Does not do it for those that are `bad`."""

    async def refuse(what, *more):
        if any(bad in str(what) for bad in refuse.bad):
            raise error()
        return await do(what, *more)

    refuse.bad = []
    return refuse


def fails(port, method, error):
    """What the port is asked to do for it fails."""

    async def spoil(there, order_id):
        part = there.store if port == "store" else getattr(there.parts, port)
        do = getattr(part, method)
        if not hasattr(do, "bad"):
            setattr(part, method, refusing(do, error))
        getattr(part, method).bad.append(order_id)

    return spoil


def both(*faults):
    """Several things are wrong with it."""

    async def spoil(there, order_id):
        for fault in faults:
            await fault(there, order_id)

    return spoil


def too_large():
    return InvalidError(["it is too large"])


async def bucket_is_away(there, order_id):
    """Nothing in its partition can be read or written; the others have another one."""
    for name in ("load", "commit", "work_items"):
        await fails("store", name, UnavailableError)(there, bucket_of(order_id))


async def is_cancelled(there, order_id):
    """An operator acts on it."""
    await there.operators.act(
        BY_NAME["cancel"], order_id, OperatorRequest(operator="grace", note="not wanted any more")
    )


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """What is wrong with an order, and where: in what is read, sent or taken before the others."""

    beside: str
    spoil: object = None
    state: dict = field(default_factory=dict)
    is_notified: bool = True
    """Whether operators hear of it, in the log or by an alert."""
    late: float = 0
    """Seconds that others lose: what is in doubt may run, and has its slot until the next look."""


ELSEWHERE = {"workflow": "inventory"}
"""What runs takes room at its agent: here that is another one than the others need."""

NEIGHBOURS = {
    # In the lane from which orders are claimed, the batch of wake-ups, the page of the stall detector
    "its workflow is gone": Neighbour(beside="waits", state={"workflow": "unheard-of"}),
    "its version is retired": Neighbour(
        beside="waits", state={"workflow": "retired", "workflow_version": 1}
    ),
    "its version is newer": Neighbour(beside="waits", state={"workflow_version": 99}),
    "its request cannot be made": Neighbour(beside="waits", state={"workflow": "broken"}),
    "its request is too large": Neighbour(beside="waits", state={"workflow": "large"}),
    "it cools down": Neighbour(
        beside="waits", state={"not_before": NOW + seconds(3600)}, is_notified=False
    ),
    "an operator cancels it": Neighbour(beside="waits", spoil=is_cancelled),
    "its state is garbage": Neighbour(beside="waits", spoil=garbage("|state", ProcessState="{")),
    "its state lacks something": Neighbour(beside="waits", spoil=garbage("|state", "Version")),
    "its state is newer": Neighbour(beside="waits", spoil=newer("|state")),
    "it has no state": Neighbour(beside="waits", spoil=no_row("|state")),
    "it is not there": Neighbour(beside="waits", spoil=is_not_there),
    "it has no order": Neighbour(beside="waits", spoil=no_row("|order")),
    "its order is garbage": Neighbour(beside="waits", spoil=garbage("|order", Payload="[{")),
    "it has no step": Neighbour(beside="waits", spoil=garbage("|state", Steps="[]")),
    "its step is garbage": Neighbour(
        beside="waits", spoil=garbage("|state", Steps='[{"Name":"payment","State":7}]')
    ),
    "its pending row is empty": Neighbour(
        beside="is_polled", spoil=garbage("!pending", "ReadySince", "Workflow", "OrderID")
    ),
    "its pending row is garbage": Neighbour(
        beside="is_polled", spoil=garbage("!pending", UpdatedAt="soon")
    ),
    "its pending row is of the end of time": Neighbour(
        beside="is_polled",
        state=ELSEWHERE,
        spoil=garbage("!pending", ReadySince=END_OF_TIME, UpdatedAt=END_OF_TIME),
        is_notified=False,  # it is claimed like any other
    ),
    "its pending row is newer": Neighbour(beside="is_polled", spoil=newer("!pending")),
    "its pending row has a strange key": Neighbour(
        beside="is_polled", spoil=elsewhere("!pending", "!pending|1|-|x|{}")
    ),
    "its pending row has a strange rank": Neighbour(
        beside="is_polled",
        spoil=elsewhere("!pending", "!pending|0x|payment|2026-01-31T08:00:00.000000Z|{}"),
    ),
    "it conflicts for ever": Neighbour(
        beside="waits", spoil=fails("store", "commit", ConflictError)
    ),
    "its next history row is there": Neighbour(beside="waits", spoil=next_history_row_is_there),
    "its messages cannot be sent": Neighbour(
        beside="waits", state=ELSEWHERE, spoil=fails("bus", "send", too_large)
    ),
    "its agent's queue refuses": Neighbour(
        beside="waits", state=ELSEWHERE, spoil=fails("bus", "send", QueueRefusedError)
    ),
    # In the batch of replies, in the page that is swept, in what a look sees
    "its reply is for a newer version": Neighbour(
        beside="is_answered", spoil=garbage("|state", WorkflowVersion=99)
    ),
    "it is answered, and its state is garbage": Neighbour(
        beside="is_answered",
        spoil=garbage("|state", Version="x"),
        late=REFRESH_INTERVAL.total_seconds(),
    ),
    "it is answered, and conflicts": Neighbour(
        beside="is_answered", spoil=next_history_row_is_there
    ),
    "its bucket is away": Neighbour(
        beside="is_answered",
        state=ELSEWHERE | {"bucket": "b02"},
        spoil=bucket_is_away,
        late=REFRESH_INTERVAL.total_seconds(),
    ),
    "its bucket is away, and it waits": Neighbour(
        beside="waits",
        state={"bucket": "b02"},
        spoil=bucket_is_away,
        late=REFRESH_INTERVAL.total_seconds(),
    ),
    "it runs, and its state is garbage": Neighbour(
        beside="runs", state=ELSEWHERE, spoil=garbage("|state", Version="x")
    ),
    "it runs, and conflicts": Neighbour(
        beside="runs", state=ELSEWHERE, spoil=next_history_row_is_there
    ),
    "it runs, and has no step": Neighbour(
        beside="runs", state=ELSEWHERE, spoil=garbage("|state", Steps="[]")
    ),
    "its time is over, and its state is garbage": Neighbour(
        beside="is_overdue", spoil=garbage("|state", Version="x")
    ),
    "its running row is newer": Neighbour(
        beside="runs", state=ELSEWHERE, spoil=newer("!running"), is_notified=False
    ),
    # In the outbox, and in the list of what failed
    "Event Grid refuses its alert": Neighbour(
        beside="failed", spoil=fails("events", "publish", ValueError)
    ),
    "its alert is garbage": Neighbour(beside="failed", spoil=garbage("!outbox", Data="{")),
    "its alert is nested too deeply": Neighbour(
        beside="failed", spoil=garbage("!outbox", Data="[" * 20_000)
    ),
    "its alert is refused, and says nonsense of its tries": Neighbour(
        beside="failed",
        spoil=both(garbage("!outbox", Tries="x"), fails("events", "publish", ValueError)),
    ),
    "its alert goes nowhere": Neighbour(beside="failed", spoil=garbage("!outbox", "To")),
    "its alert is newer": Neighbour(beside="failed", spoil=newer("!outbox")),
    "its row in the list is empty": Neighbour(
        beside="failed", spoil=garbage("!error", "ProcessState", "UpdatedAt")
    ),
    # Among the notices
    "its sender's queue refuses": Neighbour(
        beside="is_notified", spoil=fails("bus", "send", QueueRefusedError)
    ),
    "its notice cannot be sent": Neighbour(
        beside="is_notified", spoil=fails("bus", "send", too_large)
    ),
    "its notice is garbage": Neighbour(beside="is_notified", spoil=garbage("!outbox", "To")),
    "its notice has no text": Neighbour(beside="is_notified", spoil=garbage("!outbox", "Body")),
    "its notice cannot be sent, and says nonsense of its tries": Neighbour(
        beside="is_notified",
        spoil=both(garbage("!outbox", Tries="x"), fails("bus", "send", too_large)),
    ),
    "its notice is newer": Neighbour(beside="is_notified", spoil=newer("!outbox")),
    # Among what is removed by its age
    "it is over, and its state is garbage": Neighbour(
        beside="is_over", spoil=garbage("|state", ProcessState="{")
    ),
    "it is over, and its state is newer": Neighbour(beside="is_over", spoil=newer("|state")),
    "it is over, and its step is no object": Neighbour(
        beside="is_over", spoil=garbage("|state", Steps="[5]")
    ),
    "it is over, and its steps are nested too deeply": Neighbour(
        beside="is_over", spoil=garbage("|state", Steps="[" * 20_000)
    ),
    "it is over, and its order is garbage": Neighbour(
        beside="is_over", spoil=garbage("|order", "Payload")
    ),
}


async def lived(there):
    with (
        patch("scheduler.triggers.retry_while_unavailable", there.retry_while_unavailable),
        patch("engine.storage.unit_of_work.MAX_CONFLICTS", 2),
    ):
        return await there.live()


def reports_of(there, caplog, order_id):
    """What says in the log, or to operators, that something is with this order."""
    log = [line.message for line in caplog.records if order_id in str(vars(line))]
    return log + [event.type for event in there.parts.events.published if is_about(event, order_id)]


def is_about(event, order_id):
    """Whether an event names the order."""
    return order_id in event.subject or order_id in event.data.get("orders", ())


def counted(there):
    """The events that count more orders than they name."""
    return [
        event for event in there.parts.events.published if event.data.get("count", 0) > MAX_ORDERS
    ]


@pytest.fixture(scope="module")
async def usual():
    """When what becomes of the others is seen where nothing is wrong with anybody."""
    return await lived(await street())


@pytest.mark.proves("FLT-6", "SCH-1", "SUP-2", "ALR-1", "ALR-2", "SUP-7")
@pytest.mark.parametrize("what", NEIGHBOURS)
@pytest.mark.parametrize(
    ("count", "sizes"),
    [
        pytest.param(1, {}, id="one", marks=pytest.mark.soak),
        pytest.param(25, SMALL, id="many"),
        pytest.param(MANY, {}, id="full", marks=pytest.mark.soak),
        *([pytest.param(VERY_MANY, {}, id="very many", marks=pytest.mark.soak)] if NIGHTLY else []),
    ],
)
async def test_whatever_is_wrong_with_an_order_others_end_in_their_usual_time(
    what, count, sizes, usual, caplog
):
    """More such neighbours than fit a page, or one, which tells less."""
    caplog.set_level("WARNING")
    with ExitStack() as smaller:
        for place, size in sizes.items():
            smaller.enter_context(patch(place, size))
        await others_are_in_time(NEIGHBOURS[what], count, usual, caplog)


async def others_are_in_time(neighbour, count, usual, caplog):
    """Whoever lives there beside such neighbours."""
    there = await street(neighbour.beside, count, neighbour.spoil, **neighbour.state)
    seen = await lived(there)
    late = {
        name: (at, seen.get(name))
        for name, at in usual.items()
        if seen.get(name, LASTS) > at + neighbour.late
    }
    # The stall detector raises an alert for a page of orders at a time.
    if count > engine.storage.bucket_reader.PAGE:
        late.pop("is late: alert", None)
    assert (late, there.failures) == ({}, [])
    known = reports_of(there, caplog, there.neighbours[0])
    assert (
        bool(known or counted(there)) if neighbour.is_notified else bool(known)
    ) is neighbour.is_notified
