"""A browser that exits by itself is the reason of a failure, from its start to its end."""

import os

import pytest
from playwright.async_api import Error

from tests.support.browsers import browser, browser_here, exit_reason

BROKEN = """#!/bin/sh
echo '[1128/120000.1:ERROR:ui.cc(1)] no display' >&2
echo '[1128/120000.2:FATAL:fonts.cc(7)] no font at all' >&2
echo '#1 0x55e4 main' >&2
exit 3
"""


@pytest.mark.soak
async def test_one_that_exits_at_its_start_says_why(tmp_path):
    """The fatal message, and not the stack after it."""
    program, log = tmp_path / "chromium", tmp_path / "log"
    program.write_text(BROKEN)
    program.chmod(0o755)
    with pytest.raises(Error):
        async with browser(str(program), log):
            pass
    reason = exit_reason(log)
    assert reason.endswith("no font at all")
    assert "code 3" in reason
    assert "\n" not in reason


@pytest.mark.soak
@pytest.mark.usefixtures("chromium")
async def test_one_that_exits_later_says_so_too(tmp_path):
    """It has no reason before."""
    log = tmp_path / "log"
    async with browser(browser_here(os.environ), log) as found:
        page = await found.new_page()
        assert exit_reason(log) is None
        crash = await found.new_browser_cdp_session()
        with pytest.raises(Error):
            await crash.send("Browser.crash")
        with pytest.raises(Error):
            await page.title()
        assert "code" in exit_reason(log)
