"""What senders are told of their orders, on queues of their own (ALR-2, ALR-3)."""

from functools import partial

import pytest

from functions_alone.tests.support.waiting import eventually
from tests.support.failing import fault
from tests.support.private_queue import REPLY_TO, STORY, Mailbox
from tests.support.submitting import new_order_id, submit


@pytest.mark.proves("ALR-2")
async def test_a_queue_that_is_not_there_is_given_up_with_an_alert_and_holds_nobody_else_up(
    client, stack
):
    """The order itself is processed, and others hear of theirs at once."""
    lost, read = new_order_id(), new_order_id()
    await submit(stack, lost, workflow="payment-only", replyTo="status-nobody")
    await submit(stack, read, workflow="payment-only", replyTo=REPLY_TO)
    await eventually(partial(Mailbox(stack).tells, STORY, [read]))
    await client.until(lost, "Processed")

    async def given_up():
        alerts = [
            notice
            for notice in await client.alerts(lost)
            if notice["type"] == "OrderProcessing.NoticeGivenUp"
        ]
        return (
            alerts
            if not [key for key in await client.work_items_of(lost) if "!outbox" in key]
            else None
        )

    (alert,) = await eventually(given_up)
    assert "status-nobody" in alert["reason"]


@pytest.mark.proves("ALR-2")
async def test_an_order_that_is_undone_says_so(client, stack):
    """With the reason."""
    order_id = new_order_id()
    await fault(client, "shipment", "reject", order_id)
    await submit(stack, order_id, workflow="order", replyTo=REPLY_TO)
    mailbox = Mailbox(stack)

    async def notice_has_come():
        await mailbox.read()
        story = mailbox.story_of(order_id)
        assert "order-undone" in story
        return story

    await eventually(notice_has_come)
    (last,) = [
        notice
        for notice in mailbox.received[order_id].values()
        if notice["event"] == "order-undone"
    ]
    assert "address not deliverable" in last["reason"]
    assert mailbox.story_of(order_id)[-1] == "order-undone"
