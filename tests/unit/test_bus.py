"""What the errors of Service Bus mean to those who send."""

from dataclasses import replace

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
from builders import ORDER_ID, seconds

from adapters.bus import ServiceBus
from core.errors import NotSentError, QueueRefusedError, UnavailableError
from core.messages import BusMessage, WakeUp


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


@pytest.mark.parametrize("ids", [("", "c-1"), ("m-1", "")], ids=["message id", "correlation id"])
def test_there_is_no_message_without_its_ids(ids):
    """It would shift the ids of those that travel in a batch with it: whoever makes one has made a mistake."""
    with pytest.raises(ValueError, match="needs a message id and a correlation id"):
        BusMessage(queue="q", message_id=ids[0], correlation_id=ids[1], body="{}")


MEANINGS = {
    MessagingEntityNotFoundError: QueueRefusedError,
    MessagingEntityDisabledError: QueueRefusedError,
    ServiceBusAuthorizationError: QueueRefusedError,
    ServiceBusQuotaExceededError: QueueRefusedError,
    ServiceBusServerBusyError: NotSentError,
    ServiceBusConnectionError: NotSentError,
}


@pytest.mark.proves("FLT-8")
@pytest.mark.parametrize("error", MEANINGS, ids=lambda error: error.__name__)
async def test_what_is_wrong_with_one_queue_is_told_from_a_bus_that_is_away(error):
    """A queue that is full, missing or forbidden says nothing of the others."""
    bus = ServiceBus(lambda: Failing(error(message="no")))
    with pytest.raises(UnavailableError) as raised:
        await bus.send([WakeUp(order_id=ORDER_ID).to_bus()])
    assert type(raised.value) is MEANINGS[error]
    await bus.close()


class Stumbling:
    """The client of a bus to which links open, or not, and over which batches go, or not: as the `faults` say."""

    def __init__(self, *faults):
        self._faults = list(faults)

    def get_queue_sender(self, queue):
        del queue
        return self

    async def create_message_batch(self):
        self._stumble("open")
        return ServiceBusMessageBatch()

    async def send_messages(self, batch, **_):
        del batch
        self._stumble("send")

    def _stumble(self, where):
        if self._faults and self._faults[0] == where:
            self._faults.pop(0)
            raise ServiceBusConnectionError(message="no")

    async def close(self):
        """Nothing is open."""


WAKE_UP = WakeUp(order_id=ORDER_ID).to_bus()
LIVES = replace(WAKE_UP, time_to_live=seconds(0.5))
IMPATIENT = replace(WAKE_UP, time_to_live=seconds(1000), patience=seconds(0.1))

TRIES = {
    "no link": (["open"], [WAKE_UP], NotSentError),
    "no answer": (["send"], [WAKE_UP], UnavailableError),
    "no answer, then no link": (["send", *["open"] * 100], [LIVES], UnavailableError),
    "no link, then no answer": (["open", *["send"] * 100], [LIVES], UnavailableError),
    "no link for as long as it lives": (["open"] * 100, [LIVES], NotSentError),
    "no link for as long as one waits": (["open"] * 100, [IMPATIENT], NotSentError),
    "no answer for one of two": (["open", "send"], [WAKE_UP, replace(WAKE_UP, queue="q")], UnavailableError),
    "no link for one of two": (["open"], [WAKE_UP, replace(WAKE_UP, queue="q")], UnavailableError),
    "no link for both": (["open", "open"], [WAKE_UP, replace(WAKE_UP, queue="q")], NotSentError),
}


@pytest.mark.proves("FLT-8")
@pytest.mark.parametrize("how", TRIES)
async def test_a_message_is_called_unsent_only_if_no_try_may_have_arrived(how):
    """Nor any other of those that are sent together."""
    faults, messages, meaning = TRIES[how]
    client = Stumbling(*faults)
    bus = ServiceBus(lambda: client)
    with pytest.raises(UnavailableError) as raised:
        await bus.send(messages)
    assert type(raised.value) is meaning
    await bus.close()


@pytest.mark.proves("FLT-8")
@pytest.mark.parametrize("faults", [["open"], ["send", "open"]], ids=" ".join)
async def test_a_message_gets_through_a_hiccup(faults):
    """It is tried again for as long as it lives, or as long as one waits."""
    client = Stumbling(*faults)
    bus = ServiceBus(lambda: client)
    await bus.send([replace(IMPATIENT, patience=seconds(100))])
    await bus.close()
