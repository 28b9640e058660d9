"""What survives the end of processes."""

import asyncio
import random

import pytest
from azure.storage.queue.aio import QueueClient
from client import DONE, PATIENT, claims_and_recoveries_alternate, eventually

from local.stack import Stack


@pytest.mark.proves("SCH-9")
async def test_orders_are_still_there_after_the_stack_was_stopped_and_started(own_stack, tmp_path):
    """A processed order and one that waits for an operator survive a restart of everything; the latter goes on."""
    stack, client = await own_stack(in_memory=False)
    done = await client.place("TEA-SENCHA")
    await client.fault("reject", "POT-GLASS")
    waiting = await client.place("POT-GLASS")
    await client.until(done, "Processed")
    await client.until(waiting, "Error")
    await stack.stop()

    again = Stack(stack.config)
    await again.start()
    try:
        assert (await client.order(done))["processState"] == "Processed"
        await client.fault("none", "POT-GLASS")
        await client.resubmit(waiting)
        await client.until(waiting, "Processed")
    finally:
        await again.stop()


@pytest.mark.proves("SCH-9", "AGT-7", "SUP-3", "FLT-2", "FLT-3")
async def test_orders_end_right_when_the_host_is_killed_at_any_moment(own_stack):
    """SIGKILL at random moments, a new host each time: every order is processed, with one effect."""
    settings = PATIENT | {"ALLOWANCE_SECONDS": "3"}  # kills count as failures, and are not held to be lasting here
    stack, client = await own_stack(settings=settings)
    orders = []
    for _ in range(5):
        placed = await asyncio.gather(*(client.place() for _ in range(6)))
        orders += placed
        await asyncio.sleep(random.uniform(0, 0.4))  # not awaiting anything: the kill has to hit any moment
        await stack.kill_host()
        await stack.start_host()
    for order_id in orders:
        order = await client.until(order_id, "Processed", seconds=40)
        assert claims_and_recoveries_alternate(order), order["history"]
        assert await client.agenda_of(order_id) == []
    assert await client.all_actions() == dict.fromkeys(orders, DONE)


@pytest.mark.proves("ALR-1", "FLT-11")
async def test_an_alert_arrives_after_event_grid_was_away(own_stack):
    """The event waits in the outbox while Event Grid is away, and is sent when it is back."""
    stack, client = await own_stack()
    await stack.stop_event_grid()
    await client.fault("reject", "POT-GLASS")
    order_id = await client.place("POT-GLASS")
    await client.until(order_id, "Error")
    assert any(key.startswith("!outbox|") for key in await client.agenda_of(order_id))
    await stack.start_event_grid()

    async def alerted():
        return await client.alerts(order_id)

    assert len(await eventually(alerted)) == 1

    async def confirmed():
        return not any(key.startswith("!outbox|") for key in await client.agenda_of(order_id))

    await eventually(confirmed)


@pytest.mark.proves("SUB-3", "SUB-4")
async def test_bad_submissions_end_in_the_poison_queue_and_hold_nothing_up(own_stack):
    """Unreadable and contradicting messages are kept with their reason and alerted; valid ones go through."""
    stack, client = await own_stack()
    good = await client.place()
    order = await client.until(good, "Processed")
    bodies = ["no json at all", '{"schemaVersion": 9}', forged(good)]
    connection = stack.storage_connection_string
    async with (
        QueueClient.from_connection_string(connection, "order-submissions") as queue,
        QueueClient.from_connection_string(connection, "order-submissions-poison") as poison,
    ):
        for body in bodies:
            await queue.send_message(body)
        other = await client.place()

        async def all_kept():
            messages = [message.content for message in await poison.peek_messages(max_messages=32)]
            return messages if len(messages) == len(bodies) else None

        kept = " ".join(await eventually(all_kept))
    for reason in ("Invalid JSON", "orderId: Field required", "recorded already, with other content"):
        assert reason in kept
    await client.until(other, "Processed")
    after = await client.order(good)
    assert after["items"] == order["items"]
    assert after["history"][-1]["event"] == "submission-refused"

    async def alerted():
        _, answer = await client.request("GET", "/api/operator/alerts")
        return len([a for a in answer["alerts"] if a["type"] == "OrderProcessing.SubmissionRejected"]) == len(bodies)

    await eventually(alerted)


def forged(order_id: str) -> str:
    """A message that would overwrite a recorded order."""
    return (
        f'{{"schemaVersion":1,"orderId":"{order_id}","placedAt":"2026-01-31T08:15:00Z",'
        '"customer":{"name":"Mallory","email":"m@example.com"},'
        '"items":[{"sku":"TEA-SENCHA","quantity":1000,"unitPrice":"0.01"}]}'
    )
