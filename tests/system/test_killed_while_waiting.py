"""Whatever an order waits for, all processes may be killed meanwhile: it goes on to its right end."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from samples.claims_with_approvals.business import GROWN
from tests.support.claiming import GRACE, PICTURES, GrownClaim
from tests.support.client import KILLED, QUICK
from tests.support.stacks import running

pytestmark = pytest.mark.soak

APP = Path(__file__).parent / "app_dated"
TIMES = (
    QUICK
    | KILLED
    | {
        "COOLDOWN_SECONDS": "15",
        "STEP_TIMEOUT_SECONDS": "4",
        "OUTBOX_SCHEDULE": "* * * * * *",
    }
)
LATER = {"latencyMs": 15_000}
SOON = timedelta(seconds=10)
PAID = ["assess", "pay", "screen", "tell"]


class Waiting(GrownClaim):
    """A claim that comes to wait for something, and goes on after all was killed."""

    async def comes_to_wait(self):
        """Return once it waits."""
        await self.submit()
        await self.awaits("photographs")

    async def goes_on(self):
        """Return once it has come to its end."""
        await self.answer("photographs", answer=PICTURES)
        await self.is_paid_once()

    async def is_paid_once(self):
        await self.ends("Processed")
        assert await self.effects() == PAID


class ForAnAnswer(Waiting):
    """For photographs."""


class ForADate(Waiting):
    """For the time at which its only step begins."""

    async def comes_to_wait(self):
        await self.submit(workflow="dated", placedAt=datetime.now(UTC).isoformat())
        await self.until(lambda step: step["notBefore"], "tell")
        assert await self.effects() == []

    async def goes_on(self):
        order = await self.ends("Processed")
        begun = next(entry for entry in order["history"] if "tell attempt 1" in entry["detail"])
        placed = datetime.fromisoformat(order["placedAt"])
        assert datetime.fromisoformat(begun["at"]) >= placed + timedelta(seconds=25)
        assert await self.effects() == ["tell"]


class ForACooldown(Waiting):
    """For the end of the pause after a fraud check that failed."""

    async def comes_to_wait(self):
        await self.fault("bank", "down", "screen")
        await self.submit()
        await self.photographed()
        await self.until(lambda step: step["cooldowns"], "fraud")
        await self.fault("bank", "none", "screen")

    async def goes_on(self):
        await self.is_paid_once()
        assert (await self.steps())["fraud"]["cooldowns"] == 1


class ForTheBank(Waiting):
    """For a payment that the bank has accepted."""

    async def comes_to_wait(self):
        await self.fault("bank", "accept", "pay", **LATER)
        await self.submit()
        await self.photographed()
        await self.until(lambda step: step["notBefore"], "pay")

    async def goes_on(self):
        await self.is_paid_once()
        assert (await self.steps())["pay"]["failureCount"] == 0


class Held(Waiting):
    """For its release, while photographs are awaited."""

    async def comes_to_wait(self):
        await super().comes_to_wait()
        self.before = await self.awaits("photographs")
        assert (await self.ask("POST", "hold", **GRACE))[0] == 202

    async def goes_on(self):
        assert (await self.look())["heldBy"] == "grace"
        assert (await self.ask("POST", "release", **GRACE))[0] == 202
        assert await self.awaits("photographs") > self.before
        await super().goes_on()


class ForAReminder(Waiting):
    """For photographs, whose time is up while nobody is there to remind."""

    async def comes_to_wait(self):
        await super().comes_to_wait()
        await self.time_is_up("photographs", SOON)

    async def goes_on(self):
        await self.awaits("photographs", requests=2)
        await super().goes_on()
        details = [entry["detail"] for entry in (await self.look())["history"]]
        assert sum("photographs waits for an external event" in detail for detail in details) == 2


KINDS = (ForAnAnswer, ForADate, ForACooldown, ForTheBank, Held, ForAReminder)


@pytest.mark.proves("FLT-2", "ANS-1", "ANS-2", "SCH-9", "SCH-15", "AGT-11", "OPR-7")
async def test_all_is_killed_while_orders_wait(tmp_path):
    """In each way of waiting; with the worker, the broker, and Azurite: what was answered 202 is still there."""
    async with running(tmp_path, app=APP, agents=GROWN.agents, settings=TIMES, in_memory=False) as (
        stack,
        client,
    ):
        claims = [kind(stack, client) for kind in KINDS]
        await asyncio.gather(*(claim.comes_to_wait() for claim in claims))
        await asyncio.gather(stack.kill_host(), stack.broker.kill(), stack.azurite.kill())
        await asyncio.gather(stack.start_azurite(), stack.start_broker())
        await stack.start_host()
        await stack.wait_healthy()
        await asyncio.gather(*(claim.goes_on() for claim in claims))
        for claim in claims:
            await claim.owes_nothing()
