"""For how long a host believes that it has the lock of a timer."""

import pytest
from azure.core.exceptions import HttpResponseError, ServiceRequestError

from local.host import singleton
from local.host.host_json import QueueOptions
from local.host.settings import LEASE_SECONDS, HostSettings
from local.host.singleton import Singleton

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


@pytest.fixture
def lock(storage):
    lock = Singleton(None, function="f", connection="", own=HostSettings.read({}), poll_seconds=60)
    lock._lease = storage
    return lock


async def test_one_failed_renewal_does_not_lose_a_lock(storage, lock):
    """It is held for as long as the lease lasts; the next try comes long before its end."""
    assert await lock._has_lock()
    storage.now += LEASE_SECONDS / 2
    storage.error = AWAY
    assert await lock._has_lock()
    assert storage.now + lock._pause < 1000 + LEASE_SECONDS


async def test_a_lock_that_cannot_be_renewed_is_lost_when_the_lease_ends(storage, lock):
    """Another host may have it from then on."""
    assert await lock._has_lock()
    storage.error = AWAY
    storage.now += LEASE_SECONDS - 0.1
    assert await lock._has_lock()
    storage.now += 0.1
    assert not await lock._has_lock()


async def test_a_lease_counts_from_when_it_was_asked_for(storage, lock):
    """Storage may have given it at once, and its answer have taken long."""
    storage.takes = LEASE_SECONDS - 1
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
