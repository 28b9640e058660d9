"""How much a reader has to follow to understand one order."""

import pytest

from bench.way import way

MAX_MODULES, MAX_FUNCTIONS = 45, 329
OF_THE_BUSINESS = ("flow/", "shop/")
"""What an author reads; the engine does not know it."""


@pytest.mark.soak
async def test_an_order_passes_through_few_modules_and_functions(tmp_path):
    """Of the engine, on its happy path; start-up, timers and the embedded platform apart.

    On a slow machine another message may be the first to see the order, and its way be longer: the shortest counts.
    """
    for turn in range(3):
        every = await way(tmp_path / str(turn))
        passed = [each for each in every if not each[0].startswith(OF_THE_BUSINESS)]
        if len(passed) <= MAX_FUNCTIONS:
            break
    modules = {module for module, _ in passed}
    assert len(modules) <= MAX_MODULES, sorted(modules)
    assert len(passed) <= MAX_FUNCTIONS
    assert {"submission/service.py", "scheduler/service.py", "agents/service.py"} <= modules
