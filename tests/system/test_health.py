"""`GET /api/health` tells which dependency is away, and sees for itself that it is back."""

import signal
import time

import pytest
from azure.storage.queue.aio import QueueClient
from client import eventually

SOON_SECONDS = 6
"""The report waits for 2 s; without that it takes as long as the slowest check, with a frozen broker much longer."""


class Report:
    """What the running stack says of its health."""

    def __init__(self, client):
        self._client = client

    async def becomes(self, status, *away):
        """Wait until it is so; every answer on the way has to come soon."""
        seen = None

        async def is_so():
            nonlocal seen
            began = time.monotonic()
            answered, report = await self._client.request("GET", "/api/health", key=False)
            assert time.monotonic() - began < SOON_SECONDS, "the answer took too long"
            words = report["dependencies"]
            seen = answered, sorted(name for name, word in words.items() if word == "away")
            assert set(words) == {"stateStore", "submissionQueue", "serviceBus"}
            return seen == (status, sorted(away))

        is_so.__name__ = f"health is {status}, away: {away}"
        await eventually(is_so, 30)


@pytest.mark.proves("FLT-7", "FLT-8")
async def test_health_tells_what_is_away_until_it_is_back(own_stack):
    """503 that names what is stopped, frozen or missing, soon, and 200 by itself once that is back."""
    stack, client = await own_stack(in_memory=False)
    report = Report(client)
    await report.becomes(200)

    await stack.stop_broker()
    await report.becomes(503, "serviceBus")
    await stack.start_broker()
    await report.becomes(200)

    stack.broker.signal(signal.SIGSTOP)
    await report.becomes(503, "serviceBus")
    stack.broker.signal(signal.SIGCONT)
    await report.becomes(200)

    storage = stack.storage_connection_string
    async with QueueClient.from_connection_string(storage, "order-submissions") as queue:
        await queue.delete_queue()
        await report.becomes(503, "submissionQueue")
        await queue.create_queue()
        await report.becomes(200)

    await stack.stop_azurite()
    await report.becomes(503, "stateStore", "submissionQueue")
    await stack.start_azurite()
    await report.becomes(200)
