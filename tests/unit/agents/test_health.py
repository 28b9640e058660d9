"""What agents tell of themselves, and when (AGT-10)."""

import asyncio
import json
import math
from functools import partial

import pytest

from agents.circuit_breaker import CircuitBreaker
from agents.health import INTERVAL, MAX_FAULT_TEXT, MOST_BEGUN, MOST_TEXTS, SWEPT_BY, HealthReporter
from engine.domain.errors import TransientError, UnavailableError
from engine.domain.keys import sortable
from engine.domain.messages import AgentRequest
from engine.storage import agent_health, sweeps
from engine.storage.agent_health import FRESH, KEPT, AgentHealth, AgentHealthLog, fault_of
from engine.storage.tables import MAX_CHARACTERS, Put, stored_form
from testkit.memory import of_columns
from tests.support.agency import MARGIN, Agency
from tests.support.builders import NOW, ORDER_ID, seconds
from tests.support.clocks import Clock


@pytest.fixture
def clock():
    return Clock()


health = partial(AgentHealth, instance="i", at=NOW)


NONSENSE = [
    ("Rate", "NaN"),
    ("Rate", float("inf")),
    ("Rate", "x"),
    ("At", "yesterday"),
    ("OpenUntil", "soon"),
]


@pytest.mark.proves("AGT-10", "FLT-6")
@pytest.mark.parametrize(("name", "value"), NONSENSE)
async def test_what_no_agent_tells_is_passed_over(name, value):
    """What is no number would be the highest rate, or hide it."""
    table = of_columns()
    await AgentHealthLog(table).publish(health(agent="good"))
    columns = agent_health.FORM.columns(health(agent="bad"))
    await table.submit(
        agent_health.PARTITION, [Put(f"{sortable(NOW)}|bad|1", columns | {name: value})]
    )
    assert await AgentHealthLog(table).since(NOW) == [health(agent="good")]


@pytest.mark.proves("SUP-7")
async def test_a_sweep_that_was_at_no_time_that_all_know_counts_for_nothing():
    """It could not be compared with any other time; the next sweep takes its place."""
    table = of_columns()
    row = sweeps.FORM.columns(sweeps.Sweep(at=NOW, instance="v1", recovered=0))
    await table.submit(
        sweeps.PARTITION, [Put(sweeps.ROW, row | {"At": NOW.replace(tzinfo=None).isoformat()})]
    )
    assert await sweeps.SweepLog(table).last() is None


class Recorded(AgentHealthLog):
    """The rows as they are written, too."""

    def __init__(self):
        super().__init__(of_columns())
        self.rows = []
        self.may_write, self.is_writing, self.has_written = (
            asyncio.Event(),
            asyncio.Event(),
            asyncio.Event(),
        )
        self.may_write.set()

    async def publish(self, health, before=None):
        self.rows.append(health)
        self.is_writing.set()
        await self.may_write.wait()
        await super().publish(health, before)
        self.has_written.set()


@pytest.fixture
def recorded():
    return Recorded()


@pytest.fixture
def reporter(clock, recorded):
    return reporter_of(clock, recorded)


def reporter_of(clock, agent_health):
    circuit = CircuitBreaker(orders=10, open_for=seconds(30), clock=clock)
    return HealthReporter(
        agent="payment", instance="a1", circuit=circuit, agent_health=agent_health, clock=clock
    )


def request(issued=0.0, attempt=1):
    """A request that was issued so many seconds after the beginning."""
    return AgentRequest(
        order_id=ORDER_ID,
        step="payment",
        action="do",
        operation="authorise",
        attempt=attempt,
        idempotency_key="k",
        issued_at=NOW + seconds(issued),
        complete_by=NOW + seconds(100),
        content={},
    )


async def begin(reporter, clock, *times, attempt=1, answered=False):
    """Begin requests that were issued at these times, each when it was issued; they may be answered immediately."""
    for time in times:
        clock.now = NOW + seconds(time)
        begun_request = request(time, attempt)
        await reporter.request_started(begun_request)
        if answered:
            reporter.replied(begun_request, is_answer=True)


@pytest.mark.proves("AGT-10")
async def test_an_agent_at_work_says_so_once_a_second(reporter, recorded, clock):
    """No request within the second adds a write."""
    await begin(reporter, clock, 0, 0.1, 0.5, 0.999, 1, 1.5, 1.999, 2)
    assert [row.at - NOW for row in recorded.rows] == [seconds(0), seconds(1), seconds(2)]
    (standing,) = await recorded.since(NOW)
    assert standing == recorded.rows[-1]


@pytest.mark.proves("AGT-10")
async def test_a_row_says_how_many_calls_are_in_progress(reporter, recorded, clock):
    """This one, and one that began before."""
    with reporter.at_work(), reporter.at_work():
        await begin(reporter, clock, 0)
    await begin(reporter, clock, 1)
    assert [row.running for row in recorded.rows] == [2, 0]


@pytest.mark.proves("AGT-10")
async def test_a_row_says_how_many_requests_are_answered_every_second(reporter, recorded, clock):
    """The rate is an average over some seconds, with rests; the first row cannot have one."""
    await begin(reporter, clock, *(tenth / 10 for tenth in range(201)), 80, answered=True)
    first, *rates, after_a_rest = (row.rate for row in recorded.rows)
    assert first == 0.0
    assert rates == pytest.approx([10 * (1 - math.exp(-second)) for second in range(1, 21)])
    assert after_a_rest == pytest.approx(1 / 60, rel=0.01)


@pytest.mark.proves("AGT-8", "AGT-10")
async def test_the_rate_counts_what_was_answered_alone(reporter, recorded, clock):
    """Fewer requests are sent to a service whose calls time out, and none for what met an open circuit."""
    begun = [request(attempt=number) for number in range(2, 6)]
    await reporter.request_started(begun[0])
    for begun_request in begun[1:]:
        await reporter.request_started(begun_request)
        reporter.replied(begun_request, is_answer=False)
    await reporter.attempt_without_result(begun[0], "no answer", is_timeout=True)
    clock.now += INTERVAL
    await reporter.request_started(request(attempt=6))
    assert {row.rate for row in recorded.rows} == {0.0}
    await reporter.answers_later(begun[0])
    clock.now += INTERVAL
    await reporter.request_started(request(attempt=7))
    assert recorded.rows[-1].rate > 0


async def test_a_row_that_follows_another_at_once_repeats_its_rate(reporter, recorded, clock):
    """In so short a time one request more or less would make all the difference."""
    await begin(reporter, clock, 0, 0.5, 1, answered=True)
    await begin(reporter, clock, 1.001, attempt=2)
    _, before, at_once = (row.rate for row in recorded.rows)
    assert before == at_once > 0


@pytest.mark.proves("AGT-10", "SUP-3")
async def test_a_row_names_what_has_begun_until_a_supervisor_has_seen_it(reporter, recorded, clock):
    """Also what came to nothing; a sweep comes a while after the time is over."""
    first, later = request(), request(issued=5, attempt=2)
    await reporter.request_started(first)
    for seconds_later, names in (
        (5, [first, later]),
        (100 + SWEPT_BY.total_seconds() - 0.001, [first, later]),
    ):
        clock.now = NOW + seconds(seconds_later)
        await reporter.request_started(later)
        assert recorded.rows[-1].begun == tuple(begun_request.request_id for begun_request in names)
    clock.now = NOW + seconds(100) + SWEPT_BY
    await reporter.attempt_without_result(first, "503")
    assert (recorded.rows[-1].begun, recorded.rows[-1].faults) == ((), ())


@pytest.mark.proves("AGT-10", "SUP-3")
async def test_what_was_answered_is_named_no_more_unless_it_was_tried_before(
    reporter, recorded, clock
):
    """One lost reply is nobody's fault; an order that loses each reply has to end in Error."""
    for attempt in (1, 2):
        tried = request(attempt=attempt)
        await reporter.request_started(tried)
        reporter.replied(tried, is_answer=True)
    clock.now += INTERVAL
    await reporter.attempt_without_result(tried, "503")
    assert recorded.rows[-1].begun == (tried.request_id,)


@pytest.mark.proves("AGT-10")
async def test_a_row_names_no_more_than_it_can_hold(reporter, recorded):
    """What is left out is charged to nobody."""
    step = "s" * 60
    begun = [
        request().model_copy(update={"step": step, "attempt": number})
        for number in range(1, 2 * MOST_BEGUN)
    ]
    for begun_request in begun:
        await reporter.request_started(begun_request)
    assert len(recorded.rows[-1].begun) == MOST_BEGUN
    assert len(json.dumps(recorded.rows[-1].begun)) < MAX_CHARACTERS


@pytest.mark.proves("AGT-8", "SUP-3")
async def test_a_row_says_when_attempts_timed_out(reporter, recorded, clock):
    """Beside equal texts of other faults; to the second, since there are many in a row."""
    late, later, down = (request(attempt=number) for number in range(1, 4))
    for begun_request in (late, later, down):
        await reporter.request_started(begun_request)
    clock.now += seconds(0.9)
    await reporter.attempt_without_result(late, "x", is_timeout=True)
    clock.now += seconds(2)
    await reporter.attempt_without_result(later, "x", is_timeout=True)
    await reporter.attempt_without_result(down, "x")
    (standing,) = await recorded.since(NOW)
    assert standing == recorded.rows[-1]
    times = {
        name: at
        for fault in standing.faults
        for name, at in zip(fault.requests, fault.timed_out_at or (None,), strict=True)
    }
    assert times == {
        late.request_id: NOW,
        later.request_id: NOW + seconds(2),
        down.request_id: None,
    }


@pytest.mark.proves("AGT-10", "SUP-3")
@pytest.mark.parametrize("is_timeout", [False, True], ids=["a fault", "a time-out"])
async def test_a_row_says_of_every_request_whether_a_gateway_answered(
    reporter, recorded, is_timeout
):
    """However many faults there are: what decides has room for all, the texts for the newest (engine 13)."""
    begun = [request(attempt=10**9 - number) for number in range(1, MOST_BEGUN + 10)]
    begun = [unnamed.model_copy(update={"step": "s" * 41}) for unnamed in begun]
    for number, begun_request in enumerate(begun):
        await reporter.request_started(begun_request)
        text = chr(ord("a") + number % 26) * (1 + number // 26) + '"' * MAX_FAULT_TEXT
        await reporter.attempt_without_result(
            begun_request, text, by_gateway=number % 2 == 0, is_timeout=is_timeout
        )
    row = recorded.rows[-1]
    assert stored_form(agent_health.FORM.columns(row))
    (standing,) = await recorded.since(NOW)
    assert standing == row
    found = [fault_of([standing], begun_request.request_id) for begun_request in begun]
    reported = found[:MOST_BEGUN]
    assert [fault.by_gateway for fault in reported] == [
        number % 2 == 0 for number in range(MOST_BEGUN)
    ]
    assert found[MOST_BEGUN:] == [None] * (len(begun) - MOST_BEGUN)
    assert [bool(fault.text) for fault in reported] == [
        number >= MOST_BEGUN - MOST_TEXTS for number in range(MOST_BEGUN)
    ]


@pytest.mark.proves("AGT-10", "ANS-8", "SUP-3")
async def test_requests_that_wait_for_their_links_leave_slots_for_others(reporter, recorded, clock):
    """However many they are; one that no row can name costs no write."""
    waiting = [request(attempt=number) for number in range(2, MOST_BEGUN + 4)]
    for waiting_request in waiting:
        await reporter.request_started(waiting_request)
        await reporter.answers_later(waiting_request)
    written = len(recorded.rows)
    await reporter.answers_later(waiting[-2])
    assert len(recorded.rows) == written
    clock.now += INTERVAL
    await reporter.request_started(another := request(attempt=1))
    names = [named.request_id for named in (another, *waiting[: MOST_BEGUN - 1])]
    assert recorded.rows[-1].begun == tuple(names)


@pytest.mark.proves("AGT-10", "SUP-3")
async def test_a_request_that_was_tried_before_is_reported_before_it_is_called(
    reporter, recorded, clock
):
    """It may kill the process each time; what the row names already adds no other."""
    await begin(reporter, clock, 0, 0.1)
    await begin(reporter, clock, 0.2, attempt=2)
    await begin(reporter, clock, 0.3, 0.4, attempt=3)
    assert [len(row.begun) for row in recorded.rows] == [1, 2, 3]


@pytest.mark.proves("AGT-10", "SUP-3", "FLT-2")
async def test_a_request_that_kills_its_process_is_reported_the_second_time_at_the_latest():
    """The first time it may come within a second of another, and die before the next row."""
    agency = Agency()
    await agency.agent.handle(agency.request)
    killed, reported = [], []

    class KilledError(BaseException):
        """Stands for the end of the process."""

    async def kills(request, timeout_seconds):
        killed.append(request.attempt)
        reported.append([request.request_id in row.begun for row in await agency.agent_health()])
        raise KilledError

    agency.remote.call = kills
    for attempt in (1, 2):
        agency.now += INTERVAL / 4
        times = {"issued_at": agency.now, "complete_by": agency.now + seconds(5)}
        request = agency.request.model_copy(
            update={"order_id": "b01-another", "attempt": attempt, **times}
        )
        with pytest.raises(KilledError):
            await agency.agent.handle(request)
    assert killed == [1, 2]
    assert reported == [[False], [True]]


@pytest.mark.proves("AGT-10")
async def test_all_who_wait_at_the_same_time_share_one_row(reporter, recorded, clock):
    """It has the news of all, however many requests are tried again at the same moment."""
    recorded.may_write.clear()
    begun = [request(attempt=2 + number) for number in range(100)]
    waiting = asyncio.gather(
        *(reporter.request_started(begun_request) for begun_request in begun),
        *(reporter.attempt_without_result(begun_request, "503") for begun_request in begun),
    )
    await recorded.is_writing.wait()
    late = [
        asyncio.create_task(reporter.attempt_without_result(begun_request, "504"))
        for begun_request in begun
    ]
    await asyncio.sleep(0)
    recorded.may_write.set()
    await asyncio.gather(waiting, *late)
    assert len(recorded.rows) == 2
    (standing,) = await recorded.since(NOW)
    (fault,) = standing.faults
    assert (len(standing.begun), fault.text, sorted(fault.requests)) == (
        100,
        "504",
        sorted(standing.begun),
    )


@pytest.mark.proves("AGT-10", "FLT-9")
async def test_an_agent_goes_on_saying_how_it_is_when_its_clock_was_put_back(
    reporter, recorded, clock
):
    """A second after the last time by either clock, not once the old time has come again."""
    await begin(reporter, clock, 3600, 0, 1, answered=True)
    assert [row.at - NOW for row in recorded.rows] == [seconds(3600), seconds(0), seconds(1)]
    assert [row.rate for row in recorded.rows] == [0.0, 0.0, pytest.approx(1 - math.exp(-1))]


async def test_a_table_that_is_away_stops_no_request(clock):
    """The agent goes on, and says it again with the next request."""
    tries = []

    class Away:
        async def publish(self, health, before=None):
            tries.append(health)
            raise UnavailableError

    reporter = reporter_of(clock, Away())
    await reporter.request_started(request())
    await reporter.request_started(request())
    assert len(tries) == 1
    await reporter.request_started(request(attempt=2))
    await reporter.request_started(request(attempt=2))
    assert len(tries) == 3


async def test_a_table_that_does_not_answer_stops_no_request_for_long(
    reporter, recorded, monkeypatch
):
    """Who waits for it goes on after a while; who comes within a second need not wait."""
    monkeypatch.setattr("agents.health.PATIENCE", seconds(0.01))
    recorded.may_write.clear()
    await reporter.request_started(request())
    monkeypatch.setattr("agents.health.PATIENCE", seconds(3600))
    await reporter.request_started(request())
    assert await recorded.since(NOW) == []
    recorded.may_write.set()
    await recorded.has_written.wait()
    assert await recorded.since(NOW) == recorded.rows


@pytest.mark.proves("AGT-8")
async def test_an_open_circuit_is_reported_to_all_callers_before_they_continue(
    reporter, recorded, clock
):
    """In one row; each further one would say the same."""
    for number in range(10):
        with pytest.raises(TransientError), reporter.circuit.guard(f"order-{number}"):
            raise TransientError("503")
    recorded.may_write.clear()
    waiting = [asyncio.create_task(reporter.turned_away()) for _ in range(100)]
    await recorded.is_writing.wait()
    assert not any(task.done() for task in waiting)
    recorded.may_write.set()
    await asyncio.gather(*waiting)
    assert len(recorded.rows) == 1
    clock.now += seconds(20)
    await reporter.turned_away()
    assert [row.open_until for row in recorded.rows] == [NOW + seconds(30)]


async def test_a_row_that_says_nothing_of_the_present_is_removed_an_hour_later():
    """Retention removes it, whatever else is kept; an open circuit counts until its time."""
    agency = Agency()
    await agency.agent.handle(agency.request)
    opened = health(agent="payment", instance="open", open_until=NOW + seconds(600))
    await agency.app.engine.agent_health.publish(opened)
    retention = agency.app.operations.services.retention
    agency.now = NOW + FRESH + KEPT
    await retention.sweep()
    assert len(await agency.agent_health()) == 2
    agency.now += seconds(0.001)
    await retention.sweep()
    assert await agency.agent_health() == [opened]


async def test_an_ordinary_attempt_adds_no_write_beyond_one_a_second():
    """Not when it is begun, and not when it is done."""
    agency, writes = Agency(), []
    table = agency.app.engine.agent_health._table
    submit_separately = table.submit_separately

    async def counted(partition, operations):
        writes.append(partition)
        await submit_separately(partition, operations)

    table.submit_separately = counted
    for _ in range(10):
        await agency.agent.handle(agency.request)
        agency.now += INTERVAL / 10 - MARGIN / 1000
    assert writes == [agent_health.PARTITION]
