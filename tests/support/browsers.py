"""A real browser, driven by Playwright: the machine's Chromium, or one from npm.

Run as a program (`make test` does), it gets npm's where the tests need that one.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import Browser

KEY = "local-operator"
"""The operators' key of the embedded run."""
NAMES = ("chromium", "chromium-browser", "google-chrome")
"""Names of the machine's browser, the first that is found."""
NPM = "npm"
"""The value of `TEST_BROWSER` that selects npm's browser, although the machine has one."""
FOLDER = Path(__file__).parents[1] / "browser/chromium"
STAMP = FOLDER / "node_modules/.installed"
LOCK = FOLDER / "package-lock.json"
UNPACKED = FOLDER / "node_modules/.unpacked"
NPM_ENVIRONMENT = {
    "LD_LIBRARY_PATH": str(UNPACKED / "al2023/lib"),
    "FONTCONFIG_FILE": str(FOLDER / "fonts.conf"),
    "XDG_CACHE_HOME": str(UNPACKED / "cache"),
}
"""What a machine without a browser may lack: libraries and fonts; and a folder where fonts are indexed."""
EXIT = re.compile(r"exit code ([0-9]+)")
"""The last line of a browser that has exited, as `browser.sh` writes it."""


class NoBrowserError(Exception):
    """The tests have no browser; the text says how to get one."""


def missing(environment: Mapping[str, str]) -> str:
    """Return what is left out without a browser, and how to get one."""
    if environment.get("TEST_BROWSER") == NPM:
        return "the pages: the browser from npm is not installed; it needs Linux on x64, and npm"
    return "the pages: there is no browser; on Debian, run apt-get install chromium"


def machine_browser(environment: Mapping[str, str]) -> str | None:
    """Return the machine's browser; None if it has none, or if npm's is selected."""
    chosen = environment.get("TEST_BROWSER", "")
    if chosen not in ("", NPM):
        raise ValueError(f"TEST_BROWSER={chosen}: use {NPM}, or leave it out")
    path = environment.get("PATH")
    found = (shutil.which(name, path=path) for name in NAMES if not chosen)
    return next(filter(None, found), None)


def npm_browser(unpacked: Path = UNPACKED) -> str | None:
    """Return npm's browser; None if it is not installed."""
    return shutil.which("chromium", path=str(unpacked))


def browser_here(environment: Mapping[str, str], unpacked: Path = UNPACKED) -> str:
    """Return the path of the browser that the tests use; raises `NoBrowserError`."""
    found = machine_browser(environment) or npm_browser(unpacked)
    if not found:
        raise NoBrowserError(missing(environment))
    return found


@asynccontextmanager
async def browser(program: str, log: Path) -> "AsyncIterator[Browser]":
    """Start a browser; it needs no sandbox, since it sees nothing but our own pages.

    Whenever it exits by itself, `exit_reason(log)` says why.
    """
    from playwright.async_api import async_playwright  # noqa: PLC0415 - most runs need none

    of_npm = NPM_ENVIRONMENT if program == npm_browser() else {}
    async with async_playwright() as playwright:
        found = await playwright.chromium.launch(
            executable_path=Path(__file__).with_name("browser.sh"),
            args=["--no-sandbox", "--disable-gpu"],
            env=dict(os.environ) | of_npm | {"BROWSER_PROGRAM": program, "BROWSER_LOG": str(log)},
        )
        try:
            yield found
        finally:
            await found.close()


def exit_reason(log: Path) -> str | None:
    """Return in one sentence why the browser exited; None if it runs, or has not begun."""
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    printed = [line.strip() for line in lines if line.strip()]
    if not printed or not (code := EXIT.fullmatch(printed.pop())):
        return None
    # Chromium prints the stack after the message that names the fault.
    fatal = [line for line in printed if ":FATAL:" in line]
    (message,) = (fatal or printed or ["it printed no message"])[-1:]
    return f"The browser exited with code {code[1]}: {message}"


def _is_installed() -> bool:
    """Whether npm's browser is there, in the version of the lock file."""
    return STAMP.exists() and STAMP.stat().st_mtime >= LOCK.stat().st_mtime


def install(environment: Mapping[str, str]) -> None:
    """Get npm's browser if the tests need it and it fits; raises `OSError`, `CalledProcessError`."""
    fits = (platform.system(), platform.machine()) == ("Linux", "x86_64")
    if machine_browser(environment) or _is_installed() or not fits:
        return
    print("[setup] getting a browser for the tests of the pages from npm (half a minute, once)")
    sys.stdout.flush()
    npm = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    for command in (npm, ["node", "unpack.mjs"]):
        subprocess.run(command, cwd=FOLDER, check=True)
    STAMP.touch()


if __name__ == "__main__":
    try:
        install(os.environ)
    except ValueError as fault:
        sys.exit(str(fault))
    except (OSError, subprocess.CalledProcessError) as fault:
        print(f"[setup] no browser can be installed, so the page tests will not run: {fault}")
