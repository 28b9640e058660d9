"""`docs/operate.md`, followed to the letter."""

from pathlib import Path

import pytest
from reading import follow, steps

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs/operate.md"


@pytest.mark.proves("OPR-2", "OPR-3", "OPR-4")
async def test_the_page_does_what_it_says(own_stack):
    """Every command gives the output that the page shows."""
    stack, _ = await own_stack(settings={})
    await follow(PAGE, stack.ports.http_port, cwd=ROOT)


def test_the_page_has_steps():
    """The test above cannot pass by finding nothing to do."""
    assert len(list(steps(PAGE))) > 20
