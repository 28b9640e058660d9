"""A customer orders in a real browser, and follows the order."""

import re
from uuid import UUID

import pytest
from playwright.async_api import expect

from tests.support.failing import fault
from tests.support.submitting import new_order_id, submit

TAKEN_BACK = ["Put back on the shelf", "Payment released", "Parcel called back"]
PHONE = {"width": 390, "height": 844}


async def test_a_customer_orders_and_sees_the_order_finish(visitor, client):
    """By phone: what is missing is said at the field, a double tap buys once, and the browser remembers the order."""
    page = await visitor.page("/", viewport=PHONE)
    await page.get_by_role("link", name="Shop").click()
    notice = page.get_by_text("A demonstration: payments go to a simulated service.")
    await expect(notice).to_be_visible()
    await page.get_by_role("button", name="Add Sencha").click()
    await expect(page.get_by_role("status")).to_have_text("Sencha added; 1 in the basket")
    await page.get_by_role("link", name="Basket").click()
    order = page.get_by_role("button", name="Order now")
    await order.click()
    await expect(page.locator("#faults")).to_be_focused()
    await page.get_by_role("link", name="Enter your name").click()
    await page.keyboard.type("Ada")
    await page.get_by_label("E-mail").fill("ada@example.com")
    await order.evaluate("(button) => { button.click(); button.click(); }")
    await page.wait_for_url(re.compile("#/orders/b"))
    await expect(page.locator(".line")).to_have_text("All done. Your parcel is on its way.")
    assert await page.locator(".steps .badge").all_inner_texts() == [
        "Your tea is set aside",
        "Payment checked",
        "Sent to you",
        "Paid",
    ]
    await expect(notice).to_be_visible()
    (sent,) = visitor.sent("POST", "/api/orders")
    assert UUID((await sent.all_headers())["idempotency-key"]).version == 4
    await page.goto("/shop#/orders")
    await page.reload()
    await expect(
        page.get_by_role("link", name=re.compile("1 . Sencha.*All done", re.DOTALL))
    ).to_be_visible()


async def test_a_basket_whose_answer_was_lost_is_bought_once(visitor):
    """Sent again under the same key; with other details it is refused, and the customer is told why."""
    page = await visitor.page("/shop")
    await page.get_by_role("button", name="Add Rooibos").click()
    await page.goto("/shop#/basket")
    await page.get_by_label("Name").fill("Ada")
    await page.get_by_label("E-mail").fill("ada@example.com")

    async def lose(route):
        await route.fetch()
        await route.abort()

    await page.route("**/api/orders", lose, times=1)
    await page.get_by_role("button", name="Order now").click()
    await expect(page.locator("#faults")).to_contain_text("Nothing is lost: try again in a moment.")
    await page.get_by_label("Name").fill("Grace")
    await page.get_by_role("button", name="Order now").click()
    await expect(page.locator("#faults")).to_contain_text(
        "This basket was already sent with other details"
    )
    await page.get_by_label("Name").fill("Ada")
    await page.get_by_role("button", name="Order now").click()
    await page.wait_for_url(re.compile("#/orders/b"))
    answers = [await request.response() for request in visitor.sent("POST", "/api/orders")]
    assert [answer and answer.status for answer in answers] == [None, 409, 202]
    assert (
        len(
            {
                (await request.all_headers())["idempotency-key"]
                for request in visitor.sent("POST", "/api/orders")
            }
        )
        == 1
    )


@pytest.mark.soak
async def test_a_payment_that_hangs_and_recovers_is_shown_calmly(visitor, client, stack):
    """While it is tried again the page says so; once it works the order ends, and nobody asks any more."""
    order_id = new_order_id()
    await fault(client, "payment", "hang", order_id)
    await submit(stack, order_id, workflow="order")
    page = await visitor.page(f"/shop#/orders/{order_id}", clock=True)
    line = page.locator(".line")
    await expect(page.locator("li.processing", has_text="Checking payment")).to_be_visible()
    await expect(line).to_have_text("We are on it.")
    await expect(page.locator("li.processed", has_text="Your tea is set aside")).to_be_visible()
    await page.clock.run_for(10_000)
    await expect(line).to_have_text("Taking longer than usual; we are trying again.")
    await expect(page.locator("li.again")).to_contain_text("Checking payment")
    await fault(client, "payment", "none", order_id)
    await expect(line).to_have_text("All done. Your parcel is on its way.")
    visitor.requests.clear()
    await page.clock.run_for(60_000)
    assert visitor.requests == []


@pytest.mark.soak
async def test_what_is_cancelled_says_what_was_charged(visitor, client, stack):
    """Nobody is told "not charged" whose money was asked for."""
    order_id = new_order_id()
    await fault(client, "shipment", "reject", order_id)
    await submit(stack, order_id, workflow="order-undo")
    page = await visitor.page(f"/shop#/orders/{order_id}")
    await expect(page.locator(".line")).to_have_text("Cancelled. Everything was undone.")
    await expect(page.locator(".state")).to_contain_text("You were not charged.")
    visitor.requests.clear()
    await page.reload()
    await expect(page.locator(".steps li.undo")).to_have_text(TAKEN_BACK)
    assert len(visitor.sent("GET", "/api/orders/")) == 1


@pytest.mark.soak
async def test_a_state_that_is_newer_than_the_page_is_shown_calmly(visitor):
    """During an upgrade: its step is called by its name. What is over is asked for no more."""
    step = {"name": "detour", "state": "AtSea"}
    answer = {"processState": "Processing", "direction": "forward", "steps": [step]}
    page = await visitor.page("/shop", clock=True)
    await page.route("**/api/orders/*", lambda route: route.fulfill(json=answer))
    await page.goto("/shop#/orders/b00-01JCX0000000000000000000AA")
    await expect(page.locator(".line.processing")).to_have_text("We are on it.")
    await expect(page.locator(".steps li.pending")).to_have_text("detour")
    visitor.requests.clear()
    await page.clock.run_for(60_000)
    assert visitor.requests == []


@pytest.mark.soak
async def test_an_unknown_order_differs_from_one_that_is_not_recorded_yet(visitor):
    """Its number tells its age: for a minute it may still come."""
    page = await visitor.page("/shop#/orders/b00-01JCX0000000000000000000AA")
    await expect(page.get_by_role("alert")).to_contain_text("There is no order with this number.")
    await page.goto("about:blank")
    await page.goto(f"/shop#/orders/{new_order_id()}")
    await expect(page.locator(".line")).to_have_text("One moment.")
