"""How many calls a second an agent makes, with all its instances (WRK-2)."""

import json
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from unittest.mock import AsyncMock, patch

import pytest
from agency import CALL_TIMEOUT, MARGIN, Agency
from builders import NOW, ORDER_ID, seconds
from scheduling import Scheduling, Working, only, work

from adapters.settings import EXPECTED, Settings, SettingsError
from agents.protection import SHARED_ANEW, Pace
from core.errors import NotTriedError, TransientError, UnavailableError
from core.faults import Fault, FaultCode
from development.settings import app_settings
from kit.memory import of_columns
from local.ports import Ports
from scheduler.admission import FEW, open_at
from shop.business import SHOP
from stores.agent_health import FRESH, OPERATOR, AgentHealth, AgentHealthLog

FIVE = 5.0
LATEST = NOW + seconds(60)


class World:
    """A clock that stands still but for the pauses of whoever waits, and the table of the agents."""

    def __init__(self):
        self.now, self.pauses = NOW, []
        self.log = AgentHealthLog(of_columns())

    async def sleep(self, time):
        self.pauses.append(time)

    def pace(self, per_second=FIVE, instance="a1"):
        return Pace(
            agent="payment",
            instance=instance,
            per_second=per_second,
            agent_health=self.log,
            clock=lambda: self.now,
            sleep=self.sleep,
        )

    async def at_work(self, *instances, agent="payment", **more):
        for instance in instances:
            said = AgentHealth(**{"agent": agent, "instance": instance, "at": self.now} | more)
            await self.log.publish(said)


@pytest.fixture
def world():
    return World()


def turns(pace, count, now=NOW, latest=LATEST):
    """The times of so many turns that are asked for in one moment, in seconds from now."""
    found = [pace.take(now, latest, seconds(1 / FIVE)) for _ in range(count)]
    return [round((turn - now).total_seconds(), 6) for turn in found if turn]


@pytest.mark.proves("WRK-2")
def test_calls_are_spaced_evenly(world):
    """The first begins at once, and time without calls earns no burst."""
    pace = world.pace()
    assert turns(pace, 4) == [0, 0.2, 0.4, 0.6]
    assert turns(pace, 2, NOW + seconds(0.7)) == [0.1, 0.3]
    assert turns(pace, 2, NOW + seconds(30)) == [0, 0.2]


@pytest.mark.proves("WRK-2")
def test_a_turn_that_would_come_too_late_is_left_to_others(world):
    """Who cannot wait takes none away from who can."""
    pace = world.pace()
    assert turns(pace, 9, latest=NOW + seconds(0.45)) == [0, 0.2, 0.4]
    assert turns(pace, 1) == [0.6]


def test_a_clock_that_is_put_back_stops_no_calls(world):
    """The turns that were taken before are forgotten."""
    pace = world.pace()
    turns(pace, 3)
    assert turns(pace, 2, NOW - timedelta(hours=1)) == [0, 0.2]


@pytest.mark.proves("WRK-2")
async def test_the_instances_at_work_share_the_rate(world):
    """By their own fresh reports: a stale one, another agent's, and what others say of it do not count."""
    await world.at_work("a1", "a2", "a3")
    await world.at_work("old", at=NOW - FRESH, open_until=NOW + seconds(60))
    await world.at_work("b1", agent="shipping")
    await world.at_work("v1", unheard_since=NOW)
    await world.at_work(OPERATOR, held_by="grace", asked_until=NOW + seconds(60))
    pace = world.pace()
    for _ in range(3):
        await pace.turn(LATEST)
    assert world.pauses == [0.6, 1.2]


@pytest.mark.proves("WRK-2")
async def test_an_instance_that_has_not_reported_yet_counts_itself(world):
    """Its first report is written when its first call begins."""
    await world.at_work("a2")
    pace = world.pace()
    for _ in range(2):
        await pace.turn(LATEST)
    assert world.pauses == [0.4]


async def test_who_shares_the_rate_is_read_only_now_and_then_and_only_where_a_rate_is_declared(
    world,
):
    """Once in three seconds of work, however many calls begin."""
    with patch.object(world.log, "since", AsyncMock(return_value=[])) as read:
        unlimited = world.pace(per_second=None)
        for _ in range(100):
            await unlimited.turn(NOW)
        assert (read.await_count, world.pauses) == (0, [])
        pace = world.pace(per_second=1e6)
        for _ in range(100):
            await pace.turn(LATEST)
        assert read.await_count == 1
        world.now += SHARED_ANEW
        await pace.turn(LATEST)
        assert read.await_count == 2


async def test_calls_go_on_while_it_cannot_be_read_who_shares_the_rate(world):
    """With what was known before."""
    await world.at_work("a1", "a2")
    pace = world.pace()
    await pace.turn(LATEST)
    world.now += SHARED_ANEW
    with patch.object(world.log, "since", AsyncMock(side_effect=UnavailableError)):
        for _ in range(2):
            await pace.turn(LATEST)
    assert world.pauses == [0.4]


# The agent


class Paced(Agency):
    """An agent whose service takes one call a second."""

    def __init__(self, *failures, **more):
        super().__init__(*failures, **more)
        pace = replace(self.agent.pace, per_second=1.0, sleep=self.sleep)
        self.agent = replace(self.agent, pace=pace)
        self.began = []
        answer = self.remote.call

        async def call(request, timeout_seconds):
            self.began.append((self.now - NOW).total_seconds())
            return await answer(request, timeout_seconds)

        self.remote.call = call


@pytest.mark.proves("WRK-2", "AGT-2")
async def test_the_agents_own_retries_wait_for_their_turn_too():
    """A service counts every call."""
    agency = Paced(TransientError("503"), TransientError("503"), timeout=seconds(30))
    await agency.agent.handle(agency.request)
    assert agency.began == [0, 1, 2]
    assert [reply.outcome for _, reply in agency.replies()] == ["completed"]


@pytest.mark.proves("WRK-2", "AGT-10")
async def test_a_request_without_a_turn_in_its_time_goes_back_and_has_not_begun():
    """Nothing is charged; the circuit stays closed, and the next request gets the slot."""
    agency = Paced(in_flight=1)
    latest = agency.request.complete_by - MARGIN - CALL_TIMEOUT
    agency.agent.pace._free_at = latest + seconds(0.001)
    await agency.agent.handle(agency.request)
    ((_, reply),) = agency.replies()
    assert (reply.outcome, reply.in_doubt, reply.circuit_open) == ("notTried", False, False)
    assert reply.reason == "more calls a second are due than the service takes"
    assert (agency.began, await agency.agent_health()) == ([], [])
    agency.agent.pace._free_at = latest
    other = agency.request.model_copy(update={"order_id": f"{ORDER_ID[:-1]}X"})
    await agency.agent.handle(other)
    assert agency.replies()[-1][1].outcome == "completed"


@pytest.mark.proves("WRK-2")
async def test_a_call_that_was_made_and_gets_no_second_turn_is_in_doubt():
    """The service may have done it all the same."""
    agency = Paced(TransientError("503"))
    agency.agent.pace.per_second = 0.01
    await agency.agent.handle(agency.request)
    ((_, reply),) = agency.replies()
    assert (reply.outcome, reply.in_doubt, len(agency.began)) == ("notTried", True, 1)


# The declaration and the setting


def test_a_setting_takes_the_place_of_the_declared_rate():
    """For the agents that it names."""
    there = Scheduling().app(calls_per_second={"payment": 2.5})
    declared = [replace(agent, per_second=7.0) for agent in there.agents]
    rates = {agent.name: there.agent(agent).pace.per_second for agent in declared}
    assert rates == {"payment": 2.5, "inventory": 7.0, "shipping": 7.0}


@pytest.mark.parametrize("rate", [0, -1, 1e9])
def test_a_rate_that_is_none_is_told_at_the_start(monkeypatch, rate):
    """With all else that is wrong, such as the name of an agent that there is not."""
    for name, value in app_settings(Ports(), "key", "key", SHOP.agents).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CALLS_PER_SECOND", json.dumps({"payment": rate}))
    with pytest.raises(SettingsError) as caught:
        Settings.read(SHOP.agents)
    (fault,) = caught.value.faults
    assert (fault.place, fault.code) == ("CALLS_PER_SECOND", FaultCode.SETTING_MALFORMED)
    assert fault.facts["expected"] == EXPECTED["CALLS_PER_SECOND"]
    monkeypatch.setenv("CALLS_PER_SECOND", json.dumps({"fax": 1}))
    with pytest.raises(SettingsError) as caught:
        Settings.read(SHOP.agents)
    agents = tuple(agent.name for agent in SHOP.agents if not agent.optional)
    assert caught.value.faults == [
        Fault(FaultCode.SETTING_UNKNOWN_AGENT, "CALLS_PER_SECOND", agent="fax", agents=agents)
    ]


# The scheduler


@dataclass
class Agent(Working):
    """An agent with several instances, whose service takes so many calls a second of all of them."""

    per_second: float = FIVE
    instances: int = 2
    turned_away: int = 0
    to_begin: list = field(default_factory=list)
    began_at: list = field(default_factory=list)

    def __post_init__(self):
        self.paces = [World().pace(self.per_second, str(each)) for each in range(self.instances)]
        self.came = 0

    async def go_on(self, world):
        apart = seconds(self.instances / self.per_second)
        for request in world.requests(self.name):
            self.asked_at.setdefault(request.order_id, world.now)
            pace = self.paces[self.came % self.instances]
            self.came += 1
            turn = pace.take(world.now, request.complete_by - MARGIN - CALL_TIMEOUT, apart)
            self.turned_away += turn is None
            if turn:
                self.to_begin.append((turn, request))
        return await self._begin(world)

    async def _begin(self, world):
        done = [request for until, request in self.calls if until <= world.now]
        self.calls = [(until, request) for until, request in self.calls if until > world.now]
        for turn, request in [each for each in self.to_begin if each[0] <= world.now]:
            self.to_begin.remove((turn, request))
            self.rate.count()
            self.has_news = True
            self.began_at.append(turn)
            self.calls.append((turn + self.takes, request))
        await self._tell(world)
        return done


@pytest.mark.proves("WRK-2")
@pytest.mark.parametrize(("rate", "count"), [(FIVE, 100), (0.5, 15)])
async def test_a_backlog_at_a_service_with_a_rate_burns_no_attempt(rate, count):
    """No request is turned away or expires, no failure is counted, and the rate is made use of."""
    world = Scheduling(only("payment", seconds(15)), most=2000)
    ids = [await world.record(bucket=f"b{number % 8:02d}") for number in range(count)]
    agent = Agent("payment", 100, seconds(0.5), per_second=rate)

    async def all_are_done():
        return len(agent.began_at) == count and not agent.calls

    limits = {"calls_per_second": {"payment": rate}}
    pollers = [world.app(instance_id=f"i{each}", **limits).scheduler for each in range(2)]
    began = world.now
    await work(world, pollers, [agent], all_are_done, pollers)
    assert (agent.turned_away, agent.expired, len(agent.began_at)) == (0, 0, count)
    states = [(await world.load(each)).state for each in ids]
    assert {(str(state.process_state), state.failure_count) for state in states} == {
        ("Processed", 0)
    }
    assert world.now - began < seconds(1.5 * count / rate)
    for second in range(round((world.now - began).total_seconds())):
        start = began + seconds(second)
        assert in_span(agent.began_at, start, start + seconds(1)) <= rate + agent.instances


def in_span(times: list[datetime], start: datetime, end: datetime) -> int:
    """How many of the times are in it."""
    return sum(start <= each < end for each in times)


@pytest.mark.proves("WRK-2")
def test_no_more_requests_are_open_than_the_declared_rate_can_begin_in_time():
    """From the beginning, when nothing is known of the agent, and whatever calls in flight allow."""
    there = Scheduling(only("payment", seconds(15))).app(calls_per_second={"payment": 0.5})
    assert there.admission.capacity["payment"].most == open_at(0.5, seconds(15)) == FEW + 3
    assert there.admission.capacity["shipping"].most > FEW + 3


async def test_a_pace_that_has_no_turn_says_so_at_once(world):
    """It does not wait for a time that is too late."""
    pace = world.pace()
    await pace.turn(NOW)
    with pytest.raises(NotTriedError):
        await pace.turn(NOW)
    assert world.pauses == []
