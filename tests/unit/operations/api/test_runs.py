"""Operators run the work of a timer by hand."""

import json
from datetime import timedelta

import httpx2
import pytest
from click.testing import CliRunner

from engine.decisions.operator_actions import RUNS
from engine.domain.errors import UnavailableError
from engine.domain.statuses import ProcessState
from engine.storage.submission_keys import Binding
from engine.storage.sweeps import Sweep
from operations.api.requests import OperatorRequest
from operations.api.runs import RunService
from operations.cli import main
from operations.cli.client import Api
from tests.support.apps import app
from tests.support.builders import NOW, ORDER_ID, TIMEOUT
from tests.support.memory_world import World
from tests.support.outbox import pending_events

GRACE = OperatorRequest(operator="grace", note="the timer does not come")
LONG = timedelta(days=2)


def desk(world):
    return world.app.operations.services.runs


@pytest.mark.proves("SUP-7")
async def test_poll_and_sweep_by_hand_move_an_order_as_the_timers_do():
    """A poll claims it, and after its time a sweep gives it back."""
    world = World()
    await world.submitted()
    world.now += timedelta(seconds=30)  # a wake-up has its turn first
    assert (await desk(world).run("poll", GRACE)).run == "poll"
    assert (await world.order()).process_state is ProcessState.PROCESSING
    world.now += TIMEOUT + timedelta(minutes=1)
    await desk(world).run("sweep", GRACE)
    assert (await world.order()).process_state is ProcessState.PENDING


@pytest.mark.proves("SUP-7")
async def test_watch_by_hand_raises_the_alert_and_relay_by_hand_sends_it():
    """Each does all that its timer does."""
    world = World()
    await world.app.engine.sweeps.record(Sweep(at=NOW, instance="v1", recovered=0))
    await world.submitted()
    world.now += LONG
    await desk(world).run("stall-detector", GRACE)
    await desk(world).run("stall-detector", GRACE)
    pending = await pending_events(world.store, *world.store.buckets)
    assert [ORDER_ID] in [event.data["orders"] for event in pending]
    await desk(world).run("relay", GRACE)
    assert await pending_events(world.store, *world.store.buckets) == []


async def test_retention_by_hand_removes_what_is_old():
    """As its timer does."""
    world = World()
    there = app(world.parts, retention_days=1)
    await there.engine.submission_keys.claim("a key", Binding(order_id=ORDER_ID))
    world.now += LONG
    await there.operations.services.runs.run("retention", GRACE)
    assert await there.engine.submission_keys.remove_before(world.now) == 0


async def test_a_run_names_its_operator_in_the_log_also_if_it_fails(caplog):
    """It is told before the work begins; the outage is the caller's to see."""
    caplog.set_level("INFO", "operations.api.runs")

    async def away():
        raise UnavailableError

    with pytest.raises(UnavailableError):
        await RunService(work={"sweep": away}).run("sweep", GRACE)
    [line] = caplog.records
    assert (line.message, line.run, line.operator) == ("operators.ran", "sweep", "grace")


def test_every_run_has_its_work():
    """None is offered that the app cannot do."""
    assert set(app(World().parts).operations.services.runs.work) == set(RUNS)


def test_a_run_is_requested_on_the_command_line(monkeypatch):
    """With who acts and why; a word that is none is wrong usage."""
    sent = []

    def answer(request):
        sent.append((request.url.path, json.loads(request.content)))
        return httpx2.Response(200, json={"run": "sweep", "seconds": 0.2})

    transport = httpx2.MockTransport(answer)
    monkeypatch.setattr(main, "Api", lambda *_: Api("http://app", "k", None, transport))

    def run(name):
        words = ["--key", "k", "run", name, "--operator", "grace", "-m", "away"]
        return CliRunner().invoke(main.main, words)

    assert run("sweep").output == "sweep: done in 0.2 s\n"
    assert sent == [("/api/operator/run/sweep", {"operator": "grace", "note": "away"})]
    assert run("everything").exit_code == 2
