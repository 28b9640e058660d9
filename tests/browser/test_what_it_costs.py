"""What an open console costs, in operations on storage: the app runs in this process, on a store of its own."""

from datetime import timedelta

import pytest
from counted_store import Store
from stacks import running

from adapters.settings import Settings
from shop.business import SHOP

pytestmark = pytest.mark.soak

MINUTE, STEP = 60, 5
WHILE_THINGS_CHANGE, IDLE = 300, 90
"""Operations a minute, at most."""
UNTIL_IT_RESTS = 2 * MINUTE
HIDE = """Object.defineProperty(document, "hidden", { value: true, configurable: true });
document.dispatchEvent(new Event("visibilitychange"))"""
PAGES = "/", "/orders?state=Error", "/orders?state=open", "/orders/{}", "/alerts", "/poison"


@pytest.fixture(scope="module")
async def store(tmp_path_factory):
    """Tables that nobody but these tests uses."""
    async with running(tmp_path_factory.mktemp("stack"), hosts=0) as (stack, _):
        addresses = {agent.name: stack.http_url for agent in SHOP.agents}
        settings = Settings.model_validate(stack.app_environment() | {"addresses": addresses})
        store = Store(settings)
        yield store
        await store.close()


@pytest.fixture
def answered(store):
    """By the app in this process."""
    return "http://localhost", store.answers


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
