"""A sender of orders who listens on a private queue."""

import json
from collections import defaultdict

import pytest
from azure.servicebus.aio import ServiceBusClient

REPLY_TO = "status-example"
STORY = ["received", "processing-started", "step-completed", "order-completed"]
"""Of an order of one step."""


class Mailbox:
    """The private queue of a sender, read to its end again and again."""

    def __init__(self, stack):
        self._connection = stack.service_bus_connection_string
        self.received = defaultdict(dict)
        """By order and notice id."""

    async def read(self):
        async with (
            ServiceBusClient.from_connection_string(self._connection) as bus,
            bus.get_queue_receiver(REPLY_TO) as queue,
        ):
            while messages := await queue.receive_messages(100, max_wait_time=1):
                for message in messages:
                    notice = json.loads(str(message))
                    if (message.correlation_id, message.message_id) != (
                        notice["orderId"],
                        notice["noticeId"],
                    ):
                        pytest.fail(
                            f"{notice} came as message {message.message_id} of {message.correlation_id}"
                        )
                    self.received[notice["orderId"]][notice["noticeId"]] = notice
                    await queue.complete_message(message)

    async def tells(self, story, orders):
        """Whether each of the orders has been told of in full."""
        await self.read()
        for order_id in orders:
            assert self.story_of(order_id) == story, order_id
        return True

    def story_of(self, order_id):
        notices = sorted(self.received[order_id].values(), key=lambda notice: notice["sequence"])
        assert [notice["at"] for notice in notices] == sorted(notice["at"] for notice in notices)
        return [notice["event"] for notice in notices]
