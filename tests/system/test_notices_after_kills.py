"""What senders are told outlives the hosts and the broker (ALR-2, ALR-3)."""

import json
from functools import partial

import pytest

from functions_alone.tests.support.waiting import eventually
from tests.support.client import KILLED, PATIENT
from tests.support.inspection import processed
from tests.support.private_queue import REPLY_TO, STORY, Mailbox
from tests.support.stacks import APP, running
from tests.support.submitting import new_order_id, submit


@pytest.mark.proves("ALR-2", "ALR-3", "FLT-3", "FLT-8")
@pytest.mark.soak
@pytest.mark.process_per_function
async def test_every_notice_arrives_though_hosts_are_killed_and_the_broker_is_started_again(
    tmp_path,
):
    """At least once, and in an order that the receiver can restore; nothing personal is in them."""
    async with running(tmp_path, app=APP, settings=PATIENT | KILLED, in_memory=False) as (
        stack,
        client,
    ):
        orders = [new_order_id() for _ in range(40)]
        await submit(stack, *orders, workflow="payment-only", replyTo=REPLY_TO)

        async def some_are_processed():
            return await processed(client, orders) >= 5

        await eventually(some_are_processed)
        await stack.kill_host()
        await stack.stop_broker()
        await stack.start_broker()
        await stack.start_host()
        mailbox = Mailbox(stack)
        await eventually(partial(mailbox.tells, STORY, orders))
        assert "ada" not in json.dumps(mailbox.received).lower()
