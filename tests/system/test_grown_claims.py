"""The grown claims on the whole system: ways through `samples/claims_with_approvals` that time, links and queues lead.

All of them at once. `samples/claims_with_approvals/test_grown.py` goes every way in memory.
"""

import asyncio
import inspect

import pytest

from development.business import named
from engine.domain.causes import Cause, Code
from engine.words.causes import words_of
from tests.support.claiming import COSTLY, GRACE, PICTURES, GrownClaim
from tests.support.client import QUICK
from tests.support.stacks import running

pytestmark = pytest.mark.soak

TIMES = QUICK | {
    "COOLDOWN_SECONDS": "2",
    "STEP_TIMEOUT_SECONDS": "5",
    "OUTBOX_SCHEDULE": "* * * * * *",
}


def happened(order):
    """The events of its history, each with its step."""
    events = (event for entry in order["history"] for event in entry["events"])
    return [(event["event"], event.get("step")) for event in events]


async def a_customer_who_says_nothing_is_reminded_twice(claim):
    slow = GrownClaim(claim.stack, claim.client)
    for reminded in (claim, slow):
        await reminded.submit()
    for requests in (1, 2, 3):
        for reminded in (claim, slow):
            await reminded.awaits("photographs", requests)
        if requests == 3:
            await slow.answer("photographs", answer=PICTURES)
        for reminded in (claim, slow) if requests < 3 else (claim,):
            await reminded.time_is_up("photographs")
    order = await claim.is_undone()
    assert happened(order).count(("step-started", "photographs")) == 3
    assert await claim.effects() == []
    await slow.ends("Processed")


async def photographs_are_checked(claim):
    """And come over a link, without a key."""
    await (await claim.submit()).awaits("photographs")
    status, answer = await claim.ask(
        "POST", "answers/photographs", operator="grace", answer={"urls": []}
    )
    assert (status, answer["faults"][0].partition(":")[0]) == (400, "answer.urls")
    _, link = await claim.ask("POST", "answers/photographs/link", **GRACE)
    path = link["callbackUrl"].removeprefix(claim.client.url)
    status, shown = await claim.client.request("GET", path, key=False)
    assert (status, shown["isOpen"]) == (200, True)
    for expected in ("recorded", "known"):
        status, answer = await claim.client.request(
            "POST", path, key=False, json={"answer": PICTURES}
        )
        assert (status, answer["status"]) == (200, expected)
    await claim.ends("Processed")


async def above_the_limit_a_person_approves(claim):
    await (await claim.submit(COSTLY)).photographed()
    await claim.awaits("approval")
    assert await claim.effects() == ["assess", "screen"]
    await claim.answer("approval", answer={"limit": {"amount": "50000.00", "currency": "EUR"}})
    await claim.ends("Processed")


async def what_is_not_covered_is_taken_back(claim):
    await (await (await claim.fault("assessor", "reject", "assess")).submit()).photographed()
    await claim.is_undone("assess: not covered by the policy")
    assert "pay" not in await claim.effects()


async def the_bank_pays_later(claim):
    later = {"latencyMs": 4000}
    await (await (await claim.fault("bank", "accept", "pay", **later)).submit()).photographed()
    order = await claim.ends("Processed")
    assert ("deferred", "pay") in happened(order)
    assert await claim.effects("bank") == ["pay", "screen"]


async def past_the_payment_there_is_no_way_back(claim):
    await (await (await claim.fault("bank", "late", "pay", latencyMs=9000)).submit()).photographed()
    await claim.ends("Error", "failed")
    status, answer = await claim.ask("POST", "cancel", **GRACE)
    why = words_of(Cause(Code.PIVOT_PASSED, {"steps": ["pay"]}))
    assert (status, why in answer["detail"]) == (409, True)
    assert await claim.effects("assessor") == ["assess"]


async def a_claim_is_paid_even_if_nobody_can_be_notified(claim):
    """With an answer by the queue, which was there before the claim was recorded."""
    await claim.fault("post", "reject", "tell")
    await claim.answer_by_queue("photographs", answer=PICTURES)
    await claim.submit()
    order = await claim.ends("Processed")
    assert {step["name"]: step["state"] for step in order["steps"]}["tell"] == "Skipped"


WAYS = [
    way
    for name, way in list(globals().items())
    if inspect.isfunction(way) and way.__module__ == __name__ and inspect.iscoroutinefunction(way)
]


BUSINESS = "samples.claims_with_approvals.business:GROWN"


@pytest.fixture(scope="module")
async def gone(tmp_path_factory):
    """All ways, begun at once on what `BUSINESS=samples.claims_with_approvals.business:GROWN make run` starts."""
    business = named(BUSINESS)
    folder = tmp_path_factory.mktemp("stack")
    async with running(folder, business=BUSINESS, agents=business.agents, settings=TIMES) as (
        stack,
        client,
    ):
        begun = ((way, way(GrownClaim(stack, client))) for way in WAYS)
        tasks = {way.__name__: asyncio.create_task(going) for way, going in begun}
        yield tasks
        for task in tasks.values():
            task.cancel()


@pytest.mark.proves("ANS-1", "ANS-2", "ANS-3", "ANS-9", "SCH-13", "SCH-14", "UND-6")
@pytest.mark.parametrize("way", [way.__name__ for way in WAYS])
async def test_a_claim_goes_every_way_on_the_whole_system(gone, way):
    """As it does in memory."""
    await gone[way]
