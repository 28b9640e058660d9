"""Alerts reach people over mail and webhooks: none is lost, none comes too often, and no channel delays another.

In `make test` one channel hangs; `tests/unit/operations/alerts/test_notify.py` has repeats after a crash, and the interval.
"""

from collections import defaultdict
from datetime import datetime
from functools import partial
from itertools import pairwise

import pytest

from functions_alone.ports import HOST
from functions_alone.tests.support.waiting import eventually
from tests.support.client import KILLED, PATIENT
from tests.support.inspection import states_of
from tests.support.stacks import APP, FUNCTIONS, names, running
from tests.support.submitting import submit_new

USED = names(*FUNCTIONS, "alerts_notify", "operator_channels")
CHANNELS = ("smtp", "teams", "slack")


async def received(client, stack):
    """The messages of each channel, the oldest first."""
    url = f"http://{HOST}:{stack.ports.channels_port}/messages"
    async with client.http.get(url) as response:
        messages = (await response.json())["messages"]
    found = defaultdict(list)
    for message in messages:
        found[message["channel"]].append(message)
    return found


async def fail(client, stack, channel, mode, **more):
    """Let a channel fail, or be well again."""
    url = f"http://{HOST}:{stack.ports.channels_port}/channels/{channel}/fault"
    async with client.http.put(url, json={"mode": mode} | more) as response:
        assert response.status == 204


async def every_order_is_reported(client, stack, orders, channels=CHANNELS):
    """Some message of each channel names each order."""
    found = await received(client, stack)
    for channel in channels:
        text = "\n".join(message["text"] for message in found[channel])
        assert [order for order in orders if order not in text] == [], channel
    return found


async def all_are_recorded(client, orders):
    """Whatever has become of them."""
    return len(await states_of(client, orders)) == len(orders)


@pytest.mark.soak
@pytest.mark.proves("ALR-5", "FLT-2")
@pytest.mark.parametrize(("count", "kills"), [(18, 6)])
async def test_failed_orders_reach_people_though_hosts_are_killed(tmp_path, count, kills):
    """At least once over each channel; a repeat has the id and the text of the first."""
    settings = PATIENT | KILLED | {"ALERT_INTERVAL_SECONDS": "2", "NOTIFY_SCHEDULE": "* * * * * *"}
    async with running(tmp_path, app=APP, functions=USED, settings=settings, in_memory=False) as (
        stack,
        client,
    ):
        await client.fault("reject")
        orders = []
        for _ in range(kills):
            orders += await submit_new(stack, -(-count // kills), workflow="payment-only")
            await eventually(partial(all_are_recorded, client, orders))
            await stack.kill_host()
            await stack.start_host(USED)  # other functions would get a port of their own
        found = await eventually(partial(every_order_is_reported, client, stack, orders))
        texts = defaultdict(set)
        for message in found["smtp"]:
            texts[message["id"]].add((message["subject"], message["text"]))
        assert all(len(same) == 1 for same in texts.values())
        assert "ada" not in str(found).lower()


@pytest.mark.soak
@pytest.mark.proves("ALR-5")
@pytest.mark.parametrize(("count", "interval_seconds"), [(300, 120)])
async def test_many_failed_orders_are_few_messages(tmp_path, count, interval_seconds):
    """The first at once, and one with all others after the interval."""
    settings = PATIENT | {
        "ALERT_INTERVAL_SECONDS": str(interval_seconds),
        "NOTIFY_SCHEDULE": "* * * * * *",
        "MAX_CONCURRENT_CALLS": "50",
    }
    async with running(tmp_path, app=APP, functions=USED, settings=settings) as (stack, client):
        await client.fault("reject")
        await submit_new(stack, count, workflow="payment-only")

        async def all_are_reported():
            _, shown = await client.request("GET", "/api/operator/channels")
            for channel in shown["channels"]:
                entries = sum(message["entries"] for message in channel["messages"])
                assert (entries, channel["waiting"]) == (count, 0)
            return shown["channels"]

        channels = await eventually(all_are_reported)
        assert {channel["channel"] for channel in channels} == {*CHANNELS}
        for channel in channels:
            times = [datetime.fromisoformat(message["at"]) for message in channel["messages"]]
            pauses = [late - early for late, early in pairwise(times)]
            assert all(pause.total_seconds() >= interval_seconds for pause in pauses)
            assert len(times) <= 3
        mails = (await received(client, stack))["smtp"]
        assert len(mails) == len(channels[0]["messages"])


@pytest.mark.proves("ALR-5", "FLT-6")
@pytest.mark.parametrize(
    ("mode", "more"),
    [
        pytest.param("hang", {}, id="hangs"),
        pytest.param("429", {"retryAfter": 3600}, id="throttled", marks=pytest.mark.soak),
        pytest.param("cut", {}, id="cuts", marks=pytest.mark.soak),
        pytest.param("refuse", {}, id="refuses", marks=pytest.mark.soak),
    ],
)
async def test_a_channel_that_fails_delays_no_other(failing, mode, more):
    """Nor an alert in the log, nor an order."""
    stack, client = failing
    await fail(client, stack, "slack", mode, **more)
    await client.fault("reject", "TEA-ROOIBOS")
    order_id = await client.place("TEA-ROOIBOS")
    await eventually(partial(every_order_is_reported, client, stack, [order_id], ("smtp", "teams")))
    assert len(await client.alerts(order_id)) == 1
    await client.until(await client.place(), "Processed")

    async def the_operator_sees_it():
        _, shown = await client.request("GET", "/api/operator/channels")
        (slack,) = (channel for channel in shown["channels"] if channel["channel"] == "slack")
        assert slack["failure"]
        assert bool(slack["pausedUntil"]) is (mode != "refuse")
        return True

    await eventually(the_operator_sees_it)


@pytest.fixture
async def failing(tmp_path):
    """A stack whose channels send at once."""
    settings = PATIENT | {"ALERT_INTERVAL_SECONDS": "1", "NOTIFY_SCHEDULE": "* * * * * *"}
    async with running(tmp_path, functions=USED, settings=settings) as (stack, client):
        yield stack, client
