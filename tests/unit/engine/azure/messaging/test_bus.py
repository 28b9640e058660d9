"""What the errors of Service Bus mean to those who send."""

import asyncio
import time
from dataclasses import replace
from datetime import timedelta

import pytest
from azure.servicebus import ServiceBusMessageBatch
from azure.servicebus.exceptions import (
    MessagingEntityDisabledError,
    MessagingEntityNotFoundError,
    ServiceBusAuthorizationError,
    ServiceBusConnectionError,
    ServiceBusQuotaExceededError,
    ServiceBusServerBusyError,
)

from engine.azure.messaging import bus as bus_module
from engine.azure.messaging.bus import MAX_SENDERS, REFUSED_FOR, ServiceBus, _outgoing
from engine.domain.errors import InvalidError, QueueRefusedError, UnavailableError
from engine.domain.messages import BusMessage, OrderReady
from tests.support.builders import NOW, ORDER_ID, orders, scheduler, seconds


class Failing:
    """The client of a bus whose only sender fails."""

    def __init__(self, fault):
        self._fault = fault

    def get_queue_sender(self, queue):
        del queue
        return self

    async def create_message_batch(self):
        raise self._fault

    async def close(self):
        """Nothing is open."""


class Working:
    """The client of a bus that takes everything; `sent` holds the batches."""

    def __init__(self):
        self.sent = []

    def get_queue_sender(self, queue):
        del queue
        return self

    async def create_message_batch(self):
        return ServiceBusMessageBatch(max_size_in_bytes=256 * 1024)

    async def send_messages(self, batch, **_):
        self.sent.append(len(batch))

    async def close(self):
        """Nothing is open."""


def message(number, **changes):
    return replace(
        BusMessage(queue="q", message_id=f"m-{number}", correlation_id="c", body="{}"), **changes
    )


@pytest.mark.proves("FLT-6")
@pytest.mark.parametrize("place", [0, 2, 4], ids=["first", "middle", "last"])
@pytest.mark.parametrize(
    "fault", [{"body": "x" * 300_000}, {"message_id": "x" * 200}], ids=["too large", "id too long"]
)
async def test_a_message_that_cannot_be_sent_takes_no_other_of_its_batch_along(fault, place):
    """It alone fails; the others go out, before and after it."""
    client = Working()
    bus = ServiceBus(lambda: client)
    messages = [message(number, **(fault if number == place else {})) for number in range(5)]
    outcomes = await asyncio.gather(
        *(bus.send([sent]) for sent in messages), return_exceptions=True
    )
    assert [isinstance(outcome, InvalidError) for outcome in outcomes] == [
        number == place for number in range(5)
    ]
    assert sum(client.sent) == 4
    await bus.close()


class SmallBatch(ServiceBusMessageBatch):
    """Holds three messages of 1,000 characters, and says which it holds."""

    def __init__(self):
        super().__init__(max_size_in_bytes=4_000)
        self.ids = []

    def add_message(self, message):
        super().add_message(message)
        self.ids.append(message.message_id)


class Noting(Working):
    """The client of a bus that takes everything; `sent` holds the ids of each batch."""

    async def create_message_batch(self):
        return SmallBatch()

    async def send_messages(self, batch, **_):
        self.sent.append(batch.ids)


@pytest.mark.proves("FLT-6")
@pytest.mark.parametrize(
    ("characters", "most"), [(1_000, 500), (1, 3)], ids=["by size", "by number"]
)
async def test_what_does_not_fit_into_a_batch_goes_with_the_next_one(characters, most, monkeypatch):
    """Each message once, in the order in which they were sent, however many wait."""
    monkeypatch.setattr(bus_module, "MAX_IN_A_BATCH", most)
    client = Noting()
    bus = ServiceBus(lambda: client)
    await bus.send([message(number, body="x" * characters) for number in range(10)])
    ids = [f"m-{number}" for number in range(10)]
    assert client.sent == [ids[:3], ids[3:6], ids[6:9], ids[9:]]
    await bus.close()


@pytest.mark.parametrize("ids", [("", "c-1"), ("m-1", "")], ids=["message id", "correlation id"])
def test_there_is_no_message_without_its_ids(ids):
    """It would shift the ids of a batch: whoever makes such a message has made a mistake."""
    with pytest.raises(ValueError, match="needs a message id and a correlation id"):
        BusMessage(queue="q", message_id=ids[0], correlation_id=ids[1], body="{}")


@pytest.mark.proves("FLT-6")
async def test_who_is_refused_by_a_queue_does_not_try_for_as_long_as_the_message_lives(
    pauses, monkeypatch
):
    """Orders of other queues wait in the batch; and the queue may be mended in a moment."""
    now, monotonic, tries = [0.0], time.monotonic, []
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + now[0])
    client = Failing(MessagingEntityDisabledError())
    create = client.create_message_batch

    def slowly():
        tries.append(now[0])
        assert len(tries) < 10
        now[0] += REFUSED_FOR.total_seconds() / 3
        return create()

    client.create_message_batch = slowly
    bus = ServiceBus(lambda: client)
    with pytest.raises(QueueRefusedError):
        await bus.send([message(1, time_to_live=seconds(1000))])
    assert 1 < len(tries) <= 3
    await bus.close()


class Links:
    """The client of a bus that says how many links are open."""

    def __init__(self):
        self.open = set()

    def get_queue_sender(self, queue):
        return Link(self, queue)


class Link(Working):
    """One of them; the way to close one is long."""

    def __init__(self, links, queue):
        super().__init__()
        self._links, self._queue = links, queue
        links.open.add(queue)

    async def send_messages(self, batch, **_):
        assert self._queue in self._links.open
        await asyncio.sleep(0)
        await super().send_messages(batch)

    async def close(self):
        self._links.open.remove(self._queue)


@pytest.mark.proves("ALR-2")
async def test_however_many_private_queues_there_are_few_links_stay_open():
    """Each sender of orders may have its own: of those that were used longest ago none is kept."""
    links = Links()
    bus = ServiceBus(lambda: links)
    for number in range(3 * MAX_SENDERS):
        await bus.send(
            [message(number, queue=f"status-{number}"), message(number, queue="scheduler-requests")]
        )
    await asyncio.gather(*bus._closing)
    latest = {f"status-{number}" for number in range(2 * MAX_SENDERS + 1, 3 * MAX_SENDERS)}
    assert links.open == {"scheduler-requests", *latest}
    await bus.close()
    assert links.open == set()


async def test_a_link_in_use_is_not_closed():
    """Links above the limit are closed afterwards, however many queues get a message at once."""
    links = Links()
    bus = ServiceBus(lambda: links)
    await bus.send([message(number, queue=f"status-{number}") for number in range(3 * MAX_SENDERS)])
    await asyncio.gather(*bus._closing)
    assert len(links.open) == MAX_SENDERS
    await bus.close()


ERRORS = {
    MessagingEntityNotFoundError: QueueRefusedError,
    MessagingEntityDisabledError: QueueRefusedError,
    ServiceBusAuthorizationError: QueueRefusedError,
    ServiceBusQuotaExceededError: QueueRefusedError,
    ServiceBusServerBusyError: UnavailableError,
    ServiceBusConnectionError: UnavailableError,
}


@pytest.mark.proves("FLT-8")
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
async def test_a_fault_of_one_queue_differs_from_a_bus_that_is_away(error):
    """A queue that is full, missing or forbidden says nothing of the others."""
    bus = ServiceBus(lambda: Failing(error(message="no")))
    with pytest.raises(UnavailableError) as raised:
        await bus.send([OrderReady(order_id=ORDER_ID).to_bus()])
    assert type(raised.value) is ERRORS[error]
    await bus.close()


@pytest.mark.proves("AGT-4")
@pytest.mark.parametrize("milliseconds", [1, 300, 2500, 60_000])
def test_a_message_lives_as_long_as_it_says(milliseconds):
    """The library rounds down to seconds: a reply in the last one would arrive dead."""
    message = OrderReady(order_id=ORDER_ID).to_bus()
    sent = _outgoing(replace(message, time_to_live=timedelta(milliseconds=milliseconds)))
    assert sent.raw_amqp_message.header.time_to_live == milliseconds
    assert _outgoing(message).time_to_live is None


class Stumbling:
    """The client of a bus whose links and batches fail as the `faults` say."""

    def __init__(self, *faults, at=lambda: None):
        self._faults, self._at = list(faults), at
        self.sent = 0

    def get_queue_sender(self, queue):
        del queue
        return self

    async def create_message_batch(self):
        self._stumble("open")
        return ServiceBusMessageBatch()

    async def send_messages(self, batch, **_):
        self._stumble("send")
        self.sent += len(batch)

    def _stumble(self, where):
        if self._faults[:1] == [where]:
            self._faults.pop(0)
            self._at()
            raise ServiceBusConnectionError(message="no")

    async def close(self):
        """Nothing is open."""


WAKE_UP = OrderReady(order_id=ORDER_ID).to_bus()
LIVES = replace(WAKE_UP, time_to_live=seconds(1000))


@pytest.fixture
def pauses(monkeypatch):
    """The pauses between two tries, for which nobody waits."""
    sleep, made = asyncio.sleep, []

    async def at_once(pause):
        made.append(pause)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", at_once)
    return made


@pytest.mark.proves("FLT-8")
@pytest.mark.parametrize("where", ["open", "send"])
async def test_a_message_that_need_not_arrive_is_tried_once(where, pauses):
    """The poll finds the order of a lost wake-up; another message sent with it goes out."""
    client = Stumbling(where)
    bus = ServiceBus(lambda: client)
    with pytest.raises(UnavailableError) as raised:
        await bus.send([WAKE_UP, replace(WAKE_UP, queue="q")])
    assert type(raised.value) is UnavailableError
    assert (client.sent, pauses) == (1, [])
    await bus.close()


class Silent(Working):
    """The client of a bus to which a link opens, or not, and that says nothing after that."""

    def __init__(self, *, opens):
        super().__init__()
        self._opens = opens

    async def create_message_batch(self):
        return await super().create_message_batch() if self._opens else await asyncio.Future()

    async def send_messages(self, batch, **_):
        await asyncio.Future()


@pytest.mark.proves("FLT-8")
@pytest.mark.parametrize("opens", [True, False], ids=["a link", "no link"])
async def test_a_bus_that_says_nothing_is_waited_for_as_long_as_a_message_lives(opens):
    """And no longer: whoever sends it has other things to do."""
    bus, before = ServiceBus(lambda: Silent(opens=opens)), asyncio.all_tasks()
    async with asyncio.timeout(5):
        with pytest.raises(UnavailableError, match="within the lifetime of the message") as raised:
            await bus.send([replace(WAKE_UP, time_to_live=seconds(0.2))])
    assert type(raised.value) is UnavailableError
    waiting = asyncio.all_tasks() - before  # for an answer that never comes
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await bus.close()


@pytest.mark.proves("FLT-8")
@pytest.mark.parametrize(
    "faults", [["open"], ["send", "open"], ["send"] * 10], ids=["no link", "both", "no answer"]
)
async def test_a_request_is_sent_again_for_as_long_as_it_lives(faults, pauses):
    """Else its order would wait for the whole of its time; a pause lies between two tries."""
    client = Stumbling(*faults)
    bus = ServiceBus(lambda: client)
    await bus.send(scheduler.claim(orders.new(), NOW).messages)
    assert (client.sent, len(pauses)) == (1, len(faults))
    assert all(0 < pause <= 2 for pause in pauses)
    await bus.close()


@pytest.mark.proves("FLT-8")
async def test_a_request_is_sent_no_more_once_it_would_be_dead(pauses, monkeypatch):
    """A reply to it would count for nothing."""
    now, monotonic = [0.0], time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + now[0])
    client = Stumbling(*["open"] * 100, at=lambda: now.__setitem__(0, now[0] + 400))
    bus = ServiceBus(lambda: client)
    with pytest.raises(UnavailableError):
        await bus.send([LIVES])
    assert len(pauses) == 2
    await bus.close()
