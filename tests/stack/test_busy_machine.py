"""README's walk-through on what `make run` starts, while others keep the machine busy."""

import asyncio
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from reading import follow
from scale import NIGHTLY

ROOT = Path(__file__).parents[2]
BUSY_LOOPS = 3


@contextmanager
def busy_loops(number):
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for each in loops:
            each.kill()
            each.wait()


@pytest.mark.soak
@pytest.mark.alone
@pytest.mark.parametrize("run", range(1, 4 if NIGHTLY else 2))
async def test_the_walk_through_works_as_written_beside_busy_loops(start_runner, run):
    """Steps get the time that the machine needs, so none of it fails because of the others."""
    with busy_loops(BUSY_LOOPS):
        runner = await start_runner()
        await runner.until_it_says("Ctrl-C stops everything")
        listening = asyncio.create_task(runner.listen())
        await follow(ROOT / "README.md", runner.ports.http_port, cwd=ROOT)
        assert "ended unexpectedly" not in runner.output
        runner.process.terminate()
        await listening
    assert await runner.process.wait() == 0, runner.output
