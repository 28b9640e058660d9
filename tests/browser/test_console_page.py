"""Operators put right what failed, in a real browser (OPR-5)."""

import re
from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import pytest
from playwright.async_api import expect

from engine.words.catalogue import text
from functions_alone.tests.support.waiting import eventually
from tests.support.browsers import KEY
from tests.support.failing import fault
from tests.support.submitting import new_order_id, submit

WRONG = "the-wrong-key"
FIGURES = "/api/operator/figures"


@pytest.fixture(scope="module")
async def stuck(client, stack):
    """Orders that wait for an operator, one for each who takes one: what they cost in time they cost together."""
    ids = await failed(client, stack, 3)
    for order_id in ids:
        await eventually(partial(client.alerts, order_id))
    return ids


async def failed(client, stack, count, step="shipment"):
    """Orders that wait for an operator, because this step of theirs was refused."""
    ids = [new_order_id() for _ in range(count)]
    for order_id in ids:
        await fault(client, step, "reject", order_id)
    await submit(stack, *ids, workflow=f"{step}-error")
    for order_id in ids:
        await client.until(order_id, "Error")
    return ids


async def fill(page, note="the address was corrected"):
    """Say in the dialog who it is, and why."""
    await page.get_by_role("textbox", name="Your name").fill("Grace")
    await page.get_by_role("textbox", name="Why").fill(note)


@pytest.mark.proves("OPR-5", "OPR-3")
async def test_from_an_alert_to_an_order_that_is_right_again(visitor, stuck):
    """With the key and not without: open the alert, read why, mend the fault, resubmit, see it end."""
    order_id = stuck.pop()
    page = await visitor.page("/console#/alerts")
    for key in (WRONG, KEY):
        await page.get_by_label("Operators' key").fill(key)
        await page.get_by_role("button", name="Open the console").click()
        if key == WRONG:
            await expect(page.get_by_role("alert")).to_have_text(
                "The operators' key was not accepted."
            )
            assert await page.evaluate("sessionStorage.getItem('operator-key')") is None
    await page.get_by_role("link", name=order_id).click()
    await expect(page.locator(".summary")).to_contain_text("address not deliverable")
    await expect(page.locator(".graph g.error")).to_contain_text("shipment")

    await page.get_by_role("link", name="Faults", exact=True).first.click()
    await (
        page.locator("li li", has_text=f"reject for order {order_id}")
        .get_by_role("button", name=text("console.faults.mend"))
        .click()
    )
    await expect(page.locator("main")).not_to_contain_text(order_id)

    await page.go_back()
    await page.get_by_role("button", name="Resubmit").click()
    await fill(page)
    await page.get_by_role("dialog").get_by_role("button", name="Resubmit").click()
    await expect(page.locator(".head .badge")).to_have_text("Processed")
    await expect(page.locator("tr", has_text="resubmitted")).to_contain_text("operator/Grace")
    assert await page.locator(".graph g.processed").count() == 4

    await page.get_by_role("link", name="Alerts", exact=True).first.click()
    alert = page.locator("tr.grey", has_text=order_id)
    await expect(alert).to_contain_text("closed")

    assert [
        request.url for request in visitor.requests if KEY in request.url or WRONG in request.url
    ] == []
    kept = await page.evaluate(
        "[JSON.stringify(localStorage), document.cookie, sessionStorage.getItem('operator-key')]"
    )
    assert KEY not in kept[0]
    assert kept[1:] == ["", KEY]


@pytest.mark.soak
@pytest.mark.proves("OPR-5", "OPR-4")
async def test_a_cancel_asks_first_and_then_shows_the_undo(visitor, console, stuck):
    """Escape, Enter and Cancel do nothing; what was done is taken back, step by step."""
    order_id = stuck.pop()
    page = await console(f"/orders/{order_id}")
    for leave in ("Escape", "Enter"):
        await page.get_by_role("button", name="Cancel the order").click()
        await expect(
            page.get_by_role("dialog").get_by_role("button", name="Cancel", exact=True)
        ).to_be_focused()
        await page.keyboard.press(leave)
        await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.get_by_role("button", name="Cancel the order").click()
    await fill(page)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog")).to_be_visible()
    assert visitor.sent("POST") == []
    await page.get_by_role("button", name=text("action.cancel.button")).click()
    await expect(page.locator(".head .badge")).to_have_text("Undone")
    assert sorted(await page.locator(".graph g.undo .name").all_text_contents()) == [
        "payment",
        "shipment",
        "stock",
    ]


async def away_for_a_cancel(route):
    if "cancel" in route.request.post_data:
        await route.fulfill(status=503, json={"title": "away"})
    else:
        await route.continue_()


@pytest.mark.proves("OPR-5", "OPR-3")
async def test_a_bulk_action_touches_what_was_shown_and_leaves_later_failures_alone(
    console, client, stack
):
    """Two were listed; the third failed while the operator was still writing the note."""
    listed = await failed(client, stack, 2, "stock")
    page = await console("/orders?state=Error&step=stock&cause=refused%3A+out+of+stock")
    rows = page.locator("[data-row]")

    async def all_are_listed():
        await page.keyboard.press("r")
        return set(listed) <= set(await rows.all_inner_texts())

    await eventually(all_are_listed)
    (later,) = await failed(client, stack, 1, "stock")
    for order_id in listed:
        await fault(client, "stock", "none", order_id)
    await page.route("**/api/operator/bulk", away_for_a_cancel)
    await page.get_by_role("button", name="Cancel all of these").click()
    await expect(page.get_by_role("alert")).to_contain_text("away")
    await page.get_by_role("button", name="Resubmit all of these").click()
    await fill(page)
    await page.get_by_role("dialog").get_by_role("button", name="Resubmit").click()
    await expect(page.locator(".outcome")).to_contain_text(
        re.compile(r"\d+ done, 0 refused, 0 changed")
    )
    for order_id in listed:
        await client.until(order_id, "Processed")
    assert [entry["event"] for entry in (await client.order(later))["history"]].count(
        "resubmitted"
    ) == 0


async def two_pages(route):
    """Answer a bulk action, or its dry run, with two pages that hold 30 orders together."""
    last = "continuation" in route.request.post_data_json
    ids = [f"b00-01JCX{number:021d}" for number in range(20 * last, 20 + 10 * last)]
    orders = [
        {"orderId": order_id, "failedSteps": [], "cause": "refused: out of stock"}
        for order_id in ids
    ]
    page = {"matching": orders, "done": ids, "refused": [], "changed": [], "stillWaiting": []}
    more = {"until": "2026-01-31T08:15:00Z", "continuation": None if last else "more"}
    await route.fulfill(json=page | more)


@pytest.mark.soak
@pytest.mark.proves("OPR-5", "OPR-3")
async def test_whoever_acts_on_many_orders_types_their_number_and_means_every_page(console):
    """Any other number lets nothing begin."""
    page = await console("/faults")
    await page.route("**/api/operator/bulk", two_pages)
    await page.goto("/console#/orders?state=Error&step=stock")
    await page.get_by_role("button", name="Resubmit all of these").click()
    await fill(page)
    begin = page.get_by_role("dialog").get_by_role("button", name="Resubmit 30 orders")
    for number, ready in (("20", False), ("30", True)):
        await page.get_by_label(text("console.dialog.number", count=30)).fill(number)
        assert await begin.is_enabled() is ready
    await begin.click()
    await expect(page.locator(".outcome")).to_contain_text("30 done, 0 refused, 0 changed")


@pytest.mark.soak
@pytest.mark.proves("OPR-5", "OPR-1")
async def test_a_list_stays_the_same_through_back_reload_and_a_link(console, stuck):
    """Its filter stands in the address; the keyboard goes through its rows."""
    order_id = stuck[0]
    address = f"/orders?state=Error&step=shipment&text={order_id}"
    page = await console(address)
    row = page.get_by_role("link", name=order_id)
    await expect(row).to_be_visible()
    await page.keyboard.press("j")
    await expect(row).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator(".head h1")).to_contain_text(order_id)
    await page.go_back()
    await expect(row).to_be_visible()
    await page.reload()
    await expect(row).to_be_visible()
    pasted = await console(address)
    await expect(pasted.locator("[data-row]")).to_have_text([order_id])
    await expect(pasted.get_by_label("Text")).to_have_value(order_id)
    bulk = pasted.get_by_role("button", name="all of these")
    await expect(bulk, "a bulk action would touch orders that are not listed").to_have_count(0)
    await pasted.goto("/console#/orders?state=Error&workflow=nobody-has-it")
    await expect(pasted.get_by_role("link", name=order_id)).to_have_count(0)
    await pasted.goto("/console#/orders?state=Error&workflow=shipment-error")
    await expect(pasted.get_by_role("link", name=order_id)).to_be_visible()
    await expect(bulk).to_have_count(2)
    await pasted.get_by_role("link", name="Clear").click()
    await expect(bulk).to_have_count(2)
    await pasted.goto("/console#/orders?state=open&workflow=nobody-has-it")
    await expect(pasted.get_by_text(text("console.list.none-fits"))).to_be_visible()


@pytest.mark.soak
@pytest.mark.proves("OPR-5", "OPR-1")
async def test_of_very_many_orders_a_part_is_read_and_the_page_says_so(visitor, console, stuck):
    """A list reads one page at each look, and another one when asked for it."""
    page = await console("/poison", clock=True)
    listed = MoreAndMore()
    await page.route("**/api/operator/orders?state=Error*", listed.answer)
    await page.goto(f"/console#/orders?state=Error&text={stuck[0]}")
    await expect(page.get_by_role("button", name="Show more")).to_be_visible()
    assert await pages_of_a_refresh(page, listed, rows=1) == 1
    await page.get_by_role("button", name="Show more").click()
    await expect(page.locator("[data-row]")).to_have_count(2)
    assert await pages_of_a_refresh(page, listed, rows=2) == 2


class MoreAndMore:
    """Answers as if there were always more orders than are listed, each time with another order."""

    def __init__(self):
        self.ids = []

    async def answer(self, route):
        self.ids.append(new_order_id())
        order = {
            "orderId": self.ids[-1],
            "processState": "Error",
            "failureCount": 0,
            "reason": "it is late",
        }
        orders = [order | {"failedSteps": [], "updatedAt": "2026-01-31T08:15:00+00:00"}]
        await route.fulfill(json={"orders": orders, "continuation": "more"})


async def pages_of_a_refresh(page, listed, rows):
    """How many pages of orders the page asks for to refresh itself, at least so many."""
    before = len(listed.ids)

    async def is_drawn():
        requested = listed.ids[before:]
        return len(requested) >= rows and await drawn.all_text_contents() == requested

    drawn = page.locator("[data-row]")
    await page.keyboard.press("r")
    await eventually(is_drawn)
    return len(listed.ids) - before


@pytest.mark.proves("OPR-5", "OPR-1")
@pytest.mark.soak
async def test_an_id_is_found_by_its_beginning_in_capitals_or_not(console, stuck):
    """Also the letter of the bucket, which is a small one."""
    page = await console("/search")
    for part in (stuck[0][:20], stuck[0]):
        await page.get_by_role("textbox").fill(part.swapcase())
        await page.keyboard.press("Enter")
        await expect(page.locator("main")).to_contain_text(stuck[0])
    await expect(page.locator(".head h1")).to_contain_text(stuck[0])


FOUND = {
    "orderId": "b00-01JCX4T9Q8ZK7M2N5P6R3S1V0W",
    "processState": "Processed",
    "failureCount": 0,
    "priority": "normal",
    "workflow": "claim",
    "situation": "processed",
    "outcome": None,
    "failedSteps": [],
    "reason": None,
    "updatedAt": "2026-01-31T08:15:00Z",
}


@pytest.mark.soak
async def test_a_key_of_the_business_is_found_and_any_other_text_among_open_orders(console, stuck):
    """In any state; the key stands in the address, so that it can be passed on."""
    page = await console("/search")
    await page.route(
        "**/api/operator/orders?key=C-20*",
        lambda route: route.fulfill(json={"orders": [FOUND], "continuation": None}),
    )
    await page.get_by_role("textbox").fill("C-20")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("link", name=FOUND["orderId"])).to_be_visible()
    await expect(page.locator("tbody .badge")).to_have_text("Processed")
    assert page.url.endswith("#/search?key=C-20")

    async def with_keys(route):
        answer = await (await route.fetch()).json()
        await route.fulfill(json=answer | {"keys": ["C-20", "<b>"]})

    place = f"/orders/{stuck[0]}"
    await page.route(f"**/api/operator{place}", with_keys)
    await page.goto(f"/console#{place}")
    await expect(page.locator(".head")).to_contain_text("known as C-20, <b>")
    await page.goto("/console#/search")
    await page.get_by_role("textbox").fill("not deliverable")
    await page.keyboard.press("Enter")
    await expect(page.locator("main")).to_contain_text(stuck[0])
    assert "text=not" in page.url


@pytest.mark.soak
async def test_the_last_hour_is_shown_in_pictures_and_as_a_table(visitor, console, client):
    """What ended, and how long steps took; at the end of the first page, and asked for once a minute at most."""
    page = await console("/search", clock=True)
    await page.route(f"**{FIGURES}", two_orders_ended)
    await page.goto("/console#/")
    last = page.locator("section").last
    await expect(last.get_by_role("heading", name="The last hour")).to_be_visible()
    await expect(last.get_by_role("img").first).to_have_attribute(
        "aria-label", re.compile(r"orders? processed")
    )
    await expect(last.locator("rect.processed").first).to_be_visible()
    payment = last.locator(".spark", has_text="payment")
    await expect(payment).to_contain_text(re.compile(r"latest .+s, longest .+s"))
    await expect(payment.locator("path")).to_have_attribute("d", re.compile(r"^M[\d.]+ [\d.]+h1"))
    await last.get_by_text(text("console.charts.as-table")).click()
    await expect(last.locator("tbody tr").last).to_contain_text("longest")
    for _ in range(3):
        await page.keyboard.press("r")
        await visitor.has_its_answers()
    assert len(visitor.sent("GET", FIGURES)) == 1
    await page.route(f"**{FIGURES}", nothing_ended)
    await page.clock.run_for(61_000)
    await expect(last).to_contain_text(text("console.charts.none", until="")[:-2])
    await page.route(
        f"**{FIGURES}", lambda route: route.fulfill(status=503, json={"title": "away"})
    )
    async with page.expect_response(f"**{FIGURES}"):
        await page.clock.run_for(61_000)
    await visitor.has_its_answers()
    await expect(page.get_by_role("alert"), "the page shows the rest").to_have_count(0)


async def two_orders_ended(route):
    minute = {"at": "2026-01-31T08:14:00Z", "processed": 1, "failed": 1, "undone": 0}
    steps = {"payment": {"count": 2, "total": 90, "longest": 60}}
    times = {"since": "2026-01-31T07:15:00Z", "until": "2026-01-31T08:15:00Z"}
    await route.fulfill(json=times | {"minutes": [minute | {"steps": steps}]})


async def nothing_ended(route):
    await route.fulfill(
        json={"since": "2026-01-31T07:15:00Z", "until": "2026-01-31T08:15:00Z", "minutes": []}
    )


@pytest.mark.soak
@pytest.mark.proves("OPR-5")
async def test_a_poison_message_is_read_and_dropped(console, client, stack):
    """Whatever it holds is shown as text."""
    hostile = "<img src=x onerror=alert(1)>"
    await submit_text(stack, hostile)

    async def is_kept():
        _, answer = await client.request("GET", "/api/operator/poison")
        return [poison for poison in answer["messages"] if poison["body"] == hostile]

    await eventually(is_kept)
    page = await console("/poison")
    message = page.locator(".message", has_text=hostile)
    await expect(message).to_have_count(1)
    assert await page.locator("main img").count() == 0
    await message.get_by_role("button", name="Drop").click()
    await fill(page, note="somebody played")
    await page.get_by_role("button", name=text("action.drop.button")).click()
    await expect(message).to_have_count(0)


async def submit_text(stack, text):
    from azure.storage.queue.aio import QueueClient  # noqa: PLC0415

    async with QueueClient.from_connection_string(
        stack.storage_connection_string, "order-submissions"
    ) as queue:
        await queue.send_message(text)


async def is_matched(client, action, order_id):
    """Whether a bulk action means the order by now: none that has only just changed."""
    body = {"action": action, "operator": "Grace", "note": "looks", "limit": 200}
    status, page = await client.request("POST", "/api/operator/bulk", json=body)
    assert status == 200, page
    return order_id in [order["orderId"] for order in page["matching"]]


@pytest.mark.soak
@pytest.mark.proves("OPR-5", "OPR-7")
async def test_an_order_is_held_on_its_page_and_released_in_the_list_of_what_is_held(
    console, client, stack
):
    """The page says who holds it; the list says why, and offers what can be done to all of it."""
    order_id = new_order_id()
    await fault(client, "payment", "down", order_id)
    await submit(stack, order_id, workflow="order")
    await client.until(order_id, "Processing")
    page = await console(f"/orders/{order_id}")
    await page.get_by_role("button", name="Hold", exact=True).click()
    await fill(page)
    await page.get_by_role("button", name=text("action.hold.button")).click()
    await expect(page.locator(".head .badge")).to_have_text("Held")
    await expect(page.locator(".summary")).to_contain_text("by Grace since")
    await fault(client, "payment", "none", order_id)
    await client.until(order_id, "Pending")
    await eventually(partial(is_matched, client, "release", order_id))
    await page.goto("/console#/orders?state=Held")
    await expect(page.locator("tr", has_text=order_id)).to_contain_text("by Grace")
    await page.get_by_role("button", name="Release all of these").click()
    await fill(page)
    await (
        page.get_by_role("dialog")
        .get_by_role("button", name=re.compile(r"Release [1-9]\d* order"))
        .click()
    )
    await expect(page.locator(".outcome")).to_contain_text("0 refused")
    await client.until(order_id, "Processed")


@pytest.mark.soak
@pytest.mark.proves("OPR-5", "OPR-9")
async def test_an_agent_is_paused_until_a_time_and_resumed_on_the_first_page(console, client):
    """The time is typed in the reader's zone; the page says who paused the agent, and why."""
    page = await console("/", timezone_id="Asia/Kolkata")
    await page.get_by_role("button", name="Pause shipping").click()
    dialog = page.get_by_role("dialog")
    await expect(
        dialog.get_by_role("button", name=text("action.pause-agent.button"))
    ).to_be_disabled()
    until = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(minutes=3)
    typed = until.astimezone(ZoneInfo("Asia/Kolkata")).strftime("%Y-%m-%dT%H:%M")
    await fill(page, note="bank maintenance")
    await expect(
        dialog.get_by_role("button", name=text("action.pause-agent.button"))
    ).to_be_disabled()
    await page.get_by_label("Until (Asia/").fill(typed)
    await dialog.get_by_role("button", name=text("action.pause-agent.button")).click()
    await expect(page.get_by_text("by Grace: bank maintenance")).to_be_visible()
    _, overview = await client.request("GET", "/api/operator/overview")
    (paused,) = overview["pausedAgents"]
    assert (paused["agent"], datetime.fromisoformat(paused["until"])) == ("shipping", until)
    await page.get_by_role("button", name="Resume shipping").click()
    await fill(page, note="it is back")
    await (
        page.get_by_role("dialog")
        .get_by_role("button", name=text("action.resume-agent.button"))
        .click()
    )
    await expect(page.get_by_role("button", name="Pause shipping")).to_be_visible()
