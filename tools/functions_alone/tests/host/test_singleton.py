"""How long the lock of a timer lasts, and for how long a host believes that it has it (webjobs.md 9)."""

import json
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError, ServiceRequestError
from azure.storage.blob.aio import ContainerClient

from functions_alone.connections import storage_connection_string
from functions_alone.host import singleton
from functions_alone.host.host_json import QueueOptions, seconds_of
from functions_alone.host.settings import HostSettings
from functions_alone.host.singleton import Singleton
from functions_alone.ports import Ports

FACTS = json.loads((Path(__file__).parents[4] / "tests/data/azure_host/timers.json").read_text())
PERIOD = FACTS["listenerLockPeriod"]
LOCK_SECONDS = seconds_of(PERIOD["default"])
AWAY = ServiceRequestError("away")


class Storage:
    """Gives the lease, or answers what it is told, so many seconds after it is asked."""

    def __init__(self):
        self.now, self.error, self.takes = 1000.0, None, 0.0

    def monotonic(self):
        return self.now

    async def acquire(self):
        self.now += self.takes
        if self.error:
            raise self.error


@pytest.fixture
def storage(monkeypatch):
    storage = Storage()
    monkeypatch.setattr(singleton, "time", storage)
    return storage


def locked(own):
    """A timer under a lock by these settings."""
    return Singleton(None, function="f", connection="", own=own, poll_seconds=60)


@pytest.fixture
def lock(storage):
    lock = locked(HostSettings.read({}))
    lock._lease = storage
    return lock


@pytest.mark.parametrize("period", [PERIOD["least"], PERIOD["most"]])
async def test_a_lock_lasts_as_host_json_says_and_is_renewed_at_half_its_time(
    storage, monkeypatch, period
):
    """What is asked of storage is as long as what the host believes."""
    own = HostSettings.read({}, timer_lock_seconds=seconds_of(period))
    lock, leased = locked(own), []
    async with ContainerClient.from_connection_string(
        storage_connection_string(Ports()), singleton.CONTAINER
    ) as container:
        lock._lease = lock._lease_in(container)

        async def acquire(seconds):
            leased.append(seconds)

        monkeypatch.setattr(lock._lease._lease, "acquire", acquire)
        assert await lock._has_lock()
    assert leased == [seconds_of(period)]
    assert lock._pause == seconds_of(period) * FACTS["renewed after"]
    assert lock._until == storage.now + seconds_of(period)


@pytest.mark.parametrize(("given", "lasts"), [({}, 60), ({"LOCAL_TIMER_LOCK_SECONDS": "2"}, 2)])
def test_a_setting_only_shortens_the_lock(given, lasts):
    """For tests that kill hosts; what is shorter than in Azure is named."""
    own = HostSettings.read(given, timer_lock_seconds=60)
    assert (own.timer_lock_seconds, bool(own.shortened)) == (lasts, bool(given))
    longer = HostSettings.read({"LOCAL_TIMER_LOCK_SECONDS": "60"}, timer_lock_seconds=15)
    assert (longer.timer_lock_seconds, longer.shortened) == (15, [])


async def test_one_failed_renewal_does_not_lose_a_lock(storage, lock):
    """It is held for as long as the lease lasts; the next try comes long before its end."""
    assert await lock._has_lock()
    storage.now += LOCK_SECONDS / 2
    storage.error = AWAY
    assert await lock._has_lock()
    assert storage.now + lock._pause < 1000 + LOCK_SECONDS


async def test_a_lock_that_cannot_be_renewed_is_lost_when_the_lease_ends(storage, lock):
    """Another host may have it from then on."""
    assert await lock._has_lock()
    storage.error = AWAY
    storage.now += LOCK_SECONDS - 0.1
    assert await lock._has_lock()
    storage.now += 0.1
    assert not await lock._has_lock()


async def test_a_lease_counts_from_when_it_was_requested(storage, lock):
    """Storage may have given it at once, and its answer have taken long."""
    storage.takes = LOCK_SECONDS - 1
    assert await lock._has_lock()
    storage.takes, storage.error = 1, AWAY
    assert not await lock._has_lock()


@pytest.mark.parametrize("status", [409, 412])
async def test_a_lock_that_another_host_has_is_lost_at_once(storage, lock, status):
    """And asked for again as often as host.json says."""
    assert await lock._has_lock()
    storage.error = HttpResponseError("taken")
    storage.error.status_code = status
    assert not await lock._has_lock()
    assert lock._pause == 60


@pytest.mark.parametrize(("batch", "threshold"), [(16, 8), (1, 0), (32, 16)])
def test_more_messages_are_fetched_when_half_a_batch_is_left(batch, threshold):
    """Unless host.json says otherwise."""
    assert QueueOptions(batchSize=batch).threshold == threshold
    assert QueueOptions(batchSize=batch, newBatchThreshold=3).threshold == 3
