"""The lock of a timer: of several hosts one fires it, and another when that one is gone."""

import asyncio
import signal

import pytest
from azure.core.exceptions import ResourceExistsError
from azure.storage.blob.aio import ContainerClient

from functions_alone.host.singleton import CONTAINER, Lease
from functions_alone.tests.support.gateways import Gateway
from functions_alone.tests.support.waiting import until

SOON = {"TICK": "00:00:00.2", "TICK_DOES": "note", "LOCAL_TIMER_LOCK_SECONDS": "1"}


@pytest.fixture
async def container(services):
    """The container of the locks."""
    async with ContainerClient.from_connection_string(
        services.storage_connection_string, CONTAINER
    ) as container:
        yield container


async def test_a_lease_is_one_hosts_until_it_gives_it_up(container):
    """Also the one for which container and blob are made; who has it gets it again."""
    one, other = (Lease(container, "locks/of-a-test/f.Listener", 15) for _ in range(2))
    await one.acquire()
    await one.acquire()
    with pytest.raises(ResourceExistsError):
        await other.acquire()
    await one.release()
    await other.acquire()


def fires_from(host, others):
    """Wait until the host fires its timer; then it alone does, for as long as five times take."""
    host.wait_for("timer")
    before = [len(other.seen("timer")) for other in others]
    fired = len(host.seen("timer"))
    host.wait_for("timer", lambda seen: len(seen) >= fired + 5)
    assert [len(other.seen("timer")) for other in others] == before


@pytest.mark.soak
def test_one_host_fires_and_another_takes_over_from_one_that_is_frozen_stopped_or_killed(
    start_host,
):
    """A frozen one that goes on notices that it has lost its lock, and fires no more until it has it again."""
    one = start_host("tick", **SOON)
    one.wait_for("timer")
    other = start_host("tick", **SOON)
    fires_from(one, [other])

    one.process.send_signal(signal.SIGSTOP)
    fires_from(other, [])
    one.process.send_signal(signal.SIGCONT)
    one.wait_for_log("the lock of function tick is lost", 1)
    fires_from(other, [one])

    again = len(one.seen("timer"))
    assert other.stop() == 0
    one.wait_for("timer", lambda seen: len(seen) > again)

    third = start_host("tick", **SOON)
    one.stop(signal.SIGKILL)
    third.wait_for("timer")


async def test_a_host_whose_storage_is_away_fires_nothing_until_it_is_back(
    services, start_host, host
):
    """It has lost its lock by then, and says so."""
    storage, port = Gateway(services.ports.blob_port), services.ports.blob_port
    through = services.storage_connection_string.replace(f":{port}/", f":{storage.port}/")
    away = await asyncio.to_thread(start_host, "tick", **SOON, AzureWebJobsStorage=through)

    async def logged(text, times):
        await asyncio.to_thread(
            away.wait_for_log, f"the storage of the lock of function tick is {text}", times
        )

    await logged("away", 1)
    assert away.seen("timer") == []
    await storage.open()
    await logged("back", 1)
    await asyncio.to_thread(away.wait_for, "timer")
    await storage.close()
    await asyncio.to_thread(away.wait_for_log, "the lock of function tick is lost", 1)
    fired = len(away.seen("timer"))
    await asyncio.to_thread(host.let_time_pass, 1)
    assert len(away.seen("timer")) == fired
    await storage.open()
    await logged("back", 2)
    await asyncio.to_thread(until, lambda: len(away.seen("timer")) > fired)
    await storage.close()
