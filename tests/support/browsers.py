"""A real browser: the machine's Chromium, or the one that `make test` gets from npm, driven by Playwright."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import Browser

KEY = "local-operator"
"""The operators' key of the embedded run."""
OF_NPM = Path(__file__).parents[1] / "browser/chromium/node_modules/.unpacked"
NAMES = ("chromium", "chromium-browser", "google-chrome")
HERE = next(filter(None, map(shutil.which, NAMES)), None)
CHROMIUM = HERE or shutil.which("chromium", path=str(OF_NPM))
"""Its path; None if there is none."""
ITS_OWN = {"LD_LIBRARY_PATH": str(OF_NPM / "al2023/lib"), "FONTCONFIG_PATH": str(OF_NPM / "fonts")}
"""What a machine without a browser may lack: libraries, and fonts."""
MISSING = "the pages, for there is no browser; on Debian: apt-get install chromium"


@asynccontextmanager
async def browser() -> "AsyncIterator[Browser]":
    """One browser; it needs no sandbox, since it sees nothing but our own pages."""
    from playwright.async_api import async_playwright  # noqa: PLC0415 - most runs need none

    async with async_playwright() as playwright:
        found = await playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu"],
            env=dict(os.environ) if HERE else dict(os.environ) | ITS_OWN,
        )
        try:
            yield found
        finally:
            await found.close()
