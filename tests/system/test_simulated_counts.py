"""What the model says of an order's costs, beside what is counted on the running stack."""

import asyncio
import json
import sys

import pytest
from bench_lines import COMPARED, WITHIN, counts_of

from bench.simulated import Setup
from bench.simulation import Simulation, workflow_of
from local.servicebus_config import ROOT

RATE, SECONDS = 3.5, 30
"""A rate whose times are no divisors of the time between two looks: else chance says which message leads to one."""
PATIENT = ("--set", "STEP_TIMEOUT_SECONDS=120", "--set", "REMOTE_CALL_TIMEOUT_SECONDS=60")
"""As long as a slow machine may take: what is tried twice costs twice."""


@pytest.mark.soak
@pytest.mark.parametrize("variant", ["3-step", "shop"])
async def test_the_model_agrees_with_the_running_stack(variant):
    """The line of the benchmark has both shapes, and the model says for each what was counted, within a tenth."""
    arguments = [
        "--variant",
        variant,
        "--phases",
        "latency",
        "--rate",
        str(RATE),
        "--seconds",
        str(SECONDS),
        *PATIENT,
    ]
    bench = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench", *arguments, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await bench.communicate()
    (line,) = output.decode().splitlines()
    for each in (False, True):
        counted = counts_of(json.loads(line), each)
        assert counted["orders"] == RATE * SECONDS
        setup = Setup(workflow=workflow_of(variant), rate=RATE, seconds=SECONDS, each=each)
        found = Simulation(setup).run().per_order()
        assert {name: found[name] for name in COMPARED} == pytest.approx(
            {name: counted[name] for name in COMPARED}, rel=WITHIN
        )
