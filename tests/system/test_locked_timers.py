"""Timers under locks with Azure's times: one host sweeps, and another when that one is killed."""

from datetime import UTC, datetime

import pytest

from functions_alone.tests.support.waiting import eventually
from tests.support.client import QUICK
from tests.support.stacks import number_of, running, workers_of

MAX_SECONDS = 45
"""Until the lock of the dead host has run out, the other has asked for it, and its timer has come."""


async def last_sweep(client):
    """When the last sweep ended, and the worker process that swept."""
    _, overview = await client.request("GET", "/api/operator/overview")
    sweep = overview["lastSweep"]
    assert sweep, "nobody has swept yet"
    return datetime.fromisoformat(sweep["at"]), int(sweep["instance"].rsplit("-", 2)[1])


@pytest.mark.soak
async def test_another_host_sweeps_soon_after_the_one_with_the_locks_was_killed(tmp_path):
    """By the times with which the sweeps themselves were recorded."""
    async with running(tmp_path, hosts=2, settings=QUICK) as (stack, client):
        _, sweeping = await eventually(lambda: last_sweep(client))
        (host,) = [candidate for candidate in stack.hosts if sweeping in workers_of(candidate)]
        killed = datetime.now(UTC)
        await stack.kill_host(number_of(stack, host))

        async def swept_by_the_other():
            at, by = await last_sweep(client)
            return at if by != sweeping else None

        silent = (await eventually(swept_by_the_other) - killed).total_seconds()
        print(f"the next sweep came after {silent:.1f} s")
        assert silent < MAX_SECONDS
