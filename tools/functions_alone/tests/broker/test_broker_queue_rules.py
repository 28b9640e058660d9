"""Runs the tests of the broker's rules, which are written in JavaScript like the rules."""

import asyncio
from pathlib import Path

from functions_alone.tests.support.broker_process import NODE

RULES = sorted(Path(__file__).parent.glob("*.test.mjs"))


async def test_queue_rules_hold_at_exact_times():
    """Every test of the files in JavaScript passes."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(NODE, "--test", *RULES, stdout=pipe, stderr=pipe)
    output, error = await process.communicate()
    assert process.returncode == 0, (output + error).decode()
