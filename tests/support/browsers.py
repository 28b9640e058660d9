"""A real browser: Debian's Chromium, driven by Playwright."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import Browser

KEY = "local-operator"
"""The operators' key of the embedded run."""
CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
MISSING = "the pages, for there is no browser; on Debian: apt-get install chromium"


@asynccontextmanager
async def browser() -> "AsyncIterator[Browser]":
    """One browser; it needs no sandbox, since it sees nothing but our own pages."""
    from playwright.async_api import async_playwright  # noqa: PLC0415 - most runs need none

    async with async_playwright() as playwright:
        found = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            yield found
        finally:
            await found.close()
