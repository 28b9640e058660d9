"""What an open console costs, in operations on storage: the app runs in this process, on a store of its own."""

from datetime import timedelta
from statistics import median

import pytest
from playwright.async_api import expect

from engine.azure.settings import Settings
from shop.business import SHOP
from tests.support.counted_store import Store
from tests.support.stacks import running

pytestmark = [pytest.mark.soak, pytest.mark.alone]

MINUTE, STEP = 60, 5
WHILE_THINGS_CHANGE, IDLE = 300, 90
"""Operations a minute, at most."""
LISTED, PAGE = 1000, 200
UPDATES, FRAMES = 10, 10
LONGEST_TASK = 200
"""Milliseconds for which the page may do nothing else, at the median: the machine has other things to do too."""
NOTE_LONG_TASKS = """window.longTasks = [];
new PerformanceObserver((list) => longTasks.push(...list.getEntries().map((entry) => entry.duration)))
  .observe({ type: "longtask" })"""
NEXT_FRAME = "new Promise(requestAnimationFrame)"
UNTIL_IT_RESTS = 2 * MINUTE
HIDE = """Object.defineProperty(document, "hidden", { value: true, configurable: true });
document.dispatchEvent(new Event("visibilitychange"))"""
LISTS = "/orders?state=Error", "/orders?state=open", "/orders?state=Processed"
PAGES = "/", *LISTS, "/orders/{}", "/alerts", "/poison", "/audit", "/live"


@pytest.fixture(scope="module")
async def store(tmp_path_factory):
    """Tables that nobody but these tests uses."""
    async with running(tmp_path_factory.mktemp("stack"), hosts=0) as (stack, _):
        addresses = {agent.name: stack.http_url for agent in SHOP.agents}
        declared = {agent.name: agent for agent in SHOP.agents}
        more = {"addresses": addresses, "declared": declared}
        settings = Settings.model_validate(stack.app_environment() | more)
        store = Store(settings)
        yield store
        await store.close()


@pytest.fixture
def answered(store):
    """By the app in this process."""
    return "http://localhost", store.answers


async def to_open(visitor, console, store, *paths):
    """How many operations it costs to open each page."""
    costs = {}
    for path in paths:
        store.recorder.requests.clear()
        page = await console(path, clock=True)
        await visitor.has_its_answers()
        costs[path] = len(store.recorder.requests)
        await page.context.close()
    return costs


async def test_with_ten_thousand_orders_a_page_asks_as_much_as_with_ten(visitor, console, store):
    """The first page, the lists, an order, what is found by the beginning of an id, and what is not about orders."""
    order_id = await store.begin()
    paths = [path.format(order_id) for path in (*PAGES, f"/search?id={order_id[:10]}")]
    await store.fill(processed=7, failed=2)
    with_ten = await to_open(visitor, console, store, *paths)
    await store.fill(processed=9_000, failed=LISTED)
    assert await to_open(visitor, console, store, *paths) == with_ten


async def test_a_list_of_a_thousand_scrolls_while_it_changes(visitor, console, store):
    """Each time an order has gone and another one stands at the end; meanwhile nobody waits for the page."""
    await store.fill(processed=0, failed=LISTED)
    page = await console("/orders?state=Error")
    for count in range(PAGE, LISTED, PAGE):
        await expect(page.locator("[data-row]")).to_have_count(count)
        await page.get_by_role("button", name="Show more").click()
    await expect(page.locator("[data-row]")).to_have_count(LISTED)
    await page.evaluate(NOTE_LONG_TASKS)
    longest = []
    for order_id in (await page.locator("[data-row]").all_inner_texts())[:UPDATES]:
        await store.take_up(order_id)
        await page.evaluate("longTasks.length = 0")
        await page.keyboard.press("r")
        for _ in range(FRAMES):
            await page.mouse.wheel(0, 100)
            await page.evaluate(NEXT_FRAME)
        await expect(page.get_by_role("link", name=order_id)).to_have_count(0)
        longest.append(await page.evaluate("Math.max(0, ...longTasks)"))
    assert await page.evaluate("scrollY") > 0
    assert median(longest) < LONGEST_TASK, longest


async def a_minute(visitor, page, store, meanwhile=None, seconds=MINUTE):
    """Let time pass for the page and its app; return how many operations that cost."""
    store.recorder.requests.clear()
    for _ in range(seconds // STEP):
        if meanwhile:
            await meanwhile()
        store.passed += timedelta(seconds=STEP)
        await page.clock.run_for(STEP * 1000)
        await visitor.has_its_answers()
    return len(store.recorder.requests)


@pytest.mark.parametrize("path", PAGES)
async def test_an_open_console_costs_little_and_when_hidden_nothing(visitor, console, store, path):
    """Counted in the clients' pipeline, with all that the page asks for: also whether anything is broken on purpose."""
    order_id = await store.begin()
    page = await console(path.format(order_id), clock=True)
    await visitor.has_its_answers()
    changing = await a_minute(visitor, page, store, lambda: store.change(order_id))
    await a_minute(visitor, page, store, seconds=UNTIL_IT_RESTS)
    idle = await a_minute(visitor, page, store)
    await page.evaluate(HIDE)
    hidden = await a_minute(visitor, page, store)
    assert 0 < changing <= WHILE_THINGS_CHANGE
    assert 0 < idle <= IDLE
    assert hidden == 0
