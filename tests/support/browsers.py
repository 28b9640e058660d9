"""A real browser: Debian's Chromium, driven by Playwright."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

KEY = "local-operator"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MISSING = "the pages were not tested: install a browser (on Debian: apt-get install chromium)"


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """One browser; it needs no sandbox, since it sees nothing but our own pages."""
    async with async_playwright() as playwright:
        found = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield found
        finally:
            await found.close()
