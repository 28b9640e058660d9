"""`python -m tests.pictures`: the real pages, in `.pictures/`: empty, full, and with an error; three for the README.

Each is taken at the width of a phone and of a desk, in light and dark. Somebody has to look at them.
"""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page

from tests.support.browsers import KEY, browser, browser_here
from tests.support.client import Client
from tests.support.moving import record
from tests.support.stacks import running

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".pictures"
README = {"full-overview-1440-light": "overview.png", "order-again-1440-light": "order.png"}
"""What the README shows, as far as a screen shows it, stands in `docs/pictures`."""
WIDTHS = {390: 844, 1440: 900}
THEMES = ("light", "dark")
PATIENT = {"FAILURE_THRESHOLD": "50"}
"""What is tried again is so until the last picture is taken."""
EMPTY = {
    "shop": "/shop",
    "basket": "/shop#/basket",
    "my-orders": "/shop#/orders",
    "overview": "/console#/",
    "list": "/console#/orders?state=Error",
    "ended": "/console#/orders?state=Processed",
    "alerts": "/console#/alerts",
    "audit": "/console#/audit",
    "notifications": "/console#/notifications",
    "poison": "/console#/poison",
    "faults": "/console#/faults",
    "live": "/console#/live",
    "search": "/console#/search",
    "unknown-order": "/console#/orders/b00-01JCX0000000000000000000AA",
}


@asynccontextmanager
async def seen(found: Browser, url: str, width: int, theme: Any) -> AsyncIterator[Page]:
    """A page of this width and theme, with the operators' key."""
    size = {"width": width, "height": WIDTHS[width]}
    context = await found.new_context(
        viewport=size, color_scheme=theme, reduced_motion="reduce", base_url=url
    )
    page = await context.new_page()
    await page.goto("/console")
    await page.evaluate(
        f"sessionStorage.setItem('operator-key', '{KEY}'); localStorage.setItem('operator-name', 'Grace')"
    )
    yield page
    await context.close()


async def take(page: Page, name: str) -> None:
    """Take a picture of the whole page once nothing is asked any more."""
    await page.wait_for_load_state("networkidle")
    size = page.viewport_size or {"width": 0}
    theme = (
        "dark"
        if await page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
        else "light"
    )
    picture = f"{name}-{size['width']}-{theme}"
    await page.screenshot(path=FOLDER / f"{picture}.png", full_page=True)
    if picture in README:
        await page.screenshot(path=ROOT / "docs/pictures" / README[picture])


async def visit(page: Page, name: str, path: str) -> None:
    """Open a page afresh and take its picture."""
    await page.goto("about:blank")
    await page.goto(path)
    await take(page, name)


async def fill(client: Client) -> dict[str, str]:
    """Have orders of every kind; returns an id of each."""
    body = {
        "items": [{"sku": "TEA-EARL-GREY", "quantity": 1}, {"sku": "CUP-PORCELAIN", "quantity": 2}]
    }
    ids = {"processed": await client.place(**body)}
    await client.until(ids["processed"], "Processed")
    await client.fault("reject")
    ids["failed"], *_ = [await client.place() for _ in range(3)]
    await client.until(ids["failed"], "Error")
    await client.fault("none")
    await client.fault("reject", service="shipping")
    ids["undone"] = await client.place()
    await client.until(ids["undone"], "Error")
    await client.fault("none", service="shipping")
    await client.fault("hang")
    ids["again"] = await client.place()
    await client.until(ids["again"], "Processing", failures=1)
    return ids


async def take_all(url: str, client: Client) -> None:
    """Go through all pages."""
    FOLDER.mkdir(exist_ok=True)
    async with browser(browser_here(os.environ), FOLDER / "browser.log") as found:
        for width, theme in product(WIDTHS, THEMES):
            async with seen(found, url, width, theme) as page:
                for name, path in EMPTY.items():
                    await visit(page, f"empty-{name}", path)
        ids = await fill(client)
        for width, theme in product(WIDTHS, THEMES):
            async with seen(found, url, width, theme) as page:
                await full(page, ids)


async def full(page: Page, ids: dict[str, str]) -> None:
    """Take the pages with something on them."""
    for kind, order_id in ids.items():
        await visit(page, f"shop-{kind}", f"/shop#/orders/{order_id}")
        await visit(page, f"order-{kind}", f"/console#/orders/{order_id}")
    for name in ("overview", "list", "alerts", "faults", "live"):
        await visit(page, f"full-{name}", EMPTY[name])
    await visit(page, "list-open", "/console#/orders?state=open")
    await basket(page)
    await visit(page, "list-before-dialog", EMPTY["list"])
    await page.get_by_role("button", name="Resubmit all of these").click()
    await page.get_by_role("dialog").wait_for()
    await take(page, "dialog")
    await visit(page, "away-before", EMPTY["overview"])
    await page.route("**/api/operator/**", lambda route: route.abort())
    await page.keyboard.press("r")
    await page.get_by_role("alert").wait_for()
    await take(page, "away")
    await page.evaluate("sessionStorage.removeItem('operator-key')")
    await visit(page, "key", "/console")


async def basket(page: Page) -> None:
    """Put something into the basket, and send it with faults."""
    await page.goto("/shop")
    for name in ("Sencha", "Earl Grey"):
        await page.get_by_role("button", name=f"Add {name}").click()
    await take(page, "full-shop")
    await page.get_by_role("link", name="Basket").click()
    await take(page, "full-basket")
    await page.get_by_role("button", name="Order now").click()
    await take(page, "basket-with-faults")


async def main() -> None:
    """Take them on a stack of their own; the moving one on another, of two hosts."""
    with tempfile.TemporaryDirectory() as folder:
        async with running(Path(folder), settings=PATIENT) as (stack, client):
            await take_all(stack.http_url, client)
    with tempfile.TemporaryDirectory() as folder:
        async with (
            running(Path(folder), hosts=2, restart=True) as (stack, _),
            browser(browser_here(os.environ), FOLDER / "browser.log") as found,
            seen(found, stack.http_url, 1440, "light") as page,
        ):
            await record(page, FOLDER / "live.json")


if __name__ == "__main__":
    asyncio.run(main())
