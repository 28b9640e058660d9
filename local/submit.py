"""Puts an order onto the submission queue of the running stack, as a trusted submitter does."""

from datetime import UTC, datetime

from azure.storage.queue.aio import QueueClient

from adapters.clock import order_ids
from core.messages import Submission
from local.ports import Ports
from local.settings import storage_connection_string
from shop.payload import Content, Customer, Line

BUCKETS = 8


async def submit(ports: Ports, workflow: str, sku: str, quantity: int) -> str:
    """Submit an order for a workflow and return its id; raises ValidationError for what nobody can order."""
    content = Content(
        customer=Customer(name="Ada", email="ada@example.com"),
        items=(Line(sku=sku, quantity=quantity, unit_price="14.00"),),
    )
    message = Submission(
        schema_version=1,
        order_id=order_ids(BUCKETS)(),
        placed_at=datetime.now(UTC),
        workflow=workflow,
        **content.payload(),
    )
    async with QueueClient.from_connection_string(storage_connection_string(ports), "order-submissions") as queue:
        await queue.send_message(message.to_json())
    return message.order_id
