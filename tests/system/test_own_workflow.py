"""A second business: the page that makes it, `docs/your-own-workflow.md`, followed to the letter; and then worse."""

import os
import re
import subprocess
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pytest

from functions_alone.tests.support.waiting import eventually
from samples.claims.business import CLAIMS
from tests.support.another_business import copy_of_tree
from tests.support.client import KILLED, claims_and_recoveries_alternate, events
from tests.support.doors import CommandLine
from tests.support.failing import ended, steps_of
from tests.support.reading import follow, steps
from tests.support.stacks import running
from tests.support.submitting import new_order_id, submit

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs/your-own-workflow.md"
PLACE, START = "samples/claims", "samples/minimal"
SHOWN = re.compile(
    r"`(?P<file>[\w/]+\.py)`[^\n]*:$|^```python\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL
)
"""A file that the page names before it shows parts of it, or such a part."""
STORM = {
    "claimNumber": "C-2041",
    "policyHolder": {"name": "Ada", "email": "ada@example.com"},
    "amount": "950.00",
    "description": "A storm took the roof",
}
DONE = ["approve", "assess", "pay", "screen"]
BUSINESS = "samples.claims.business:CLAIMS"
PATIENT = {"FAILURE_THRESHOLD": "20", "COOLDOWN_SECONDS": "2"}
"""No claim is given up because the machine is slow, and none rests for long."""


@pytest.fixture(scope="module")
async def claims(tmp_path_factory):
    """What `BUSINESS=samples.claims.business:CLAIMS make run` starts, and somebody who uses it."""
    folder = tmp_path_factory.mktemp("stack")
    async with running(
        folder, business=BUSINESS, agents=CLAIMS.agents, settings=KILLED | PATIENT
    ) as stack_and_client:
        yield stack_and_client


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the repository, in which the page may be followed."""
    return copy_of_tree(tmp_path_factory.mktemp("copy") / "tree")


def contents(folder, which):
    return {path.name: path.read_bytes() for path in folder.glob(which) if path.is_file()}


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
        "shop/business.py",
    }
    for file, part in parts:
        assert f"\n{part}\n" in (ROOT / file).read_text(), f"{file} has no\n{part}"


@pytest.mark.soak
async def test_the_page_leads_to_a_running_business(claims, copy):
    """Its commands say what it shows: checks, unit tests, and two claims."""
    stack, _ = claims
    assert len(list(steps(PAGE))) > 10
    assert not (copy / "insurance").exists()
    assert contents(copy / PLACE, "*.py") == contents(ROOT / PLACE, "*.py")
    ports = {name.upper(): str(port) for name, port in asdict(stack.ports).items()}
    cache = {"MYPY_CACHE_DIR": str(ROOT / ".mypy_cache")}
    await follow(PAGE, stack.ports.http_port, cwd=copy, env=ports | cache)
    assert contents(copy / PLACE, "*") == contents(ROOT / PLACE, "*")


@pytest.mark.soak
def test_all_unit_tests_pass_in_what_the_page_leads_to(copy):
    """None of them needs more of the claims than the page makes."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "tests/unit", "tests/app"]
    ran = subprocess.run(
        command, cwd=copy, env=os.environ, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout[-4000:]


async def fault(client, agent, mode, order_id, action):
    """Let one operation of one claim fail, or be well again."""
    body = {"mode": mode, "latencyMs": 500, "match": {"orderId": order_id, "action": action}}
    status, answer = await client.request("PUT", f"/simulator/{agent}/faults", json=body)
    assert status == 200, answer


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
    _, told = await client.request("GET", "/simulator")
    assert {service["name"]: service["faults"] for service in told["services"]} == {
        "assessor": [],
        "bank": [],
    }
    assert told["marks"] == []


IN_TURN = (
    "fraud completed",
    "approve attempt 1 started",
    "approve completed",
    "pay attempt 1 started",
)


@pytest.mark.soak
@pytest.mark.proves("SCH-10")
async def test_a_claim_is_assessed_and_screened_at_once_then_approved_then_paid(claims):
    """Each once, however long one of them takes, and nothing is owed in the end."""
    stack, client = claims
    order_id = new_order_id()
    await fault(client, "bank", "slow", order_id, "screen")
    await submit(stack, order_id, payload=STORM)
    order = await ended(client, order_id)
    assert (order["processState"], order["workflow"]) == ("Processed", "claim")
    assert await actions(client, order_id) == DONE
    told = "; ".join(entry["detail"] for entry in order["history"])
    assert "assess attempt 1 started at assessor; fraud attempt 1 started at bank" in told
    assert re.findall("|".join(IN_TURN), told) == list(IN_TURN)
    assert await client.agenda_of(order_id) == []
    _, found = await client.request("GET", "/api/operator/orders?key=C-20&limit=500")
    assert order_id in {entry["orderId"] for entry in found["orders"]}
    assert order["keys"] == [STORM["claimNumber"]]


ENDPOINT = "/api/workflows/claim/orders"


@pytest.mark.soak
@pytest.mark.proves("SUB-8")
async def test_a_claim_that_came_through_the_door_is_cancelled_there(claims):
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


HANGING = {"approve": ("assessor", "approve"), "fraud": ("bank", "screen")}
"""Steps, with agent and operation: the first is tried again at once, the second after a rest."""


@pytest.mark.soak
@pytest.mark.proves("SUP-3", "FLT-1")
async def test_a_claim_that_hangs_is_recovered_and_tried_again(claims):
    """The supervisor gives it back; what was done before is not done twice."""
    stack, client = claims
    orders = {step: new_order_id() for step in HANGING}
    for step, order_id in orders.items():
        agent, action = HANGING[step]
        await fault(client, agent, "hang", order_id, action)
    await submit(stack, *orders.values(), payload=STORM)
    for step, order_id in orders.items():
        agent, action = HANGING[step]
        await eventually(partial(has_failed, client, order_id))
        await fault(client, agent, "none", order_id, action)
    for step, order_id in orders.items():
        order = await ended(client, order_id)
        assert order["processState"] == "Processed", order["history"]
        assert "recovered" in events(order)
        assert claims_and_recoveries_alternate(order)
        hung = next(candidate for candidate in order["steps"] if candidate["name"] == step)
        assert hung["attempts"] > 1
        assert (hung["cooldowns"] > 0) == (step == "fraud")
        assert await actions(client, order_id) == DONE


async def has_failed(client, order_id):
    order = await client.order(order_id)
    return order and order["failureCount"] >= 1


(CLAIM,) = CLAIMS.workflows.all
UNDONE_BY = {step.operation: step.compensation for step in CLAIM.steps if step.compensation}


@pytest.mark.soak
@pytest.mark.proves("SCH-12", "UND-1", "UND-5")
async def test_a_claim_whose_payment_is_refused_is_undone(claims):
    """All that was done and can be taken back is: the approval withdrawn before the assessment is cancelled."""
    stack, client = claims
    order_id = new_order_id()
    await fault(client, "bank", "reject", order_id, "pay")
    await submit(stack, order_id, payload=STORM)
    order = await ended(client, order_id)
    assert (order["outcome"], order["reason"]) == ("undone", "pay: account closed")
    assert steps_of(order) == {
        "assess": "Undone",
        "fraud": "Completed",
        "approve": "Undone",
        "pay": "Undone",
    }
    happened = await actions(client, order_id)
    assert "pay" not in happened
    assert [do for do, undo in UNDONE_BY.items() if do in happened and undo not in happened] == []
    assert sorted(set(happened)) == happened


@pytest.mark.soak
@pytest.mark.proves("FLT-2")
async def test_claims_in_the_middle_of_which_the_host_is_killed_end_right(claims):
    """Another host takes them up: each is paid, once, though the answers of the first try were lost."""
    stack, client = claims
    orders = [new_order_id() for _ in range(3)]
    for order_id in orders:
        await fault(client, "assessor", "late", order_id, "approve")
    await submit(stack, *orders, payload=STORM)
    for order_id in orders:
        await eventually(partial(is_approved, client, order_id))
    await stack.kill_host()
    await stack.start_host()
    for order_id in orders:
        await fault(client, "assessor", "none", order_id, "approve")
    for order_id in orders:
        order = await ended(client, order_id)
        assert order["processState"] == "Processed", order["history"]
        assert claims_and_recoveries_alternate(order), order["history"]
        assert await actions(client, order_id) == DONE
        assert await client.agenda_of(order_id) == []


async def is_approved(client, order_id):
    return "approve" in await actions(client, order_id)
