"""A second business on the whole system: `samples/claims`, of which `docs/reference/workflow.md` shows parts."""

import re
from functools import partial
from pathlib import Path

import pytest

from functions_alone.tests.support.waiting import eventually
from samples.claims.business import CLAIMS
from tests.support.failing import ended
from tests.support.interfaces import CommandLine
from tests.support.stacks import running
from tests.support.submitting import new_order_id

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs/reference/workflow.md"
PLACE = "samples/claims"
SHOWN = re.compile(
    r"`(?P<file>[\w/]+\.py)`[^\n]*:$|^```python\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL
)
"""A file that the page names before it shows parts of it, or such a part."""
STORM = {
    "claimNumber": "C-2041",
    "policyHolder": {"name": "Ada", "email": "ada@example.com"},
    "amount": {"amount": "950.00", "currency": "EUR"},
    "description": "A storm took the roof",
}
BUSINESS = "samples.claims.business:CLAIMS"
PATIENT = {"FAILURE_THRESHOLD": "20", "COOLDOWN_SECONDS": "2"}
"""No claim is given up because the machine is slow, and none rests for long."""


@pytest.fixture(scope="module")
async def claims(tmp_path_factory):
    """What `BUSINESS=samples.claims.business:CLAIMS make run` starts, and somebody who uses it."""
    folder = tmp_path_factory.mktemp("stack")
    async with running(
        folder, business=BUSINESS, agents=CLAIMS.agents, settings=PATIENT
    ) as stack_and_client:
        yield stack_and_client


def shown():
    """Yield each paragraph of code that the page shows, with the file that it names before."""
    file = None
    for match in SHOWN.finditer(PAGE.read_text()):
        file = match["file"] or file
        for part in (match["code"] or "").strip().split("\n\n\n"):
            if part:
                yield file, part


def test_what_the_page_shows_is_in_the_files_that_it_names():
    """To the letter, and in their order."""
    parts = list(shown())
    assert {file for file, _ in parts} == {
        f"{PLACE}/business.py",
        f"{PLACE}/test_claims.py",
    }
    for file, part in parts:
        assert f"\n{part}\n" in (ROOT / file).read_text(), f"{file} has no\n{part}"


async def actions(client, order_id):
    return await client.actions(order_id, [agent.name for agent in CLAIMS.agents])


@pytest.mark.soak
async def test_claims_have_the_console_and_no_page_of_their_own(claims):
    """No shop, no link to one, and none of its files; the root leads to the console."""
    _, client = claims
    assert (await client.request("GET", "/shop", key=False))[0] == 404
    async with client.http.get(client.url, allow_redirects=False) as answer:
        start = await answer.text()
    assert answer.status == 200
    assert 'href="/console"' in start
    assert 'href="/shop"' not in start
    async with client.http.get(f"{client.url}/console") as answer:
        page = await answer.text()
    assert 'data-page=""' in page
    (place,) = set(re.findall(r'"(/web/\w+)/', page))
    for file, status in (("operations/console/static/main.js", 200), ("shop/page/main.js", 404)):
        async with client.http.get(f"{client.url}{place}/{file}") as answer:
            assert answer.status == status, file


@pytest.mark.soak
async def test_the_check_of_a_deployment_works_with_claims(claims):
    """It places the sample of this business, and has it refused the step after which it waits."""
    _, client = claims
    code, out, err = await CommandLine(client).run("check")
    assert (code, err) == (0, "")
    done = [line.removeprefix("ok  ").partition(":")[0] for line in out.splitlines()]
    assert done == ["health", "order", "failure", "alert", "resubmit"]
    _, simulator = await client.request("GET", "/simulator")
    assert {service["name"]: service["faults"] for service in simulator["services"]} == {
        "assessor": [],
        "bank": [],
    }
    assert simulator["marks"] == []


ENDPOINT = "/api/workflows/claim/orders"


@pytest.mark.soak
@pytest.mark.proves("SUB-8")
async def test_a_claim_that_came_through_the_endpoint_is_cancelled_there(claims):
    """While its approval is under way, which is withdrawn; sent twice, it is one claim."""
    _, client = claims
    slow = {"mode": "slow", "latencyMs": 2000, "match": {"action": "approve"}}
    await client.request("PUT", "/simulator/assessor/faults", json=slow)
    key = {"Idempotency-Key": new_order_id()}
    answers = [
        await client.request("POST", ENDPOINT, key=False, json=STORM, headers=key) for _ in range(2)
    ]
    (order_id,) = {answer["orderId"] for _, answer in answers}
    status, followed = await client.request("GET", f"{ENDPOINT}/{order_id}", key=False)
    assert (status, followed["orderId"]) == (200, order_id)

    async def is_cancelled():
        cancelled, _ = await client.request("POST", f"{ENDPOINT}/{order_id}/cancel", key=False)
        return cancelled == 202

    await eventually(partial(is_approving, client, order_id))
    await eventually(is_cancelled)
    await client.request("PUT", "/simulator/assessor/faults", json={"mode": "none"})
    order = await ended(client, order_id)
    assert (order["outcome"], order["reason"]) == ("undone", "cancelled by the customer")
    assert ("customer", "cancelled") in {
        (entry["actor"], entry["event"]) for entry in order["history"]
    }
    assert "pay" not in await actions(client, order_id)


async def is_approving(client, order_id):
    order = await client.order(order_id)
    return order and next(row for row in order["steps"] if row["name"] == "approve")["attempts"]


(CLAIM,) = CLAIMS.workflows.all
