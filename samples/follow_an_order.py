"""Submits an order as a trusted system does, and prints its notifications (ALR-2).

The notifications come to a private queue. Against the embedded stack (`make run`), the program
needs no settings: `python samples/follow_an_order.py`. Elsewhere, set the connection strings in
`STATE_STORAGE` and `SERVICE_BUS`, and set `REPLY_TO` to your own queue, whose name begins with
`status-`. Give each listener its own queue, because a notification that another listener has locked
comes late.
"""

import asyncio
import json
import os
import secrets
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from azure.servicebus import ServiceBusReceivedMessage
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver
from azure.servicebus.exceptions import MessageLockLostError
from azure.storage.queue.aio import QueueClient
from ulid import ULID

AZURITE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
STORAGE = os.environ.get(
    "STATE_STORAGE",
    f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={AZURITE_KEY};"
    "QueueEndpoint=http://127.0.0.1:10001/devstoreaccount1;",
)
SERVICE_BUS = os.environ.get(
    "SERVICE_BUS",
    "Endpoint=sb://localhost:5672;SharedAccessKeyName=RootManageSharedAccessKey;"
    "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;",
)
REPLY_TO = os.environ.get("REPLY_TO", "status-example")
ENDS = {"order-completed", "order-failed", "order-undone"}
PATIENCE_SECONDS = 90
"""The longest wait for a notification, in seconds.

It is longer than the lock of a message, which another listener may have.
"""


def new_order_id() -> str:
    """Make an id, `b<bucket>-<ULID>`. The bucket, one of eight, spreads orders over partitions."""
    return f"b{secrets.randbelow(8):02d}-{ULID()}"


async def submit(order_id: str) -> None:
    """Put the order on the submission queue."""
    message = {
        "schemaVersion": 1,
        "orderId": order_id,
        "placedAt": datetime.now(UTC).isoformat(),
        "customer": {"name": "Ada", "email": "ada@example.com"},
        "items": [{"sku": "TEA-SENCHA", "quantity": 2, "unitPrice": "14.00"}],
        "replyTo": REPLY_TO,
    }
    # A proxy of the environment leads to Azure, and not to the embedded stack.
    by_proxy = "STATE_STORAGE" in os.environ
    client = QueueClient.from_connection_string(
        STORAGE, "order-submissions", use_env_settings=by_proxy
    )
    async with client as queue:
        await queue.send_message(json.dumps(message))


async def follow(order_id: str) -> str:
    """Print the order's notifications until it has ended, and return the last event.

    A notification may come twice, with the same id, or late, with a lower sequence. It is completed
    only after it was printed, so after a crash in between it comes again. Notifications of other
    orders stay on the queue. They are abandoned only at the end, because each abandonment counts as
    a delivery, and the tenth delivery would dead-letter the message.
    """
    event, seen, others = "", set[str](), list[ServiceBusReceivedMessage]()
    async with (
        ServiceBusClient.from_connection_string(SERVICE_BUS) as bus,
        bus.get_queue_receiver(REPLY_TO, max_wait_time=PATIENCE_SECONDS) as queue,
    ):
        async for message in queue:
            if message.correlation_id != order_id:
                others.append(message)
                continue
            notice = json.loads(str(message))
            if message.message_id not in seen:
                show(notice)
            seen.add(str(message.message_id))
            await queue.complete_message(message)
            if (event := notice["event"]) in ENDS:
                break
        for message in others:
            await let_go(queue, message)
    return event


def show(notice: dict[str, Any]) -> None:
    """Print a notice."""
    details = " ".join(str(notice[name]) for name in ("step", "reason") if name in notice)
    print(f"{notice['at']}  {notice['sequence']:>5}  {notice['event']:<18} {details}", flush=True)


async def let_go(queue: ServiceBusReceiver, message: ServiceBusReceivedMessage) -> None:
    """Abandon a message. If its lock has expired, it is already back on the queue."""
    with suppress(MessageLockLostError):
        await queue.abandon_message(message)


async def main() -> int:
    """Follow an order to its end. Return 0 if it was completed."""
    order_id = new_order_id()
    print(f"submitting {order_id}", flush=True)
    await submit(order_id)
    return 0 if await follow(order_id) == "order-completed" else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
