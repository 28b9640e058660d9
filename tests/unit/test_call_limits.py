"""How much an agent asks of its service at a time, and in a time (AGT-10, WRK-2)."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest
from agency import CALL_TIMEOUT, CIRCUIT_ORDERS, MARGIN, Agency
from builders import NOW, seconds

from adapters.memory import MemoryCallRates
from agents.limits import CallLimits
from core.errors import NotTriedError, TransientError
from core.rates import turns

IN_FLIGHT = 2
PER_SECOND = 10
HOUR = timedelta(hours=1)


class BusyService:
    """Takes a few turns of the event loop for each call, and remembers how many were under way at once."""

    def __init__(self):
        self.calls, self.under_way, self.most = 0, 0, 0

    async def call(self, request, timeout_seconds):
        self.calls += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        for _ in range(5):
            await asyncio.sleep(0)
        self.under_way -= 1
        return {}


@pytest.mark.proves("AGT-10", "WRK-2")
async def test_no_more_calls_are_in_flight_than_the_service_takes():
    """The others wait for their turn, and get it."""
    agency, service = Agency(in_flight=IN_FLIGHT), BusyService()
    agency.remote.call = service.call
    await asyncio.gather(*(agency.agent.handle(agency.request) for _ in range(5 * IN_FLIGHT)))
    assert (service.most, service.calls) == (IN_FLIGHT, 5 * IN_FLIGHT)
    assert [reply.outcome for _, reply in agency.replies()] == ["completed"] * 5 * IN_FLIGHT


@pytest.mark.proves("AGT-10")
async def test_a_request_for_which_there_is_no_turn_goes_back_and_schedulers_hear_of_it():
    """Untried, while there is still time for another agent; the circuit is closed all the while."""
    agency, calls = Agency(in_flight=1), []
    begun, ends = asyncio.Event(), asyncio.Event()

    async def the_first_hangs(request, timeout_seconds):
        calls.append(request)
        begun.set()
        if len(calls) == 1:
            await ends.wait()
        return {}

    agency.remote.call = the_first_hangs
    first = asyncio.create_task(agency.agent.handle(agency.request))
    await begun.wait()
    agency.now = agency.request.complete_by - MARGIN - CALL_TIMEOUT
    await agency.agent.handle(agency.request)
    ((_, reply),) = agency.replies()
    assert (reply.outcome, reply.reason) == ("notTried", "too many calls are in flight")
    assert not reply.circuit_open
    assert [(measure.waited, measure.open_until) for measure in agency.measures()] == [(1.0, None)]
    ends.set()
    await first
    assert len(calls) == 1


@pytest.mark.proves("AGT-10", "FLT-9")
async def test_an_agent_goes_on_publishing_when_its_clock_was_put_back():
    """A second after the last time by either clock, not once the old time has come again."""
    agency = Agency(allowance=2 * HOUR)
    await agency.agent.handle(agency.request)
    agency.now -= HOUR
    await agency.agent.handle(agency.request)
    assert [measure.at for measure in agency.measures()] == [agency.now]


@pytest.mark.proves("AGT-8")
async def test_what_waits_for_its_turn_is_not_called_once_the_circuit_is_open():
    """Many requests wait for their turn while the service fails for one order after another."""
    agency, begun = Agency(in_flight=IN_FLIGHT, begins=datetime.now(UTC)), {"closed": 0, "open": 0}

    async def fails(request, timeout_seconds):
        begun["open" if agency.circuit.open_until else "closed"] += 1
        await asyncio.sleep(0)
        raise TransientError("503")

    agency.remote.call = fails
    ids = [f"b03-{number:026d}" for number in range(5 * CIRCUIT_ORDERS)]
    requests = [agency.request.model_copy(update={"order_id": order_id}) for order_id in ids]
    await asyncio.gather(*map(agency.agent.handle, requests))
    assert begun["open"] == 0
    assert CIRCUIT_ORDERS <= begun["closed"] < CIRCUIT_ORDERS + IN_FLIGHT
    assert {reply.outcome for _, reply in agency.replies()} == {"notTried"}


@pytest.mark.proves("AGT-8", "WRK-2")
async def test_a_request_that_meets_an_open_circuit_takes_nobody_s_turn():
    """It goes back at once: it neither waits for others, nor do others wait for it."""
    agency, turns = Agency(begins=datetime.now(UTC)), []
    for number in range(CIRCUIT_ORDERS):
        with suppress(TransientError), agency.circuit.guard(f"order-{number}"):
            raise TransientError("503")
    with patch.object(CallLimits, "turn", lambda *args: turns.append(args)):
        await agency.agent.handle(agency.request)
    assert turns == []


class Rated:
    """The limits of a service that takes so many calls per second; says when each call begins."""

    def __init__(self, per_second):
        self.now, self.begun = NOW, []
        self.limits = CallLimits(
            agent="payment",
            in_flight=1000,
            per_second=per_second,
            rates=MemoryCallRates(self.clock),
            clock=self.clock,
            sleep=self.sleep,
        )

    def clock(self):
        return self.now

    async def sleep(self, time):
        self.begun.append(self.now + seconds(time))

    async def call(self):
        async with self.limits.turn(self.now + HOUR):
            pass

    def most_within(self, time):
        """How many calls began within a time as long as this."""
        return max(sum(start <= each < start + time for each in self.begun) for start in self.begun)


@pytest.mark.proves("WRK-2")
@pytest.mark.parametrize("idle", [seconds(0), seconds(1), HOUR], ids=["at once", "after a second", "after an hour"])
async def test_a_burst_of_calls_is_spread_over_time(idle):
    """However long nobody called: half a second's calls may begin at once, and then no more than the rate allows."""
    service = Rated(PER_SECOND)
    await service.call()
    service.now += idle
    service.begun.clear()
    await asyncio.gather(*(service.call() for _ in range(4 * PER_SECOND)))
    assert len(service.begun) == 4 * PER_SECOND
    assert service.most_within(seconds(0.001)) <= PER_SECOND / 2 + 1
    assert service.most_within(seconds(1)) <= 1.5 * PER_SECOND + 1


@pytest.mark.proves("WRK-2", "AGT-10")
async def test_a_call_whose_turn_would_come_too_late_takes_none():
    """Its request goes back, for another agent to take."""
    service = Rated(1)
    await service.call()
    with pytest.raises(NotTriedError, match="no more calls per second"):
        async with service.limits.turn(service.now + seconds(0.4)):
            service.begun.append("too late")
    assert service.begun == [NOW]


@pytest.mark.proves("AGT-10", "WRK-2")
@pytest.mark.parametrize(
    ("others", "left", "outcome"),
    [(0, CALL_TIMEOUT / 2, "completed"), (1, CALL_TIMEOUT * 2, "notTried")],
    ids=["no time to lose", "no time for an answer"],
)
async def test_a_call_begins_at_once_or_while_it_can_still_be_answered(others, left, outcome):
    """However little time is left, a turn that is free is taken; to wait for one makes sense only if time is left."""
    agency = Agency()
    agency.agent.limits.rates, agency.agent.limits.per_second = MemoryCallRates(agency.clock), 1 / 3
    agency.now = agency.request.complete_by - MARGIN - left
    for _ in range(others):
        await agency.agent.limits.rates.next_call("payment", 1 / 3, agency.now)
    await agency.agent.handle(agency.request)
    assert [reply.outcome for _, reply in agency.replies()] == [outcome]


@pytest.mark.proves("WRK-2")
def test_who_cannot_use_a_turn_takes_none():
    """It goes to the next one, who may use it to the last moment."""
    assert turns(None, NOW, seconds(1), [NOW - seconds(1), NOW]) == ([None, NOW], NOW + seconds(1))
