"""The page that draws the system as it runs, on a stack of two hosts, of which one is killed."""

import re
from time import monotonic

import pytest
from playwright.async_api import expect

from engine.words.catalogue import text
from tests.support.axe import violations
from tests.support.stacks import running

pytestmark = pytest.mark.soak

SETTINGS = {"FAILURE_THRESHOLD": "20"}
"""Kills count as failures."""
SHOWS_WITHIN = 2.0
"""Seconds after which a host that was killed has to be grey."""


@pytest.fixture(scope="module")
async def two_hosts(tmp_path_factory):
    """A stack whose runner starts again what ends."""
    async with running(
        tmp_path_factory.mktemp("stack"), hosts=2, restart=True, settings=SETTINGS
    ) as (stack, client):
        yield stack, client


@pytest.fixture
def answered(two_hosts):
    """By this stack."""
    return two_hosts[0].http_url, None


def part(page, name):
    """The drawn part of this title."""
    return page.locator(".part", has=page.locator(".title", has_text=re.compile(f"^{name}$")))


async def test_a_service_is_broken_and_mended_on_its_part_of_the_picture(console, two_hosts):
    """The part says so, and an order that meets it is tried again until it is mended."""
    _, client = two_hosts
    page = await console("/live")
    await page.emulate_media(reduced_motion="no-preference")
    service = part(page, "Service payment")
    await expect(service).to_contain_text("works")
    await page.get_by_role("button", name="Break payment").click()
    await expect(service).to_contain_text("broken: hang")
    order_id = await client.place()
    await expect(page.locator(".dot", has_text=order_id)).not_to_have_count(0)
    row = page.get_by_role("row", name=re.compile("Agent payment"))
    await expect(row).to_contain_text("broken: hang")
    await client.until(order_id, "Processing", failures=1)
    await page.get_by_role("button", name=f"{text('console.faults.mend')} payment").click()
    await expect(service).to_contain_text("works")
    await client.until(order_id, "Processed")
    await expect(
        page.locator(".dot", has_text=f"{order_id}: {text('console.picture.dot-over')}")
    ).to_have_count(1)


@pytest.mark.alone
async def test_a_killed_host_is_grey_within_two_seconds_and_comes_back(console, two_hosts):
    """The runner knows; what the page waits for meanwhile comes from the other host."""
    page = await console("/live")
    host = page.locator(".gone", has=part(page, "host-2"))
    await expect(part(page, "host-2")).to_contain_text("runs")
    await page.get_by_role("button", name="Kill host-2").click()
    killed_at = monotonic()
    await expect(host).to_be_visible()
    assert monotonic() - killed_at < SHOWS_WITHIN
    await expect(host).to_have_count(0)
    await expect(page.get_by_role("button", name="Kill host-2")).to_be_visible()


@pytest.mark.parametrize(("theme", "width"), [("light", 360), ("dark", 1280)])
async def test_axe_finds_no_fault_in_the_picture_while_it_moves(console, two_hosts, theme, width):
    """Without motion it is looked at like all pages, beside them."""
    _, client = two_hosts
    page = await console("/live", viewport={"width": width, "height": 800}, color_scheme=theme)
    await page.emulate_media(reduced_motion="no-preference")
    await client.fault("hang")
    order_id = await client.place()
    await expect(page.locator(".dot", has_text=order_id)).not_to_have_count(0)
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    await client.fault("none")
    await client.until(order_id, "Processed")


async def test_who_wants_no_motion_sees_numbers_and_no_dots(console, two_hosts):
    """Nothing moves. The digit leads to the page that stands seventh on top."""
    _, client = two_hosts
    await client.fault("hang")
    page = await console("/")
    await page.keyboard.press("7")
    await expect(part(page, "Scheduler")).to_be_visible()
    order_id = await client.place()
    await client.until(order_id, "Processing")
    await expect(page.locator(".number").filter(has_text="1")).not_to_have_count(0)
    assert await page.locator(".dot").count() == 0
    assert await page.evaluate("document.getAnimations().length") == 0
    await client.fault("none")
    await client.until(order_id, "Processed")
