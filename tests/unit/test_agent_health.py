"""What agents tell of themselves (AGT-10)."""

from functools import partial

import pytest
from builders import NOW, ORDER_ID, seconds
from memory import of_columns

from agents.protection import INTERVAL, CircuitBreaker, HealthReporter
from core.errors import UnavailableError
from core.messages import AgentRequest
from stores import agent_health, sweeps
from stores.agent_health import AgentHealth, AgentHealthLog, longest_wait
from stores.tables import Put


class Clock:
    """Stands still unless moved."""

    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


health = partial(AgentHealth, instance="i", at=NOW, waited=0.1, running=0)


NONSENSE = [("Waited", "NaN"), ("Waited", float("inf")), ("Waited", "x"), ("At", "yesterday"), ("OpenUntil", "soon")]


@pytest.mark.proves("AGT-10", "FLT-6")
@pytest.mark.parametrize(("name", "value"), NONSENSE)
async def test_what_no_agent_tells_is_passed_over(name, value):
    """What is no number would be the longest wait, or hide it."""
    table = of_columns()
    await AgentHealthLog(table).publish(health(agent="good"))
    columns = agent_health.FORM.columns(health(agent="bad"))
    await table.submit(agent_health.PARTITION, [Put("bad|1", columns | {name: value})])
    assert await AgentHealthLog(table).since(NOW) == [health(agent="good")]


@pytest.mark.proves("SUP-7")
async def test_a_sweep_that_was_at_no_time_that_all_know_counts_for_nothing():
    """It could not be compared with any other time; the next sweep takes its place."""
    table = of_columns()
    row = sweeps.FORM.columns(sweeps.Sweep(at=NOW, instance="v1", recovered=0))
    await table.submit(sweeps.PARTITION, [Put(sweeps.ROW, row | {"At": NOW.replace(tzinfo=None).isoformat()})])
    assert await sweeps.SweepLog(table).last() is None


def test_an_open_circuit_is_believed_until_its_time_is_over():
    """Its instance makes no calls meanwhile, so it publishes nothing; other measures grow old."""
    opened = health(agent="first", open_until=NOW + seconds(60))
    assert opened.counts(NOW + seconds(59))
    assert not opened.counts(NOW + seconds(61))
    assert not health(agent="first").counts(NOW + seconds(1))


def request(issued_at=NOW, timeout=10):
    return AgentRequest(
        order_id=ORDER_ID,
        step="payment",
        operation="authorise",
        attempt=1,
        idempotency_key="k",
        issued_at=issued_at,
        complete_by=NOW + seconds(timeout),
        content={},
    )


@pytest.mark.parametrize(("after", "share"), [(-1, 0.0), (0, 0.0), (5, 0.5), (10, 1.0), (60, 1.0)], ids=str)
def test_what_a_request_has_waited_is_a_share_of_its_time(after, share):
    """From when it was issued to its complete-by time; clocks that differ make no nonsense."""
    assert request().waited(NOW + seconds(after)) == share


def gauge_of(clock, agent_health):
    circuit = CircuitBreaker(orders=10, open_for=seconds(30), clock=clock)
    return HealthReporter(agent="payment", instance="a1", circuit=circuit, agent_health=agent_health, clock=clock)


@pytest.mark.proves("AGT-10")
async def test_an_agent_publishes_its_longest_wait_once_a_second(clock):
    """What it published lately is what schedulers go by; the wait of a while ago is forgotten."""
    agent_health = AgentHealthLog(of_columns())
    health_reporter = gauge_of(clock, agent_health)
    await health_reporter.waited(0.0)
    clock.now += INTERVAL / 2
    with health_reporter.at_work():
        await health_reporter.waited(0.6)
        assert longest_wait(await agent_health.since(NOW)) == 0.0
        clock.now += INTERVAL / 2
        await health_reporter.waited(0.0)
    (published,) = await agent_health.since(clock.now)
    assert published.waited > 0.5
    assert published.running == 1
    clock.now += INTERVAL
    await health_reporter.waited(0.0)
    (published,) = await agent_health.since(clock.now)
    assert (published.waited, published.running) == (0.0, 0)


async def test_a_measure_that_cannot_be_published_stops_no_request(clock):
    """The store is away: the agent goes on."""

    class Away:
        async def publish(self, health):
            raise UnavailableError

    await gauge_of(clock, Away()).waited(0.0)
