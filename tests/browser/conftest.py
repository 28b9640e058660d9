"""One browser for all tests of the pages, and visitors of whom nobody may see a fault in its console."""

import asyncio
import os
import time
from collections import defaultdict
from functools import partial

import pytest
from playwright.async_api import expect

from tests.support.browsers import KEY, browser, exit_reason
from tests.support.prerequisites import browser_program

PATIENCE = 60_000
"""Milliseconds for what is awaited on a page: no claim, but less than a test with a seeded fault may take."""
EXPECTED = "Failed to load resource"
"""Chromium says so of each answer that is no success: tests expect some of these."""
QUIET = 5
"""So many looks in a row, a hundredth of a second apart."""


LOG = pytest.StashKey()
"""The file with the messages of the browser."""


@pytest.fixture(scope="session")
async def chromium(pytestconfig, tmp_path_factory):
    """The browser. Where there is none the tests of the pages are left out, but not where CI runs."""
    log = tmp_path_factory.mktemp("browser") / "log"
    pytestconfig.stash[LOG] = log
    expect.set_options(timeout=PATIENCE)
    async with browser(browser_program(os.environ), log) as found:
        yield found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """A browser that exited by itself is the reason of the failure; Playwright's log says less on many lines."""
    report = yield
    log = item.config.stash.get(LOG, None)
    if report.failed and log and (reason := exit_reason(log)):
        report.longrepr = reason
    return report


class Visitor:
    """Opens pages, each with what a browser keeps of its own, and notes what the browser complains about."""

    def __init__(self, found, url, answers=None):
        self._browser, self._url, self._answers = found, url, answers
        self.complaints, self.requests, self._contexts = [], [], []
        self._pending = defaultdict(set)

    async def context(self, **more):
        context = await self._browser.new_context(
            base_url=self._url, reduced_motion="reduce", **more
        )
        self._contexts.append(context)
        if self._answers:
            await context.route("**", self._answers)
        return context

    async def page(self, path, *, key=None, clock=False, **more):
        """Open a page, perhaps as an operator who has given the key, perhaps with a clock that a test moves."""
        context = await self.context(**more)
        if key:
            keep = "sessionStorage.setItem('operator-key', key); localStorage.setItem('operator-name', 'Grace')"
            await context.add_init_script(f"const key = '{key}'; {keep}")
        page = await context.new_page()
        page.set_default_timeout(PATIENCE)
        if clock:
            await page.clock.install()
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", partial(self._on_request, page))
        page.on("requestfinished", partial(self._answered, page))
        page.on("requestfailed", partial(self._answered, page))
        await page.goto(path)
        return page

    def _on_request(self, page, request):
        self.requests.append(request)
        self._pending[page].add(request)

    def _answered(self, page, request):
        self._pending[page].discard(request)

    async def has_its_answers(self):
        """Wait until no open page is asking, also not for what the last answer said.

        At each look every page runs what is due in it, so that a slow machine looks no sooner. A page that has been
        closed is told of no answer any more: what it was asking for then is not waited for.
        """
        quiet, end = 0, time.monotonic() + PATIENCE / 1000
        while quiet < QUIET:
            await asyncio.sleep(0.01)
            pages = [page for context in self._contexts for page in context.pages]
            for page in pages:
                await page.evaluate("0")
            unanswered = [request.url for page in pages for request in self._pending[page]]
            quiet = 0 if unanswered else quiet + 1
            assert time.monotonic() < end, f"no answer to {unanswered}"

    def _on_console(self, message):
        if message.type in ("error", "warning") and EXPECTED not in message.text:
            self.complaints.append(message.text)

    def sent(self, method, part=""):
        """The requests of this method to addresses with this part."""
        return [
            request for request in self.requests if request.method == method and part in request.url
        ]

    async def leave(self):
        for context in self._contexts:
            await context.close()


@pytest.fixture
def answered(stack):
    """By whom: the stack that all share."""
    return stack.http_url, None


@pytest.fixture
async def visitor(chromium, answered):
    """Somebody with a browser; at the end it has complained of nothing: no error, no violation of the policy."""
    visitor = Visitor(chromium, *answered)
    yield visitor
    await visitor.leave()
    assert visitor.complaints == []


@pytest.fixture
async def console(visitor):
    """Open pages of the console with the key."""
    return lambda path, **more: visitor.page(f"/console#{path}", key=KEY, **more)
