"""The drill: from an alert to "mended, and it held", with the console alone, among 300 orders in all states."""

import csv
import re
from collections import Counter
from pathlib import Path

import pytest
from azure.storage.queue.aio import QueueClient
from playwright.async_api import expect

from engine.words.catalogue import text
from functions_alone.tests.support.waiting import eventually
from tests.support.browsers import KEY
from tests.support.client import PATIENT
from tests.support.stacks import running
from tests.support.submitting import new_order_id, submit

pytestmark = pytest.mark.soak

HIT = 103
PROCESSED, OUT_OF_STOCK, HANGING, HELD, CANCELLED, LATER, POISON = 140, 30, 12, 5, 5, 5, 3
"""In all 300."""
MOST_CLICKS = 18
"""From the link in the alert on."""
QUICKER = {"STEP_TIMEOUT_SECONDS": "20", "BUCKETS": "2"}
ACT = {"operator": "ada", "note": "before the drill"}


@pytest.fixture(scope="module")
async def drilled(tmp_path_factory):
    """A stack on which everything that can happen to an order has happened to some."""
    folder = tmp_path_factory.mktemp("drill")
    async with running(folder, settings=PATIENT | QUICKER) as (stack, client):
        yield stack, client, await fill(stack, client)


@pytest.fixture
def answered(drilled):
    """By the stack of the drill."""
    return drilled[0].http_url, None


async def fill(stack, client):
    """Have orders in all states; return their ids by what happened to them."""
    counts = {"hit": HIT, "hanging": HANGING, "held": HELD, "cancelled": CANCELLED}
    ids = {name: [new_order_id() for _ in range(count)] for name, count in counts.items()}
    ids["processed"] = [new_order_id() for _ in range(PROCESSED)]
    ids["undone"] = [new_order_id() for _ in range(OUT_OF_STOCK)]
    ids["later"] = [new_order_id() for _ in range(LATER)]
    await submit(stack, *ids["processed"])
    await submit(stack, *ids["later"], notBefore="2030-01-01T00:00:00Z")
    await until(client, Processed=PROCESSED)
    for order_id in ids["later"][:2]:
        await act(client, order_id, "hold")
    for order_id in ids["undone"]:
        match = {"orderId": order_id, "action": "reserve"}
        await client.fault("reject", service="inventory", match=match)
    await submit(stack, *ids["undone"])
    await client.fault("reject")
    await submit(stack, *ids["hit"], *ids["cancelled"])
    await until(client, Undone=OUT_OF_STOCK, Error=HIT + CANCELLED)
    for order_id in ids["cancelled"]:
        await act(client, order_id, "cancel")
    # Otherwise the undo of a cancelled order could meet the next fault.
    await until(client, Undone=OUT_OF_STOCK + CANCELLED)
    await client.fault("none", service="inventory")
    await client.fault("hang")
    await submit(stack, *ids["hanging"], *ids["held"])
    await until(client, Processing=HANGING + HELD)
    for order_id in ids["held"]:
        await act(client, order_id, "hold")
    queue = QueueClient.from_connection_string(stack.storage_connection_string, "order-submissions")
    async with queue:
        for number in range(POISON):
            await queue.send_message(f"no order {number}")
    await eventually(lambda: has_alerts(client, HIT + CANCELLED + OUT_OF_STOCK + POISON))
    return ids


async def act(client, order_id, action):
    status, answer = await client.request(
        "POST", f"/api/operator/orders/{order_id}/{action}", json=ACT
    )
    assert status == 202, answer


async def until(client, **counts):
    """Wait until lists have so many orders."""

    async def are():
        found = {name: await listed(client, name) for name in counts}
        assert found == counts
        return True

    await eventually(are)


async def listed(client, state):
    _, answer = await client.request("GET", f"/api/operator/orders?state={state}&limit=500")
    return len(answer["orders"])


async def has_alerts(client, count):
    """Whether so many alerts have come back."""
    _, answer = await client.request("GET", "/api/operator/alerts?limit=500")
    assert len(answer["alerts"]) >= count, Counter(alert["type"] for alert in answer["alerts"])
    return True


class Hand:
    """Counts what an operator does."""

    def __init__(self, page):
        self.page, self.clicks = page, 0

    async def click(self, role, name, within=None, **more):
        self.clicks += 1
        place = within or self.page
        await place.get_by_role(role, name=name, **more).first.click()

    async def confirm(self, button, note):
        """Say why, and do it."""
        dialog = self.page.get_by_role("dialog")
        await dialog.get_by_role("textbox", name="Why").fill(note)
        await self.click("button", button, within=dialog)


async def test_from_an_alert_to_mended_and_it_held(visitor, drilled, tmp_path):
    """Take it, see whom it hit, mend what is mended outside, resubmit exactly those, see them end."""
    _, client, ids = drilled
    page = await visitor.page("/console#/alerts")
    hand = Hand(page)
    await page.get_by_label("Operators' key").fill(KEY)
    await hand.click("button", "Open the console")
    cause = page.locator(".card", has_text="card declined")
    await expect(cause).to_contain_text(f"{HIT} alerts")
    await hand.click("button", text("console.parts.take"), within=cause)
    await page.get_by_role("textbox", name="Your name").fill("Grace")
    await hand.confirm(text("console.parts.take"), "I call the bank")
    await expect(cause).to_contain_text("to Grace")

    await hand.click("link", "Show orders", within=cause)
    assert await whom(hand, tmp_path / "hit.csv", text("list.Error")) == set(ids["hit"])
    await hand.click("link", "Undone", exact=True)
    undone = await whom(hand, tmp_path / "undone.csv", "Undone")
    assert undone == {*ids["undone"], *ids["cancelled"]}
    await page.go_back()
    await customer_of_the_first(hand)

    await client.fault("none")  # the bank is back
    await page.go_back()
    await hand.click("button", "Resubmit all of these")
    await page.get_by_label(text("console.dialog.number", count=HIT)).fill(str(HIT))
    await hand.confirm(f"Resubmit {HIT} orders", "the bank is back")
    await expect(page.locator(".outcome")).to_contain_text(f"{HIT} done, 0 refused, 0 changed")
    await hand.click("button", "Close")
    followed = page.locator("#followed")
    await expect(followed).to_contain_text(re.compile(f"{HIT} orders: {HIT} ended"))

    await hand.click("link", "Overview", exact=True)
    await expect(page.locator("#sentence")).to_have_text(f"{POISON} messages could not be read.")
    await hand.click("link", f"Show the {POISON} messages")
    await hand.click("button", "Drop", within=page.locator("#main"))
    await hand.confirm("Drop", "a test of the sender")
    await hand.click("link", "Audit", exact=True)
    await expect(page.locator("tbody tr").first).to_contain_text("the bank is back")
    assert hand.clicks <= MOST_CLICKS
    states = {await state_of(client, order_id) for order_id in ids["hit"]}
    assert states == {"Processed"}


async def whom(hand, path: Path, title):
    """Save the list, as whoever has to tell the customers does; return the orders in it."""
    await expect(hand.page).to_have_title(re.compile(rf"^\(\d+\) {title}$"))
    async with hand.page.expect_download() as download:
        await hand.click("button", "Save as CSV")
    await (await download.value).save_as(path)
    return orders_in(path)


def orders_in(path: Path):
    """The ids in a list that was saved."""
    rows = csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines())
    return {row["order"] for row in rows}


async def customer_of_the_first(hand):
    """Of one order at a time, and the history keeps who looked."""
    hand.clicks += 1
    await hand.page.locator("[data-row]").first.click()
    await hand.click("button", "Show personal data")
    await hand.confirm(re.compile("Show"), "to call the customer")
    await expect(hand.page.locator("pre")).to_contain_text("ada@example.com")


async def state_of(client, order_id):
    order = await client.order(order_id)
    return order and order["processState"]
