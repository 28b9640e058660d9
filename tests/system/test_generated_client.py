"""A client that somebody else's generator makes of the description: what it says is enough to use the app."""

import asyncio
import json
import os
import sys
from importlib import import_module
from pathlib import Path

import pytest

from functions_alone.tests.support.waiting import eventually
from tests.support.failing import fault
from tests.support.submitting import new_order_id, submit

pytestmark = pytest.mark.soak

TOOLS = Path(sys.executable).parent
NAME = "generated_client"
PURCHASE = {
    "customer": {"name": "Ada", "email": "ada@example.com"},
    "items": [{"sku": "TEA-SENCHA", "quantity": 2}],
}


@pytest.fixture
async def generated(client, tmp_path, monkeypatch):
    """What the generator makes of the description that the app gives; it complains of nothing."""
    _, description = await client.request("GET", "/api/openapi.json", key=False)
    (tmp_path / "openapi.json").write_text(json.dumps(description))
    generator = await asyncio.create_subprocess_exec(
        TOOLS / "openapi-python-client", "generate", "--path", "openapi.json",
        "--meta", "none", "--output-path", NAME, "--fail-on-warning",
        cwd=tmp_path, env=os.environ | {"PATH": f"{TOOLS}:{os.environ['PATH']}"},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await generator.communicate()
    assert generator.returncode == 0, output.decode()
    monkeypatch.syspath_prepend(tmp_path)
    yield import_module(f"{NAME}.client")
    for module in [name for name in sys.modules if name.partition(".")[0] == NAME]:
        del sys.modules[module]


def call(name):
    """One of the calls."""
    return import_module(f"{NAME}.api.default.{name}").asyncio


def model(name):
    """One of the models."""
    return getattr(import_module(f"{NAME}.models"), name)


@pytest.fixture
async def shop(client, generated):
    """The app as anybody calls it."""
    async with generated.Client(client.url, raise_on_unexpected_status=True) as shop:
        yield shop


@pytest.fixture
async def operator(client, generated):
    """The app as somebody calls it who has the key."""
    key = client.key["x-functions-key"]
    async with generated.AuthenticatedClient(
        client.url, key, prefix="", auth_header_name="x-functions-key"
    ) as made:
        yield made


async def test_a_generated_client_places_an_order_and_follows_it_until_it_is_processed(
    shop, operator
):
    """As the shop does, and as an operator; what is refused says why."""
    placed = await call("shop_place_order")(client=shop, body=model("Purchase").from_dict(PURCHASE))
    assert isinstance(placed, model("Placed"))

    async def processed():
        status = await call("shop_order")(placed.order_id, client=shop)
        assert status.process_state == model("ProcessState").PROCESSED
        return status

    status = await eventually(processed)
    assert {step.state for step in status.steps} == {model("StepState").COMPLETED}
    order = await call("operator_order")(placed.order_id, client=operator)
    assert (order.order_id, order.process_state) == (
        placed.order_id,
        model("ProcessState").PROCESSED,
    )
    refused = await call("shop_place_order")(
        client=shop, body=model("Purchase").from_dict(PURCHASE | {"items": []})
    )
    assert isinstance(refused, model("Problem"))


async def test_a_generated_client_resubmits_an_order_that_failed(shop, operator, client, stack):
    """An operator's tool may be one: it sees why the order failed, resubmits it, and sees it processed."""
    order_id = new_order_id()
    await fault(client, "payment", "reject", order_id)
    await submit(stack, order_id, workflow="order")
    await client.until(order_id, "Error")
    order = await call("operator_order")(order_id, client=operator)
    assert order.process_state == model("ProcessState").ERROR
    assert "resubmit" in order.actions
    await fault(client, "payment", "none", order_id)
    request = model("ResubmitRequest")(operator="Ada", note="the card works again")
    acted = await call("operator_resubmit")(order_id, client=operator, body=request)
    assert isinstance(acted, model("Acted"))

    async def processed():
        status = await call("shop_order")(order_id, client=shop)
        return status.process_state == model("ProcessState").PROCESSED

    await eventually(processed)
    again = await call("operator_resubmit")(order_id, client=operator, body=request)
    assert (type(again), again.status) == (model("Problem"), 409)
