"""Messages that the platform gives up, because their function failed too often."""

import asyncio

from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient
from azure.storage.queue.aio import QueueClient

DESCRIPTION = "it was delivered ten times"


async def give_up(stack, source, text):
    """Have the platform give up a message; on the bus the app gets copies: those who receive take turns."""
    if source in ("order-submissions", "operator-alerts"):
        async with QueueClient.from_connection_string(
            stack.storage_connection_string, f"{source}-poison"
        ) as queue:
            await queue.send_message(text)
        return
    async with (
        ServiceBusClient.from_connection_string(stack.service_bus_connection_string) as bus,
        bus.get_queue_receiver(source) as receiver,
        bus.get_queue_sender(source) as sender,
    ):
        receiving = asyncio.create_task(receiver.receive_messages(1, max_wait_time=60))
        while not receiving.done():
            await sender.send_messages(ServiceBusMessage(text))
            await asyncio.wait({receiving}, timeout=0.2)
        (message,) = receiving.result()
        await receiver.dead_letter_message(
            message, reason="MaxDeliveryCountExceeded", error_description=DESCRIPTION
        )
