"""The embedded run gives steps and calls more time while its machine is busy (load 1)."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta

import pytest

from development.pace import EVERY_SECONDS, REMEMBERED, SLOWEST, USUAL_SECONDS, Pace, slowdown
from development.settings import app_settings
from engine.azure.connect import connect
from engine.azure.settings import Settings
from engine.azure.slowdown import slowdown_in
from engine.declarations.workflow import StepDefinition, WorkflowDefinition, Workflows
from functions_alone.ports import Ports
from shop.business import SHOP
from testkit.memory import in_memory
from tests.support.agency import CALL_TIMEOUT, MARGIN, Agency
from tests.support.apps import app
from tests.support.builders import CONTENT, NOW, ORDER_ID, TIMEOUT, seconds

USUAL, SLOW = USUAL_SECONDS, 3.5 * USUAL_SECONDS


# What is measured


@pytest.mark.parametrize(
    ("recent", "factor"),
    [
        pytest.param([USUAL], 1, id="as usual"),
        pytest.param([0.1 * USUAL], 1, id="faster than usual"),
        pytest.param([1.45 * USUAL], 1, id="not much slower"),
        pytest.param([1.55 * USUAL], 2, id="slower, rounded up"),
        pytest.param([SLOW], 4, id="slow from the first measurement on"),
        pytest.param([100 * USUAL], SLOWEST, id="too slow"),
        pytest.param([USUAL] * 9 + [SLOW], 1, id="one moment in ten"),
        pytest.param([USUAL] * 8 + [SLOW] * 2, 4, id="two moments in ten"),
        pytest.param([SLOW] * 4 + [USUAL] * 26, 4, id="not idle for long enough"),
        pytest.param([SLOW] * 3 + [USUAL] * 27, 1, id="idle again"),
    ],
)
def test_the_factor_follows_the_last_measurements(recent, factor):
    """It rises soon and falls late; a single slow moment of an idle machine does not count."""
    assert slowdown(recent) == factor


class Machine:
    """A machine that is as slow as each measurement says, and ends with the last."""

    def __init__(self, file, *measurements):
        self.left, self.slept, self.lines, self.written = list(measurements), [], [], []
        self.pace = Pace(
            file=file, say=self.lines.append, measure=lambda: self.left.pop(0), sleep=self.sleep
        )

    async def sleep(self, time):
        self.slept.append(time)
        if self.pace.file.exists():
            self.written.append(slowdown_in(self.pace.file))
        if not self.left:
            raise asyncio.CancelledError

    async def run(self):
        with pytest.raises(asyncio.CancelledError):
            await self.pace.keep()
        return self


async def test_the_factor_is_measured_and_written_again_and_again(tmp_path):
    """Each measurement counts at once; it is forgotten after so many others."""
    busy = [SLOW] * 5
    machine = await Machine(tmp_path / "slowdown", USUAL, *busy, *[USUAL] * REMEMBERED).run()
    assert machine.slept == [EVERY_SECONDS] * (1 + len(busy) + REMEMBERED)
    assert machine.written == [1, *[4] * 31, *[1] * 4]  # three of the last thirty do not count
    assert len(machine.lines) == 2


async def test_a_person_reads_of_every_larger_factor_and_of_the_end(tmp_path):
    """And of nothing in between: the factor goes up and down all the time."""
    up_and_down = [USUAL, SLOW, 1.6 * USUAL, *[SLOW] * 3, 5.5 * USUAL, *[5.5 * USUAL] * 3]
    machine = await Machine(tmp_path / "slowdown", *up_and_down).run()
    assert max(machine.written) == 6
    assert len(machine.lines) == 2


async def test_a_folder_that_cannot_be_written_stops_no_run(tmp_path):
    """The steps have their usual time then."""
    machine = await Machine(tmp_path / "missing" / "slowdown", SLOW, SLOW).run()
    assert (machine.left, machine.written) == ([], [])


# What the app makes of it


@pytest.mark.parametrize(("text", "factor"), [("4", 4), ("", 1), ("much", 1), (None, 1)])
def test_what_is_no_factor_changes_nothing(tmp_path, text, factor):
    """The file of a runner that was killed may be missing or empty."""
    file = tmp_path / "slowdown"
    if text is not None:
        file.write_text(text)
    assert slowdown_in(file) == factor


def test_a_deployed_app_waits_as_long_as_is_configured(monkeypatch, tmp_path):
    """Only the setting of the embedded run changes that, and it is read again each time."""
    for name, value in app_settings(Ports(), "key", "key", SHOP.agents).items():
        monkeypatch.setenv(name, value)
    assert connect(Settings.read(SHOP.agents)).slowdown() == 1
    file = tmp_path / "slowdown"
    monkeypatch.setenv("LOCAL_SLOWDOWN_FILE", str(file))
    slow = connect(Settings.read(SHOP.agents)).slowdown
    file.write_text("2")
    assert slow() == 2
    file.write_text("5")
    assert slow() == 5


class Slow:
    """By how much longer everything may take now."""

    def __init__(self, factor=1.0):
        self.factor = factor

    def __call__(self):
        return self.factor


OWN = timedelta(seconds=7)
WORKFLOWS = Workflows(
    WorkflowDefinition(
        name="order",
        version=1,
        steps=(
            StepDefinition(name="pay", capability="payment", operation="pay", request=dict),
            StepDefinition(
                name="ship",
                capability="payment",
                operation="ship",
                request=dict,
                after=("pay",),
                timeout=OWN,
            ),
        ),
    )
)


async def test_a_new_order_has_the_time_of_its_moment():
    """Read for each order; a step with a time of its own keeps it."""
    slow, found = Slow(), []
    parts = replace(in_memory(clock=lambda: NOW), slowdown=slow)
    made = app(parts, workflows=WORKFLOWS)
    for number, factor in enumerate((1.0, 4.0, 1.0)):
        slow.factor = factor
        order_id = f"{ORDER_ID[:-1]}{number}"
        message = {"schemaVersion": 1, "orderId": order_id, "placedAt": NOW.isoformat()}
        await made.engine.submission.record(json.dumps(message | CONTENT).encode())
        order = await made.engine.store.load(order_id)
        found.append([step.rules.timeout for step in order.steps])
    assert found == [[TIMEOUT, OWN], [4 * TIMEOUT, OWN], [TIMEOUT, OWN]]


async def given(agency):
    """How many seconds the agent gives to the call of its request."""
    seen = []

    async def call(request, timeout_seconds):
        seen.append(timeout_seconds)
        return {"reference": "r-1"}

    agency.remote.call = call
    await agency.agent.handle(agency.request)
    return seen


@pytest.mark.proves("AGT-4")
async def test_a_call_has_the_time_of_its_moment_within_the_complete_by_time():
    """Read for each call; what is left of the step's time is the limit."""
    slow, agency = Slow(), Agency(timeout=seconds(30))
    agency.agent = replace(agency.agent, slowdown=slow)
    assert await given(agency) == [CALL_TIMEOUT.total_seconds()]
    slow.factor = 3.0
    assert await given(agency) == [3 * CALL_TIMEOUT.total_seconds()]
    slow.factor = 100.0
    assert await given(agency) == [(seconds(30) - MARGIN).total_seconds()]
