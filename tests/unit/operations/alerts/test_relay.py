"""What is sent to operators and to the senders of orders, on parts in memory."""

import asyncio
import json
from base64 import b64encode
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from unittest.mock import patch

import pytest
from azure.functions import FunctionApp
from azure.functions.queue import QueueMessage

from engine.decisions.transitions import OperatorEvent
from engine.domain.errors import InvalidError, OutOfTimeError, QueueRefusedError, UnavailableError
from engine.domain.messages import BusMessage
from engine.storage import outbox
from engine.storage.orders import columns_of_record
from engine.storage.tables import entity
from operations.alerts.relay import PAGE
from operations.alerts.rules import LONGEST_PAUSE, QUEUE, pause, read
from operations.alerts.triggers import alert_functions
from testkit.memory import MemoryBus, MemoryEventPublisher, in_memory
from tests.support.apps import app
from tests.support.builders import NOW, ORDER_ID, seconds
from tests.support.kept import kept
from tests.support.outbox import outbox_rows, pending_events

BUCKET = "b00"


class PartialBus(MemoryBus):
    """A bus of which some queues, or all, fail with the error that stands for them in `faults`."""

    def __init__(self):
        super().__init__()
        self.faults = {}

    async def send(self, messages):
        queue = messages[0].queue
        if fault := self.faults.get(queue, self.faults.get("all")):
            raise fault
        await super().send(messages)


class PartialEventGrid(MemoryEventPublisher):
    """An Event Grid that is away, or refuses what holds an event in `bad`; it counts the calls."""

    def __init__(self):
        super().__init__()
        self.fault, self.bad, self.calls = None, set(), 0

    async def publish(self, events):
        self.calls += 1
        if self.fault:
            raise self.fault
        if self.bad & {event.event_id for event in events}:
            raise ValueError("refused")
        await super().publish(events)


class Post:
    """The relay on parts in memory, a clock that the test moves, and one queue that is full."""

    def __init__(self):
        self.now = NOW
        self.bus, self.grid = PartialBus(), PartialEventGrid()
        self.bus.faults["status-full"] = QueueRefusedError("over quota")
        parts = replace(in_memory(clock=lambda: self.now), events=self.grid, bus=self.bus)
        self.app = app(parts, buckets=1, notice_tries=3)
        self.store, self.relay = self.app.engine.store, self.app.operations.relay.relay

    def owe(self, queue, *numbers, version=1, **columns):
        """Let notices of as many orders wait for this queue, with these columns in their rows."""
        for number in numbers:
            order_id = f"{BUCKET}-{number:026d}"
            notice = BusMessage(
                queue=queue,
                message_id=f"{order_id}:{version}:0",
                correlation_id=order_id,
                body=f'{{"n":{number}}}',
            )
            self.put(outbox.of_notice(notice, NOW), **columns)

    def alert(self, *numbers, **columns):
        """Let as many events wait for the operators."""
        for number in numbers:
            event = OperatorEvent(
                event_id=f"e{number}", type="T", subject="orders/x", at=NOW, data={}
            )
            self.put(outbox.of_event(f"x{number:05d}", event), **columns)

    def put(self, row, **columns):
        row = replace(row, data={**row.data, **columns})
        rows = self.store.table.partitions.setdefault(BUCKET, {})
        rows[row.key] = (1, entity(BUCKET, row.key, columns_of_record(row)))

    async def outbox_rows(self):
        """What is not settled."""
        return await outbox_rows(self.store, BUCKET)

    async def events(self):
        """What operators are still to be told."""
        return await pending_events(self.store, BUCKET)

    async def until_given_up(self):
        """Let as many tries go by as a notice has."""
        for _ in range(3):
            await self.relay()
            self.now += LONGEST_PAUSE


@pytest.fixture
def post():
    return Post()


@pytest.mark.proves("ALR-1", "ALR-2")
async def test_more_than_a_page_holds_is_sent_in_one_run(post):
    """To operators and to all queues: how many wait says nothing of how often the timer comes."""
    post.alert(*range(2 * PAGE + 1))
    post.owe("status-a", *range(PAGE))
    post.owe("status-b", *range(PAGE, 2 * PAGE + 1))
    await post.relay()
    all_of_them = 2 * PAGE + 1
    assert len(post.grid.published) == len(post.bus.sent) == all_of_them
    assert len({event.event_id for event in post.grid.published}) == all_of_them
    assert len({message.message_id for message in post.bus.sent}) == all_of_them
    assert await post.outbox_rows() == []


@pytest.mark.proves("ALR-1", "ALR-2")
async def test_what_is_sent_is_what_was_written(post):
    """To the letter."""
    data = {"reason": "ä", "more": [1, None]}
    event = OperatorEvent(event_id="e1/ä", type="T", subject="orders/x", at=NOW, data=data)
    notice = BusMessage(
        queue="status-a", message_id=f"{ORDER_ID}:1:0", correlation_id=ORDER_ID, body='{"a": "ä"}'
    )
    post.put(outbox.of_event(ORDER_ID, event))
    post.put(outbox.of_notice(notice, NOW))
    await post.relay()
    assert (post.grid.published, post.bus.sent) == ([event], [notice])


@pytest.mark.proves("ALR-2")
async def test_a_queue_that_takes_nothing_is_given_up_and_holds_nobody_up(post):
    """Other queues get theirs in the same run; in the end an operator is told."""
    post.owe("status-full", *range(2 * PAGE))
    post.owe("status-b", 5000)
    await post.relay()
    assert [message.queue for message in post.bus.sent] == ["status-b"]
    assert {row.data["Tries"] for row in await post.outbox_rows()} == {1}
    for _ in range(2):
        post.now += LONGEST_PAUSE
        await post.relay()
    await post.relay()
    events = post.grid.published
    assert await post.outbox_rows() == []
    assert {event.type for event in events} == {"OrderProcessing.NoticeGivenUp"}
    assert len({event.event_id for event in events}) == 2 * PAGE
    assert {event.at for event in events} == {post.now}  # not that of an order, which may be old


@pytest.mark.proves("ALR-2")
async def test_one_alert_tells_of_all_the_notices_of_an_order(post):
    """Though they are given up one after the other, each with an event of its own time."""
    for version in (1, 2):
        post.owe("status-full", 0, version=version)
        await post.until_given_up()
        await post.relay()
    for event in post.grid.published:
        await post.app.operations.alert_log.record(event)
    assert len(post.grid.published) == 2
    assert len(await post.app.operations.alert_log.newest(10)) == 1


@pytest.mark.proves("ALR-2")
async def test_notices_of_an_order_may_be_given_up_at_the_same_moment(post):
    """One event tells of both."""
    for version in (1, 2):
        post.owe("status-full", 0, version=version)
    await post.until_given_up()
    assert len(await post.outbox_rows()) == len(await post.events()) == 1


@pytest.mark.proves("ALR-2", "FLT-8")
async def test_a_queue_that_fails_while_others_answer_is_given_up(post):
    """Whatever the error is: the bus is there."""
    post.bus.faults["status-a"] = UnavailableError("timed out")
    post.owe("status-a", 0)
    for turn in range(3):
        post.owe("status-b", 5000 + turn)
        await post.relay()
        post.now += LONGEST_PAUSE
    assert len(post.bus.sent) == 3
    assert len(await post.outbox_rows()) == len(await post.events()) == 1


@pytest.mark.proves("ALR-2", "FLT-8")
async def test_nothing_is_given_up_while_the_whole_bus_is_away(post):
    """It is sent when the bus is back, however long that takes."""
    post.bus.faults |= {
        "all": UnavailableError("no connection"),
        "status-?": InvalidError(["there is no such name"]),
    }
    post.owe("status-a", 0)
    post.owe("status-b", 1)
    for turn in range(10):
        post.owe("status-?", 10 + turn)
        with pytest.raises(ExceptionGroup) as raised:
            await post.relay()
        assert raised.group_contains(UnavailableError)
        post.now += LONGEST_PAUSE
    waiting = {row.data["To"]: row.data.get("Tries") for row in await post.outbox_rows()}
    assert {"status-a": 0, "status-b": 0}.items() <= waiting.items()
    del post.bus.faults["all"]
    await post.relay()
    assert {message.queue for message in post.bus.sent} == {"status-a", "status-b"}


@pytest.mark.proves("ALR-1", "FLT-8")
async def test_an_alert_waits_for_as_long_as_event_grid_is_away(post):
    """However well queues answer; it is sent when Event Grid is back and its pause is over."""
    post.grid.fault = UnavailableError("no connection")
    post.alert(*range(2 * PAGE))
    for turn in range(10):
        post.owe("status-a", turn)
        with pytest.raises(ExceptionGroup) as raised:
            await post.relay()
        assert raised.group_contains(UnavailableError)
        post.now += LONGEST_PAUSE
    assert post.grid.calls == 10
    post.grid.fault = None
    await post.relay()
    assert len(post.grid.published) == 2 * PAGE
    assert await post.outbox_rows() == []


@pytest.mark.proves("ALR-1", "FLT-8")
@pytest.mark.parametrize("ends", ["refused", "no answer", "cut off", "not confirmed"])
async def test_an_event_that_is_not_confirmed_is_sent_again_after_pauses_that_grow(post, ends):
    """Under the same id, however the run before ended, and whoever runs beside it (load.md 4)."""
    faults = {
        "refused": ValueError("refused"),
        "no answer": UnavailableError("no answer"),
        "cut off": OutOfTimeError(),
        "not confirmed": None,
    }
    post.grid.fault = faults[ends]
    post.alert(0)
    times = []
    with patch.object(post.store, "confirm", crashes):
        while len(times) < 9:
            calls = post.grid.calls
            for _ in range(2):
                with suppress(ExceptionGroup):
                    await post.relay()
            times += [post.now] * (post.grid.calls - calls)
            post.now += seconds(1)
    pauses = [(late - early).total_seconds() for early, late in pairwise(times)]
    assert pauses == [2, 4, 8, 16, 32, 64, 128, 256]
    assert {event.event_id for event in post.grid.published} <= {"e0"}


async def test_two_runs_at_the_same_time_send_an_event_once(post):
    """The one that puts it off first sends it."""
    post.alert(*range(PAGE))
    await asyncio.gather(post.relay(), post.relay())
    assert len(post.grid.published) == PAGE


@pytest.mark.proves("ALR-1", "ALR-2")
@pytest.mark.parametrize("away", ["event grid", "bus"])
async def test_one_destination_that_is_away_does_not_hold_up_the_other(post, away):
    """Even behind pages of what waits for the first."""
    if away == "bus":
        post.bus.faults["all"] = UnavailableError("no connection")
        post.owe("status-a", *range(3 * PAGE))
        post.alert(0)
    else:
        post.grid.fault = UnavailableError("no connection")
        post.alert(*range(3 * PAGE))
        post.owe("status-a", 0)
    post.now += seconds(1)
    with pytest.raises(ExceptionGroup):
        await post.relay()
    assert len(post.grid.published) + len(post.bus.sent) == 1


@pytest.mark.proves("ALR-1")
async def test_an_alert_that_is_refused_is_put_off_and_never_given_up(post):
    """Those beside it arrive, and it stands in nobody's way."""
    post.grid.bad = {"e0"}
    post.alert(*range(3))
    for _ in range(20):
        await post.relay()
        post.now += LONGEST_PAUSE
    assert [event.event_id for event in post.grid.published] == ["e1", "e2"]
    (row,) = await post.outbox_rows()
    assert row.data["Tries"] == 20
    assert row.key > outbox.due(NOW + 10 * LONGEST_PAUSE)[1]
    post.grid.bad = set()
    await post.relay()
    assert await post.outbox_rows() == []


@pytest.mark.proves("ALR-2")
async def test_a_notice_that_is_sent_again_is_the_same_notice(post):
    """After a crash before its confirmation, or a failed try, its receiver knows it by its id."""
    post.owe("status-a", 0)
    (row,) = await post.outbox_rows()
    post.bus.faults["status-a"] = QueueRefusedError("over quota")
    await post.relay()
    del post.bus.faults["status-a"]
    post.now += LONGEST_PAUSE
    with patch.object(post.store, "confirm", crashes), pytest.raises(ExceptionGroup):
        await post.relay()
    await post.relay()
    first, again = post.bus.sent
    assert first == again
    assert (first.message_id, first.body) == (row.data["NoticeId"], row.data["Body"])
    assert await post.outbox_rows() == []


async def crashes(*_):
    raise UnavailableError("gone")


@pytest.mark.proves("ALR-2")
async def test_a_notice_is_given_up_only_together_with_its_alert(post):
    """After a crash before that it is given up anew."""
    post.owe("status-full", 0)
    for _ in range(2):
        await post.relay()
        post.now += LONGEST_PAUSE
    with patch.object(post.store, "postpone", crashes), pytest.raises(ExceptionGroup):
        await post.relay()
    assert (len(await post.outbox_rows()), await post.events()) == (1, [])
    await post.relay()
    assert len(await post.outbox_rows()) == len(await post.events()) == 1


@pytest.mark.proves("ALR-2")
async def test_no_run_waits_for_a_silent_queue_on_page_after_page(post):
    """Each try takes until the bus gives up: its notices wait, and those of others do not."""
    post.bus.faults["status-a"] = UnavailableError("timed out")
    post.owe("status-a", *range(PAGE - 1))
    post.owe("status-b", PAGE - 1)
    post.owe("status-a", *range(PAGE, 2 * PAGE))
    post.owe("status-b", 2 * PAGE)
    await post.relay()
    assert len(post.bus.sent) == 2
    assert [row.data.get("Tries") for row in await post.outbox_rows()] == [None] * PAGE + [1] * (
        PAGE - 1
    )


@pytest.mark.proves("ALR-1", "ALR-2")
@pytest.mark.parametrize("columns", [{}, {"Tries": "x"}, {"Tries": -5}], ids=str)
async def test_a_row_that_says_nonsense_of_its_tries_holds_nothing_up(post, columns):
    """It is refused and put off like any other; later pages are sent in the same run."""
    post.grid.bad = {"e0"}
    post.alert(*range(PAGE), **columns)
    post.owe("status-full", *range(PAGE), **columns)
    post.owe("status-a", 5000)
    await post.relay()
    assert len(post.grid.published) == PAGE - 1
    assert [message.queue for message in post.bus.sent] == ["status-a"]
    assert len({row.data["Tries"] for row in await post.outbox_rows()} & {1, -4}) == 1


@pytest.mark.proves("ALR-1", "ALR-2")
async def test_a_row_that_cannot_be_put_off_holds_nothing_up(post):
    """The others of its page are settled, and later pages are sent; then it is told."""
    original = post.store.postpone

    async def postpone(bucket, key, row):
        if row.order_id.endswith("07"):
            raise InvalidError(["no row holds this"])
        await original(bucket, key, row)

    post.owe("status-full", *range(PAGE))
    post.owe("status-a", 5000)
    with patch.object(post.store, "postpone", postpone), pytest.raises(ExceptionGroup) as raised:
        await post.relay()
    assert raised.group_contains(InvalidError, depth=3)
    assert [message.queue for message in post.bus.sent] == ["status-a"]
    assert [row.data.get("Tries") for row in await post.outbox_rows()].count(1) == PAGE - 1


@pytest.mark.proves("ALR-2")
def test_pauses_between_tries_grow_up_to_a_bound():
    """However often it was tried, the next try comes within five minutes."""
    assert [pause(tries) for tries in (1, 2, 3, 8)] == [
        seconds(expected) for expected in (2, 4, 8, 256)
    ]
    assert [pause(tries) for tries in (9, 40, 10**12)] == [LONGEST_PAUSE] * 3


@pytest.mark.proves("FLT-6")
async def test_an_alert_that_cannot_be_read_is_kept_with_its_reason(post):
    """Whoever put it on the queue."""
    triggers = FunctionApp()
    triggers.register_functions(
        alert_functions(
            post.app.operations.alert_log, post.app.engine.poison_store, None, None, lambda _: []
        )
    )
    (record,) = (
        function
        for function in triggers.get_functions()
        if function.get_function_name() == "alerts_record"
    )
    for _ in range(2):
        await record.get_user_function()(QueueMessage(body=b"no event", id="m", insertion_time=NOW))
    (message,) = await kept(post.app.engine.poison_store)
    assert (message.source, message.body) == (QUEUE, b"no event")
    assert message.reason
    assert await post.app.operations.alert_log.newest(10) == []


@pytest.mark.proves("ALR-1")
@pytest.mark.parametrize("number", ["NaN", "[-Infinity]", f"1{'0' * 5000}"])
def test_an_alert_with_a_number_that_json_has_not_cannot_be_read(number):
    """One such alert in a list would keep browsers from reading all the others."""
    event = {"specversion": "1.0", "id": "e", "type": "T", "time": NOW.isoformat()}
    text = json.dumps(event | {"data": {"x": "?"}})
    assert read(b64encode(text.encode())).data == {"x": "?"}
    with pytest.raises(InvalidError):
        read(b64encode(text.replace('"?"', number).encode()))
