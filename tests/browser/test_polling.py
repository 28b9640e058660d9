"""What an open console asks for, and when it stops: the clock of the page is the test's."""

import asyncio

import pytest
from playwright.async_api import expect

from engine.words.catalogue import text

MINUTE = 60
STEP = 5
HIDE = """Object.defineProperty(document, "hidden", { value: %s, configurable: true });
document.dispatchEvent(new Event("visibilitychange"))"""
CAUSES = "/api/operator/alerts/causes"


async def pass_time(visitor, page, seconds=MINUTE):
    """Let time pass for the page, and let it have its answers meanwhile."""
    for _ in range(seconds // STEP):
        await page.clock.run_for(STEP * 1000)
        await visitor.has_its_answers()


async def opened(console):
    page = await console("/", clock=True)
    await expect(page.locator("#sentence")).to_be_visible()
    return page


@pytest.mark.soak
async def test_an_open_page_asks_seldom_and_a_hidden_one_never(visitor, console):
    """Seven times a minute at most; nothing while nobody looks, and at once when somebody does."""
    page = await opened(console)
    await pass_time(visitor, page)
    assert 2 <= len(visitor.sent("GET", CAUSES)) <= 7
    await page.evaluate(HIDE % "true")
    await visitor.has_its_answers()
    visitor.requests.clear()
    await pass_time(visitor, page)
    assert visitor.requests == []
    await page.evaluate(HIDE % "false")
    await visitor.has_its_answers()
    assert len(visitor.sent("GET", CAUSES)) == 1


@pytest.mark.soak
async def test_what_is_wanted_during_a_call_is_requested_when_that_ends(visitor, console):
    """Once, however often it was wanted."""
    page, go_on = await opened(console), asyncio.Event()

    async def wait(route):
        await go_on.wait()
        await route.continue_()

    await page.route(f"**{CAUSES}", wait)
    visitor.requests.clear()
    async with page.expect_request(f"**{CAUSES}"):
        await page.keyboard.press("r")
    for _ in range(2):
        await page.keyboard.press("r")
    assert len(visitor.sent("GET", CAUSES)) == 1
    go_on.set()
    await visitor.has_its_answers()
    assert len(visitor.sent("GET", CAUSES)) == 2


@pytest.mark.soak
async def test_while_the_app_is_away_the_page_keeps_what_it_has(visitor, console):
    """It says of when that is, asks ever more seldom, and goes on when the app is back."""
    page = await opened(console)
    await page.route(
        "**/api/operator/**", lambda route: route.fulfill(status=503, json={"title": "away"})
    )
    await page.keyboard.press("r")
    await expect(page.get_by_role("alert")).to_contain_text(
        text("console.live.as-of", time="")[:-1]
    )
    await expect(page.locator("#sentence")).to_be_visible()
    visitor.requests.clear()
    await pass_time(visitor, page)
    assert 1 <= len(visitor.sent("GET", CAUSES)) <= 5
    await page.unroute_all()
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.soak
async def test_a_key_that_is_no_longer_accepted_ends_the_asking(visitor, console):
    """The key is forgotten, and asked for."""
    page = await opened(console)
    await page.route("**/api/operator/**", lambda route: route.fulfill(status=401))
    await page.keyboard.press("r")
    await expect(page.get_by_label("Operators' key")).to_be_visible()
    await visitor.has_its_answers()
    visitor.requests.clear()
    await pass_time(visitor, page)
    assert visitor.requests == []


@pytest.mark.soak
async def test_what_a_closed_page_was_asking_for_is_not_waited_for(visitor, console):
    """The browser says nothing of it any more: who waits for an answer would wait for ever."""
    page, never = await opened(console), asyncio.Event()

    async def wait(_route):
        await never.wait()

    await page.route(f"**{CAUSES}", wait)
    async with page.expect_request(f"**{CAUSES}"):
        await page.keyboard.press("r")
    await page.context.close()
    await visitor.has_its_answers()
