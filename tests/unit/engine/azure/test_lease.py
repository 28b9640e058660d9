"""For how long a supervisor may believe that it leads (SUP-5)."""

from unittest.mock import AsyncMock, MagicMock

import pytest

from engine.azure.lease import BlobLeadership

LEASE_SECONDS = 30


@pytest.mark.proves("SUP-5", "FLT-5")
async def test_a_lease_counts_from_before_it_was_requested(monkeypatch):
    """Azure may have begun to count then: the time until the answer belongs to the lease."""
    now = 0.0

    async def slowly(seconds):
        nonlocal now
        now += 20
        assert seconds == LEASE_SECONDS

    monkeypatch.setattr(
        "engine.azure.lease.BlobLeaseClient", lambda *_, **__: AsyncMock(acquire=slowly)
    )
    leadership = BlobLeadership(MagicMock, LEASE_SECONDS, lambda: now)
    assert await leadership.acquire()
    assert leadership.held()
    now = 28.9
    assert leadership.held()
    now = 29.0
    assert not leadership.held()
