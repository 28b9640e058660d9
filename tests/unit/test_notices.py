"""What is sent to operators and to the senders of orders, on parts in memory."""

import pytest
from builders import NOW

from adapters.memory import in_memory
from adapters.writes import notice_row
from alerts.notices import NoticeService
from alerts.service import PAGE, AlertService
from core.agenda import Kind, all_of
from core.changes import Event
from core.notices import Notice

BUCKET = "b00"


class Post:
    """The relays on parts in memory, with a clock that stands still unless moved."""

    def __init__(self):
        self.now = NOW
        self.parts = in_memory(clock=lambda: self.now)
        self.notices = NoticeService(
            store=self.parts.store, bus=self.parts.bus, clock=self.parts.clock, buckets=1, most_tries=3
        )
        self.alerts = AlertService(
            store=self.parts.store,
            publisher=self.parts.events,
            alert_log=self.parts.alerts,
            poison=self.parts.poison,
            buckets=1,
        )

    def owe(self, queue, *numbers):
        """Let notices of as many orders wait for this queue."""
        for number in numbers:
            order_id = f"{BUCKET}-{number:026d}"
            notice = Notice(
                notice_id=f"{order_id}:1:0",
                order_id=order_id,
                queue=queue,
                event="received",
                at=NOW,
                sequence=100,
                placed_at=NOW,
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
    assert len({message.message_id for message in post.parts.bus.sent}) == 2 * PAGE + 1
    assert await post.owed() == []
