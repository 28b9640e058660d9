"""What is sent to operators and to the senders of orders, on parts in memory."""

import json
from unittest.mock import patch

import pytest
from builders import NOW
from kept import kept

from adapters.memory import MemoryBus, in_memory
from adapters.writes import notice_row
from alerts.notices import LONGEST_PAUSE, NoticeService, pause
from alerts.service import PAGE, QUEUE, AlertService
from core.agenda import Kind, all_of
from core.changes import Event
from core.errors import QueueRefusedError, UnavailableError
from core.notices import Notice
from core.poison import Arrival

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


class Post:
    """The relays on parts in memory, with a clock that stands still unless moved."""

    def __init__(self):
        self.now = NOW
        self.parts = in_memory(clock=lambda: self.now)
        self.bus = PartialBus()
        self.notices = NoticeService(
            store=self.parts.store, bus=self.bus, clock=self.parts.clock, buckets=1, most_tries=3
        )
        self.alerts = AlertService(
            store=self.parts.store,
            publisher=self.parts.events,
            alert_log=self.parts.alerts,
            poison=self.parts.poison,
            buckets=1,
        )

    def owe(self, queue, *numbers, version=1):
        """Let notices of as many orders wait for this queue."""
        for number in numbers:
            order_id = f"{BUCKET}-{number:026d}"
            notice = Notice(
                notice_id=f"{order_id}:{version}:0",
                order_id=order_id,
                queue=queue,
                event="received",
                at=NOW,
                sequence=100,
            )
            row = notice_row(notice)
            self.parts.store.rows.setdefault(BUCKET, {})[row.key] = (1, row)

    async def owed(self):
        """The notices that are not settled."""
        return await self.parts.store.agenda(BUCKET, *all_of(Kind.NOTICE), 10_000)


@pytest.fixture
def post():
    return Post()


@pytest.mark.proves("ALR-1")
async def test_more_alerts_than_a_page_holds_are_sent_in_one_run(post):
    """How many wait says nothing of how often the timer comes."""
    for number in range(2 * PAGE + 1):
        event = Event(event_id=f"e{number}", type="T", subject="orders/x", at=NOW, data={})
        await post.parts.store.announce(BUCKET, event)
    assert await post.alerts.relay() == 2 * PAGE + 1
    assert len({event.event_id for event in post.parts.events.published}) == 2 * PAGE + 1
    assert await post.parts.store.outbox(BUCKET, 1) == []


@pytest.mark.proves("ALR-2")
async def test_more_notices_than_a_page_holds_are_sent_in_one_run(post):
    """Of all queues."""
    post.owe("status-a", *range(PAGE))
    post.owe("status-b", *range(PAGE, 2 * PAGE + 1))
    assert await post.notices.relay() == 2 * PAGE + 1
    assert len({message.message_id for message in post.bus.sent}) == 2 * PAGE + 1
    assert await post.owed() == []


@pytest.mark.proves("ALR-2")
async def test_a_queue_that_takes_nothing_is_given_up_and_holds_nobody_up(post):
    """However many wait for it, others get theirs in the same run; in the end an operator is told."""
    post.bus.faults["status-full"] = QueueRefusedError("over quota")
    post.owe("status-full", *range(2 * PAGE))
    post.owe("status-b", 5000)
    await post.notices.relay()
    assert [message.queue for message in post.bus.sent] == ["status-b"]
    assert {row.data["Tries"] for row in await post.owed()} == {1}
    for _ in range(2):
        post.now += LONGEST_PAUSE
        await post.notices.relay()
    assert await post.owed() == []
    events = [entry.event for entry in await post.parts.store.outbox(BUCKET, 1000)]
    assert {event.type for event in events} == {"OrderProcessing.NoticeGivenUp"}
    assert len({event.event_id for event in events}) == 2 * PAGE
    assert {event.at for event in events} == {post.now}  # not that of an order which may be as old as what is removed


@pytest.mark.proves("ALR-2")
async def test_one_alert_tells_of_all_the_notices_of_an_order(post):
    """Though they are given up one after the other, each with an event of its own time."""
    post.bus.faults["status-full"] = QueueRefusedError("over quota")
    for version in (1, 2):
        post.owe("status-full", 0, version=version)
        for _ in range(3):
            await post.notices.relay()
            post.now += LONGEST_PAUSE
        await post.alerts.relay()
    for event in post.parts.events.published:
        await post.parts.alerts.record(event)
    assert len(post.parts.events.published) == 2
    assert len(await post.parts.alerts.newest(10)) == 1


@pytest.mark.proves("ALR-2", "FLT-8")
async def test_a_queue_that_fails_while_others_answer_is_given_up(post):
    """Whatever the error is: the bus is there."""
    post.bus.faults["status-a"] = UnavailableError("timed out")
    post.owe("status-a", 0)
    for turn in range(3):
        post.owe("status-b", 5000 + turn)
        await post.notices.relay()
        post.now += LONGEST_PAUSE
    assert len(post.bus.sent) == 3
    assert await post.owed() == []


@pytest.mark.proves("ALR-2", "FLT-8")
async def test_nothing_is_given_up_while_the_whole_bus_is_away(post):
    """However long that lasts; what waits is sent when it is back."""
    post.bus.faults["all"] = UnavailableError("no connection")
    post.owe("status-a", 0)
    post.owe("status-b", 1)
    for _ in range(10):
        with pytest.raises(ExceptionGroup) as raised:
            await post.notices.relay()
        assert raised.group_contains(UnavailableError)
        post.now += LONGEST_PAUSE
    assert {row.data["Tries"] for row in await post.owed()} == {0}
    post.bus.faults.clear()
    assert await post.notices.relay() == 2
    assert await post.owed() == []


@pytest.mark.proves("ALR-2")
async def test_a_notice_that_is_sent_again_is_the_same_notice(post):
    """After a crash between send and confirmation, or a try that failed: its receiver knows it by its id."""
    post.owe("status-a", 0)
    (row,) = await post.owed()
    post.bus.faults["status-a"] = QueueRefusedError("over quota")
    await post.notices.relay()
    post.bus.faults.clear()
    post.now += LONGEST_PAUSE
    with patch.object(post.parts.store, "confirm", crashes), pytest.raises(ExceptionGroup):
        await post.notices.relay()
    await post.notices.relay()
    first, again = post.bus.sent
    assert first == again
    assert first.message_id == json.loads(first.body)["noticeId"] == row.data["NoticeId"]
    assert await post.owed() == []


async def crashes(*_):
    raise UnavailableError("gone")


@pytest.mark.proves("ALR-2")
async def test_a_notice_is_given_up_only_once_an_operator_is_sure_to_be_told(post):
    """After a crash in between it is given up anew."""
    post.bus.faults["status-full"] = QueueRefusedError("over quota")
    post.owe("status-full", 0)
    for _ in range(2):
        await post.notices.relay()
        post.now += LONGEST_PAUSE
    with patch.object(post.parts.store, "announce", crashes), pytest.raises(ExceptionGroup):
        await post.notices.relay()
    assert len(await post.owed()) == 1
    await post.notices.relay()
    assert (await post.owed(), len(await post.parts.store.outbox(BUCKET, 10))) == ([], 1)


@pytest.mark.proves("ALR-2")
async def test_no_run_waits_for_a_silent_queue_on_page_after_page(post):
    """Each time takes until the bus gives up; the rest is sent with the next run."""
    post.bus.faults["status-a"] = UnavailableError("timed out")
    post.owe("status-a", *range(PAGE - 1))
    post.owe("status-b", PAGE - 1)
    post.owe("status-b", *range(PAGE, 2 * PAGE))
    assert await post.notices.relay() == PAGE
    assert len(post.bus.sent) == 1


@pytest.mark.proves("ALR-2")
def test_pauses_between_tries_grow_up_to_a_bound():
    """However often it was tried."""
    assert [pause(tries).total_seconds() for tries in (1, 2, 3)] == [2, 4, 8]
    assert pause(100) == LONGEST_PAUSE


@pytest.mark.proves("FLT-6")
async def test_an_alert_that_cannot_be_read_is_kept_with_its_reason(post):
    """Whoever put it on the queue."""
    await post.alerts.record(b"no event", Arrival(at=NOW))
    (message,) = await kept(post.parts.poison)
    assert (message.source, message.body) == (QUEUE, b"no event")
    assert message.reason
    assert await post.parts.alerts.newest(10) == []
