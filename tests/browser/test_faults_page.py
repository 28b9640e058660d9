"""An operator breaks a simulated service, and sends orders that meet it: whatever the business is."""

import json
import re

import pytest
from playwright.async_api import expect

from engine.words.catalogue import text

SIMULATOR = re.compile("/simulator$")
ORDERS = 100

pytestmark = pytest.mark.soak


async def test_sample_orders_are_sent_by_the_way_that_every_business_has(console, client):
    """Of the first of them it is seen that it is done; the others are only counted."""
    page, placed = await console("/faults"), []

    async def answer(route):
        placed.append(None)
        if len(placed) > 1:
            return await route.fulfill(status=202, json={})
        answered = await route.fetch()
        placed[0] = (await answered.json())["orderId"]
        return await route.fulfill(response=answered)

    await page.route("**/simulator/sample", answer)
    await page.get_by_role("button", name=f"Send {ORDERS} orders").click()
    await expect(page.locator(".buttons")).to_contain_text(f"{ORDERS} of {ORDERS} sent")
    assert len(placed) == ORDERS
    await client.until(placed[0], "Processed")


async def test_only_simulated_services_are_there_to_be_broken(console, client):
    """One that the app does not call is not; a fault may be for a mark of the business."""
    page = await console("/faults")
    names = page.locator(".service h3")
    await expect(names).to_have_text(["payment", "inventory", "shipping"])
    await page.get_by_label("only for sku").fill("NOTHING")
    await (
        page.get_by_role("group", name="Fault of shipping")
        .get_by_role("button", name="Down")
        .click()
    )
    fault = page.locator("li li", has_text="down for sku NOTHING")
    await expect(fault).to_be_visible()
    await fault.get_by_role("button", name=text("console.faults.mend")).click()
    await expect(fault).to_have_count(0)


async def test_a_business_without_marks_and_sample_can_be_broken_too(console):
    """It has no such field, and no orders to send; where services are real there is nothing to break."""
    page = await console("/")
    simulator = {"services": [{"name": "bank", "faults": []}], "marks": [], "sample": None}
    await page.route(SIMULATOR, lambda route: route.fulfill(body=json.dumps(simulator)))
    await page.goto("/console#/faults")
    await expect(page.locator(".service h3")).to_have_text(["bank"])
    assert await page.get_by_label(re.compile("only for")).count() == 1
    await expect(page.get_by_role("button", name=re.compile("Send"))).to_have_count(0)
    await page.unroute(SIMULATOR)
    simulator["services"] = []
    await page.route(SIMULATOR, lambda route: route.fulfill(body=json.dumps(simulator)))
    await page.keyboard.press("r")
    await expect(page.locator("main")).to_contain_text("The services here are real")
