"""What takes long: every page at three widths, and in both themes, for whoever sees, hears or moves differently; long lists."""

import pytest
from playwright.async_api import expect

from engine.words.catalogue import text
from tests.support.axe import violations
from tests.support.browsers import KEY
from tests.support.failing import fault
from tests.support.submitting import new_order_id, submit

PAGES = [
    *(
        "/",
        "/shop",
        "/shop#/basket",
        "/shop#/orders",
        "/shop#/orders/b00-01JCX0000000000000000000AA",
    ),
    *(
        f"/console#/{name}"
        for name in (
            "",
            "orders?state=open",
            "orders?state=Error",
            "alerts",
            "notifications",
            "poison",
            "search",
            "faults",
            "live",
        )
    ),
]
SIZES = {"a desk": 1280, "a small phone": 360, "a desk at 200 %": 640}
ROWS = 1000
NOTE_MOVED = """window.moved = new Set();
const id = (row) => row.querySelector("[data-row]").innerText;
new MutationObserver((changes) =>
  changes.forEach(({ addedNodes }) => addedNodes.forEach((row) => moved.add(id(row)))),
).observe(document.querySelector("tbody"), { childList: true })"""

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
async def failed(client, stack):
    """An order in `Error`, one that hangs, and one that waits for an answer."""
    ids = [new_order_id() for _ in range(3)]
    await fault(client, "shipment", "reject", ids[0])
    await fault(client, "payment", "hang", ids[1])
    await submit(stack, *ids[:2], workflow="shipment-error")
    await submit(stack, ids[2], workflow="asked")
    await client.until(ids[0], "Error")
    for order_id in ids[1:]:
        await client.until(order_id, "Processing")
    return ids


@pytest.mark.parametrize(
    ("theme", "size"), [*(("light", size) for size in SIZES), ("dark", "a desk")]
)
async def test_no_page_has_a_fault_that_axe_finds_or_is_wider_than_the_screen(
    visitor, failed, theme, size
):
    """With a key and without, empty and full, and a dialog; the keyboard begins at a link that skips the head."""
    viewport = {"width": SIZES[size], "height": 800}
    for path in [
        *PAGES,
        *(f"/{page}#/orders/{order_id}" for order_id in failed for page in ("shop", "console")),
    ]:
        page = await visitor.page(path, key=KEY, viewport=viewport, color_scheme=theme)
        await visitor.has_its_answers()
        if "state=Error" in path:
            await page.get_by_role("button", name="Resubmit all of these").click()
            await page.get_by_role("dialog").wait_for()
        assert await violations(page) == [], path
        assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
        await page.context.close()
    page = await visitor.page("/console", viewport=viewport, color_scheme=theme)
    assert await violations(page) == []
    page = await visitor.page("/shop", viewport=viewport, color_scheme=theme)
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to content")).to_be_focused()


def sent_over(channel, **more):
    """A channel that has sent one digest and was refused another, as the API shows it."""
    message = {
        "id": "7f8f2c0e-31d5-5f0a-9f36-3d0d3c0b8a11", "at": "2026-01-31T08:15:00Z", "entries": 602,
        "subject": "[new] An order failed: order b03-1 and 601 more", "outcome": "sent",
    }  # fmt: skip
    refused = message | {"id": "0b8a11aa-31d5-5f0a-9f36-3d0d3c7f8f2c", "outcome": "refused"}
    usual = {"waiting": 0, "lastSentAt": message["at"], "pausedUntil": None, "failure": None}
    return {"channel": channel, **usual, "messages": [message, refused]} | more


CHANNELS = [
    sent_over("mail"),
    sent_over("teams", waiting=1000, failure="x.logic.azure.com answered 429 WorkflowRunThrottled")
    | {"pausedUntil": "2099-01-31T09:15:00Z"},
    sent_over("slack", failure="hooks.slack.com answered 404 no_service"),
    sent_over("smtp", lastSentAt=None, messages=[]),
]


@pytest.mark.parametrize("size", SIZES)
async def test_channels_in_every_state_can_be_read_by_everybody(console, size):
    """Each is a region of its name, in both themes and as wide as the screen."""
    page = await console("/poison")
    await page.route(
        "**/api/operator/channels", lambda route: route.fulfill(json={"channels": CHANNELS})
    )
    await page.set_viewport_size({"width": SIZES[size], "height": 800})
    await page.get_by_role("link", name="Notifications", exact=True).click()
    for name in ("Mail (Azure)", "Teams", "Slack", "Mail (SMTP)"):
        await expect(page.get_by_role("region", name=name, exact=True)).to_be_visible()
    rows = page.get_by_role("region", name="Teams", exact=True).locator("tbody tr")
    await expect(rows).to_have_count(2)
    await expect(rows.last.locator(".badge.error")).to_be_visible()
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme=theme)
        assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def listed(number, reason="out of stock"):
    order_id = f"b00-01JCX{number:021d}"
    more = {
        "priority": "normal",
        "workflow": "order",
        "outcome": "failed",
        "failedSteps": ["stock"],
    }
    return {
        "orderId": order_id,
        "processState": "Error",
        "failureCount": 0,
        "reason": reason,
        **more,
    } | {"updatedAt": "2026-01-31T08:15:00+00:00"}


@pytest.fixture
async def listing(console):
    """A page with a list of these orders, as they are each time that it asks."""
    orders = [listed(number) for number in range(ROWS)]

    async def answer(route):
        await route.fulfill(
            json={"matching": orders, "until": "2026-01-31T08:15:00+00:00", "continuation": None}
        )

    page = await console("/orders?state=Error")
    await page.route("**/api/operator/bulk", answer)
    await page.keyboard.press("r")
    await expect(page.locator("[data-row]")).to_have_count(ROWS)
    return page, orders


async def test_in_a_list_of_a_thousand_nothing_moves_under_whoever_reads_it(listing):
    """Focus and scroll stay where they are, also when rows go; changes are told, and shown when asked for."""
    page, orders = listing
    row = page.get_by_role("link", name=orders[500]["orderId"])
    await row.focus()
    top = await page.evaluate("scrollY")
    del orders[:20]
    orders[480] = orders[480] | {"reason": "changed"}
    await page.keyboard.press("r")
    await expect(
        page.get_by_role("status").filter(has_text=text("console.list.changes", count=21))
    ).to_be_visible()
    await expect(row).to_be_focused()
    assert await page.evaluate("scrollY") == pytest.approx(top, abs=100)
    await page.get_by_role("button", name="show", exact=True).click()
    await expect(page.locator("[data-row]")).to_have_count(ROWS - 20)
    await expect(page.locator("tr", has=row)).to_contain_text("changed")


async def test_of_a_list_of_a_thousand_only_the_rows_move_that_have_to(listing):
    """An order that fails once more goes from the beginning to the end; all others stay where they are."""
    page, orders = listing
    await page.evaluate(NOTE_MOVED)
    orders.append(orders.pop(0))
    await page.keyboard.press("r")
    await expect(page.locator("[data-row]").last).to_have_text(orders[-1]["orderId"])
    assert await page.locator("[data-row]").all_inner_texts() == [
        order["orderId"] for order in orders
    ]
    assert await page.evaluate("[...moved]") == [orders[-1]["orderId"]]
