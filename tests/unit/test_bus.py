"""What the errors of Service Bus mean to those who send."""

from dataclasses import replace
from datetime import timedelta

import pytest
from azure.servicebus.exceptions import (
    MessagingEntityDisabledError,
    MessagingEntityNotFoundError,
    ServiceBusAuthorizationError,
    ServiceBusConnectionError,
    ServiceBusQuotaExceededError,
    ServiceBusServerBusyError,
)
from builders import ORDER_ID

from adapters.bus import ServiceBus, _outgoing
from core.errors import QueueRefusedError, UnavailableError
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
    ServiceBusServerBusyError: UnavailableError,
    ServiceBusConnectionError: UnavailableError,
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


@pytest.mark.proves("AGT-4")
@pytest.mark.parametrize("milliseconds", [1, 300, 2500, 60_000])
def test_a_message_lives_as_long_as_it_says(milliseconds):
    """The library rounds down to seconds: a reply in the last one would be dead before it arrives."""
    message = WakeUp(order_id=ORDER_ID).to_bus()
    sent = _outgoing(replace(message, time_to_live=timedelta(milliseconds=milliseconds)))
    assert sent.raw_amqp_message.header.time_to_live == milliseconds
    assert _outgoing(message).time_to_live is None
