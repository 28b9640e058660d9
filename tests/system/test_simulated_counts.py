"""What the model says of an order's costs, beside what is counted on the running stack."""

import asyncio
import json
import sys

import pytest

from bench.simulated import Setup
from bench.simulation import Simulation, workflow_of
from development.servicebus_config import ROOT
from tests.support.bench_lines import COMPARED, WITHIN, counts_of

RATE, SECONDS = 3.5, 30
"""A rate whose times are no divisors of the time between two looks: else chance says which message leads to one."""
PATIENT = ("--set", "STEP_TIMEOUT_SECONDS=120", "--set", "REMOTE_CALL_TIMEOUT_SECONDS=60")
"""As long as a slow machine may take: what is tried twice costs twice."""


CHANCES = 3
"""How often it is measured: a machine that is slow for some seconds looks more often than one that is not."""


@pytest.mark.soak
@pytest.mark.alone
@pytest.mark.parametrize("variant", ["3-step", "shop"])
async def test_the_model_agrees_with_the_running_stack(variant):
    """The line of the benchmark has both shapes, and the model says for each what was counted, within a tenth."""
    said = {
        per_function: _said(variant, per_function=per_function) for per_function in (False, True)
    }
    for _ in range(CHANCES):
        line = await _benchmark(variant)
        counted = {per_function: counts_of(line, per_function) for per_function in said}
        assert {figures["orders"] for figures in counted.values()} == {RATE * SECONDS}
        differs = {
            (name, per_function): (said[per_function][name], counted[per_function][name])
            for per_function in said
            for name in COMPARED
            if said[per_function][name] != pytest.approx(counted[per_function][name], rel=WITHIN)
        }
        if not differs:
            break
        print("said and counted:", differs)
    assert not differs


def _said(variant, *, per_function):
    """Return what the model says that an order costs."""
    setup = Setup(
        workflow=workflow_of(variant), rate=RATE, seconds=SECONDS, process_per_function=per_function
    )
    return Simulation(setup).run().per_order()


async def _benchmark(variant):
    """Return what `make bench` says of the same orders."""
    asked = ["--variant", variant, "--phases", "latency", "--rate", RATE, "--seconds", SECONDS]
    bench = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "bench", *map(str, asked), *PATIENT],
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await bench.communicate()
    (line,) = output.decode().splitlines()
    return json.loads(line)
