"""The console when things go wrong around it: calls that never end, wrong clocks, other versions, hasty hands."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import expect

from engine.words.catalogue import text
from tests.support.browsers import KEY

pytestmark = pytest.mark.soak

CAUSES = "/api/operator/alerts/causes"
ALERTS = "/api/operator/alerts"
OVERVIEW = "/api/operator/overview"
ORDERS = [f"b00-01JCX4T9Q8ZK7M2N5P6R3S1V0{last}" for last in "ABCDE"]


def listed(order_id):
    """An order as a list has it."""
    return {
        "orderId": order_id, "processState": "Error", "failureCount": 1, "priority": "normal", "workflow": "order",
        "situation": "failed", "outcome": "failed", "failedSteps": ["payment"], "reason": "card declined",
        "cause": "refused: card declined",
        "updatedAt": "2026-01-31T08:15:00Z", "placedAt": "2026-01-31T08:10:00Z",
    }  # fmt: skip


async def answer_bulk(page, *ids):
    """Let every dry run name these orders."""
    matching = [listed(order_id) for order_id in ids]
    body = {
        "dryRun": True, "until": "2026-01-31T09:00:00Z", "matching": matching, "done": [], "refused": [],
        "changed": [], "stillWaiting": [], "continuation": None,
    }  # fmt: skip
    await page.route("**/api/operator/bulk", lambda route: route.fulfill(json=body))


async def test_a_call_that_never_ends_is_shown_and_the_page_continues_to_poll(visitor, console):
    """After 15 seconds; what was shown stays, and the page is current again when the app answers."""
    page = await console("/", clock=True)
    await expect(page.locator("#sentence")).to_be_visible()
    await expect(page.locator(".age")).to_have_text(re.compile("^updated \\d+ s ago$"))
    await page.route(f"**{CAUSES}", lambda _: None)
    await page.keyboard.press("r")
    await page.clock.run_for(16_000)
    await expect(page.get_by_role("alert")).to_contain_text("did not answer within 15 s")
    await expect(page.locator("#sentence")).to_be_visible()
    await page.unroute_all()
    await page.clock.run_for(5_000)
    await visitor.has_its_answers()
    await expect(page.get_by_role("alert")).to_have_count(0)


async def test_a_browser_whose_clock_is_wrong_raises_no_false_alarm(console):
    """Ten minutes ahead: a supervisor that has just swept is not late."""
    page = await console("/orders", clock=True)
    await page.clock.set_fixed_time(datetime.now(UTC) + timedelta(minutes=10))
    await page.goto("/console#/")
    await expect(page.locator("#sentence")).to_be_visible()
    await expect(page.locator("#sentence")).not_to_contain_text("supervisor")


async def test_an_answer_of_another_shape_is_shown_and_ends_nothing(console):
    """As during an upgrade: the page offers to be loaded again."""
    page = await console("/")
    await expect(page.locator("#sentence")).to_be_visible()
    await page.route(f"**{OVERVIEW}", lambda route: route.fulfill(json={"at": "now"}))
    await page.keyboard.press("r")
    await expect(page.get_by_role("alert")).to_contain_text("does not understand")
    await expect(page.get_by_role("button", name="Reload")).to_be_visible()
    await page.unroute_all()
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("alert")).to_have_count(0)


async def test_a_new_tab_has_the_key_and_where_it_is_forgotten_all_forget_it(visitor, console):
    """Of the same browser; it is kept in memory alone."""
    first = await visitor.page("/console#/")
    await first.get_by_label("Operators' key").fill(KEY)
    await first.get_by_role("button", name="Open the console").click()
    await expect(first.locator("#sentence")).to_be_visible()
    second = await first.context.new_page()
    await second.goto("/console#/alerts")
    await expect(second.get_by_role("heading", name="Alerts", exact=True)).to_be_visible()
    await second.get_by_role("button", name=text("console.main.forget")).click()
    await expect(first.get_by_label("Operators' key")).to_be_visible()
    assert await first.evaluate("[sessionStorage.length, document.cookie]") == [0, ""]


async def test_a_double_click_asks_once(console):
    """However long the dry run takes that comes before the dialog."""
    page = await console("/orders?state=Error")
    await answer_bulk(page, *ORDERS)
    await page.keyboard.press("r")
    await page.get_by_role("button", name="Resubmit all of these").dblclick()
    await expect(page.get_by_role("dialog")).to_have_count(1)
    await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_a_search_that_was_left_draws_on_no_other_page(visitor, console):
    """Its answer comes when another page is open."""
    page = await console("/search")
    waits = []

    def never(route):
        waits.append(route)

    await page.route("**/api/operator/customers/find", never)
    await page.get_by_role("textbox").fill("ada@example.com")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Stop")).to_be_visible()
    await page.get_by_role("link", name="Poison", exact=True).first.click()
    await expect(page.get_by_role("heading", name="Search")).to_have_count(0)
    await visitor.has_its_answers()
    assert len(visitor.sent("POST", "find")) == len(waits) == 1
    assert page.url.endswith("#/poison")


async def test_back_returns_to_the_row_from_which_an_order_was_opened(console):
    """So the keys go on from there."""
    page = await console("/orders?state=Error")
    await answer_bulk(page, *ORDERS)
    await page.keyboard.press("r")
    await expect(page.locator("[data-row]")).to_have_count(len(ORDERS))
    for _ in range(3):
        await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await expect(page.locator("[data-row]")).to_have_count(0)
    await page.go_back()
    await expect(page.get_by_role("link", name=ORDERS[2])).to_be_focused()
    await page.keyboard.press("j")
    await expect(page.get_by_role("link", name=ORDERS[3])).to_be_focused()


async def test_who_takes_a_cause_takes_all_of_its_alerts(visitor, console):
    """Also those that are not among the newest."""
    keys = [f"key-{number}" for number in range(3)]
    cause = {
        "type": "OrderProcessing.OrderFailed", "step": "payment", "reason": "card declined", "isEnd": True,
        "cause": "refused: card declined", "count": 3, "open": 3, "first": "2026-01-31T08:00:00Z", "last": "2026-01-31T08:15:00Z",
        "unacknowledged": keys,
    }  # fmt: skip
    page = await console("/poison")
    await page.route(f"**{CAUSES}", lambda route: route.fulfill(json={"causes": [cause]}))
    await page.route(
        "**/acknowledge",
        lambda route: route.fulfill(json={"acknowledged": keys, "byOthers": []}),
    )
    await page.get_by_role("link", name="Alerts", exact=True).first.click()
    await page.get_by_role("button", name=text("console.parts.take")).click()
    await page.get_by_role("textbox", name="Why").fill("looking")
    await page.get_by_role("dialog").get_by_role("button", name=text("console.parts.take")).click()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    [sent] = visitor.sent("POST", "acknowledge")
    assert sent.post_data_json["alerts"] == keys


async def test_of_open_orders_trying_again_shows_those_alone_that_failed_before(console):
    """Both lists are asked for, and one situation is meant."""
    page = await console("/poison")
    orders = [
        listed(ORDERS[0]) | {"situation": "again"},
        listed(ORDERS[1]) | {"situation": "pending"},
    ]
    await page.route(
        "**/api/operator/orders?state=Pending*",
        lambda route: route.fulfill(json={"orders": orders, "continuation": None}),
    )
    await page.route(
        "**/api/operator/orders?state=Processing*",
        lambda route: route.fulfill(json={"orders": [], "continuation": None}),
    )
    await page.evaluate("location.hash = '#/orders?state=again'")
    await expect(page.locator("[data-row]")).to_have_text([ORDERS[0]])
