"""README and `docs/operate.md`, followed to the letter on the stack that `make run` starts."""

from pathlib import Path

import pytest
from reading import follow, steps
from stacks import running

ROOT = Path(__file__).parent.parent.parent
PAGES = {"docs/operate.md": 20, "README.md": 15}
"""How many steps each has at least: following it cannot succeed by finding nothing to do.

The page that counts alerts comes first."""


@pytest.fixture(scope="module")
async def embedded(tmp_path_factory):
    """A stack with the settings of `make run`."""
    async with running(tmp_path_factory.mktemp("embedded")) as (stack, _):
        yield stack


@pytest.mark.proves("OPR-2", "OPR-3", "OPR-4")
@pytest.mark.parametrize("page", PAGES)
async def test_the_page_does_what_it_says(embedded, page):
    """Every command gives the output that the page shows."""
    assert len(list(steps(ROOT / page))) > PAGES[page]
    await follow(ROOT / page, embedded.ports.http_port, cwd=ROOT)
