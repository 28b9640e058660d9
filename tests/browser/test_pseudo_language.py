"""Every page in the language `pseudo`: plain English bypasses the catalogue, and longer words need more room."""

from functools import partial

import pytest
from playwright.async_api import expect

from engine.decisions.lists import ENDED_LISTS
from engine.decisions.lists import LISTS as COUNTED
from engine.decisions.operator_actions import BY_NAME
from engine.words.catalogue import PSEUDO
from functions_alone.tests.support.waiting import eventually
from shop.business import SHOP
from tests.conftest import SHARED
from tests.support.browsers import KEY
from tests.support.failing import fault
from tests.support.plain_words import SAID, plain_words
from tests.support.stacks import APP, running
from tests.support.submitting import new_order_id, submit

pytestmark = pytest.mark.soak

SETTINGS = SHARED | {"APP_LANGUAGE": PSEUDO, "STEP_TIMEOUT_SECONDS": "10"}
SIZES = {"a desk": 1280, "a small phone": 360}
LISTS = [*COUNTED, *ENDED_LISTS, "again", "open"]
PAGES = (
    "",
    *(f"orders?state={name}" for name in LISTS),
    "orders?state=open&text=none",
    *("alerts", "audit", "notifications", "poison", "faults", "live"),
    *("search", "search?id=b00", "search?key=none"),
)
WORKFLOWS = {
    "failed": "shipment-error", "undone": "payment-undo", "again": "patient", "asked": "asked", "held": "asked",
    "cooling down": "resting", "processed": "order-error",
}  # fmt: skip
"""The workflow of an order of each kind."""
FAULTS = {"failed": ("shipment", "reject"), "undone": ("payment", "reject"), "again": ("payment", "hang"),
          "cooling down": ("payment", "hang")}  # fmt: skip
ASKING = ", ".join(
    f"main {place} button"
    for place in (".buttons:has([data-first])", "section .buttons", ".message .buttons", ".across")
)
"""The buttons that ask before they act."""
DATA = {
    *(step.name for step in SHOP.workflows.all[0].steps),
    *(agent.name for agent in SHOP.agents),
    *WORKFLOWS.values(),
    *BY_NAME,
    *("choice", "reference", "amount", "action", "authorise", "ship", "sku"),
    *("order-submissions", "operator-alerts", "grace", "Grace", "Shop"),
    *("b07-01JCX", "docs/operations/deploy.md", "orders/unknown"),
    *("orderId", r"'^b\d{2}-[0-9A-HJKMNP-TV-Z]{26}$'"),
}
"""Names and examples: no words for people."""
OWN_WORDS = {
    *("Set the goods aside", "Take the payment", "Authorise the payment", "Send the parcel"),
    *("the colour of the bags", "address not deliverable", "out of stock", "card declined"),
    "no answer: TimeoutError",
}
"""What the business, its services and its agents say themselves."""

WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll("body *")].filter((node) => node.getBoundingClientRect().right > innerWidth)
    .map((node) => `too wide: ${node.localName}.${node.className} ${node.textContent}`)"""
"""Elements that reach beyond the window, if somebody has to scroll sidewards for them."""


@pytest.fixture(scope="module")
async def pseudo(tmp_path_factory):
    """A stack that speaks `pseudo`, with an order of each kind, and a message that nobody can read."""
    folder = tmp_path_factory.mktemp("stack")
    async with running(folder, settings=SETTINGS, app=APP) as (stack, client):
        ids = {kind: new_order_id() for kind in WORKFLOWS}
        for kind, (step, mode) in FAULTS.items():
            await fault(client, step, mode, ids[kind])
        for kind, order_id in ids.items():
            await submit(stack, order_id, workflow=WORKFLOWS[kind])
        await submit(stack, "no order id")
        await act(client, ids["held"], "hold")
        await client.until(ids["processed"], "Processed")
        for kind in ("failed", "undone"):
            await client.until(ids[kind], "Error")
        for kind in ("again", "cooling down"):
            await client.until(ids[kind], "Processing", failures=1)
        await eventually(partial(client.alerts, ids["failed"]))
        yield stack, ids


async def act(client, order_id, name):
    """Do this to the order as soon as it can be done."""
    body = {"operator": "grace", "note": "grace"}

    async def is_done():
        status, answer = await client.request(
            "POST", f"/api/operator/orders/{order_id}/{name}", json=body
        )
        assert status == 202, answer
        return True

    await eventually(is_done)


@pytest.fixture
def answered(pseudo):
    """By this stack."""
    return pseudo[0].http_url, None


async def look_at(page, found, name):
    """Note what the page says in plain words, and whether a part of it is wider than the window."""
    found[name] = plain_words(await page.evaluate(SAID), DATA | OWN_WORDS)
    found[name] += await page.evaluate(WIDE)


async def look_at_dialogs(page, found, name):
    """Open the dialog of each button that asks before it acts, and the help."""
    buttons = page.locator(ASKING)
    for number in range(await buttons.count()):
        await buttons.nth(number).click()
        await page.get_by_role("dialog").wait_for()
        await look_at(page, found, f"{name}, dialog {number}")
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.keyboard.press("?")
    await look_at(page, found, f"{name}, help")


@pytest.mark.parametrize("size", SIZES)
async def test_no_page_has_a_plain_word_or_is_wider_than_the_screen(visitor, pseudo, size):
    """With a key and without, in every state of an order, with all dialogs."""
    viewport = {"width": SIZES[size], "height": 800}
    orders = {kind: f"orders/{order_id}" for kind, order_id in pseudo[1].items()}
    found = {}
    for name, path in {**{name: name for name in PAGES}, **orders}.items():
        page = await visitor.page(f"/console#/{path}", key=KEY, viewport=viewport)
        await visitor.has_its_answers()
        await look_at(page, found, name)
        await look_at_dialogs(page, found, name)
        await page.context.close()
    for path in ("/", "/console"):
        await look_at(await visitor.page(path, viewport=viewport), found, path)
    assert {name: said for name, said in found.items() if said} == {}


async def test_what_comes_of_an_action_is_told_in_no_plain_word(visitor, pseudo):
    """Of a bulk action, of a story, and of a call that nobody answers."""
    found = {}
    page = await visitor.page("/console#/orders?state=Error", key=KEY)
    await page.locator("[data-first]").first.click()
    await page.locator("dialog input[name=operator]").fill("Grace")
    await page.locator("dialog input[name=note]").fill("grace")
    await page.locator("dialog .main").click()
    await page.locator("dialog .outcome").wait_for()
    await look_at(page, found, "done")
    await page.locator("dialog .main").click()
    await page.locator("#followed p").wait_for()
    await look_at(page, found, "followed")
    await page.route("**/api/**", lambda route: route.abort())
    await page.keyboard.press("r")
    await page.locator(".note.wrong").first.wait_for()
    await look_at(page, found, "away")
    page = await visitor.page("/console#/live", key=KEY)
    await page.locator(".buttons [aria-pressed]").first.click()
    await page.locator(".tale button").wait_for()
    await look_at(page, found, "story")
    await page.locator(".tale button").click()
    assert {name: said for name, said in found.items() if said} == {}
