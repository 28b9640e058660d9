"""How much an agent asks of its service at a time (AGT-10, WRK-2)."""

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from unittest.mock import patch

import pytest

from agents.bulkhead import Bulkhead
from engine.domain.errors import ThrottledError, TransientError
from tests.support.agency import CALL_TIMEOUT, CIRCUIT_ORDERS, MARGIN, Agency
from tests.support.builders import NOW, ORDER_ID, seconds

IN_FLIGHT = 2
HOUR = timedelta(hours=1)


class BusyService:
    """Takes a few turns of the event loop for each call, and counts those under way at once."""

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


class Hangs:
    """Calls that a test holds up; remembers how long each might have taken, in seconds."""

    def __init__(self):
        self.calls, self.begun, self.ends = [], asyncio.Event(), asyncio.Event()

    async def __call__(self, request, timeout_seconds):
        self.calls.append(timeout_seconds)
        self.begun.set()
        await self.ends.wait()
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
async def test_a_request_for_which_there_is_no_turn_goes_back_and_has_not_begun():
    """Untried, while there is still time for another agent; the circuit is closed all the while."""
    agency, hangs = Agency(in_flight=1), Hangs()
    later = agency.request.model_copy(update={"order_id": f"{ORDER_ID[:-1]}X"})
    agency.remote.call = hangs
    first = asyncio.create_task(agency.agent.handle(agency.request))
    await hangs.begun.wait()
    agency.now = agency.request.complete_by - MARGIN - CALL_TIMEOUT
    await agency.agent.handle(later)
    ((_, reply),) = agency.replies()
    assert (reply.outcome, reply.reason) == ("notAttempted", "busy")
    (report,) = await agency.agent_health()
    assert (report.begun, report.open_until) == ((agency.request.request_id,), None)
    hangs.ends.set()
    await first
    assert len(hangs.calls) == 1


@pytest.mark.proves("AGT-2")
async def test_a_call_that_could_not_be_answered_in_time_does_not_begin():
    """A call cut off would be in doubt: when too little time is left for one, it goes back."""
    agency, hangs = Agency(in_flight=1), Hangs()
    agency.remote.call = hangs
    first = asyncio.create_task(agency.agent.handle(agency.request))
    await hangs.begun.wait()
    agency.now = agency.request.complete_by - MARGIN - CALL_TIMEOUT
    late = asyncio.create_task(agency.agent.handle(agency.request))
    await asyncio.wait({late}, timeout=0.05)
    hangs.ends.set()
    await asyncio.gather(first, late)
    assert hangs.calls == [CALL_TIMEOUT.total_seconds()]
    outcomes = sorted(reply.outcome for _, reply in agency.replies())
    assert outcomes == ["completed", "notAttempted"]


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
    assert {reply.outcome for _, reply in agency.replies()} == {"notAttempted"}


@pytest.mark.proves("AGT-8", "WRK-2")
async def test_a_request_that_meets_an_open_circuit_takes_nobody_s_turn():
    """It goes back at once: it neither waits for others, nor do others wait for it."""
    agency, turns = Agency(begins=datetime.now(UTC)), []
    for number in range(CIRCUIT_ORDERS):
        with suppress(TransientError), agency.circuit.guard(f"order-{number}"):
            raise TransientError("503")
    with patch.object(Bulkhead, "turn", lambda *args: turns.append(args)):
        await agency.agent.handle(agency.request)
    assert turns == []


WAIT = seconds(60)


class Throttled:
    """A service that answers 429 and asks for a minute, whatever is asked of it."""

    def __init__(self, agency):
        self.agency = agency
        self.calls, self.under_way, self.most = [], 0, 0
        self.answers, self.is_full = asyncio.Event(), asyncio.Event()

    async def call(self, request, timeout_seconds):
        self.calls.append(self.agency.now)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        if self.under_way == IN_FLIGHT:
            self.is_full.set()
        await self.answers.wait()
        self.under_way -= 1
        raise ThrottledError("429 slow down", WAIT)


def orders(agency, count):
    """Requests of so many orders, issued at this moment."""
    updates = {"issued_at": agency.now, "complete_by": agency.now + HOUR}
    return [
        agency.request.model_copy(update={**updates, "order_id": f"b03-{number:026d}"})
        for number in range(count)
    ]


@pytest.mark.proves("AGT-8", "AGT-10")
async def test_a_service_that_asks_for_a_minute_is_left_alone_for_a_minute():
    """Only calls under way are made; all others go back untried, and the row says until when."""
    agency = Agency(in_flight=IN_FLIGHT)
    service = Throttled(agency)
    agency.agent = replace(agency.agent, remote=service)
    handling = asyncio.gather(*map(agency.agent.handle, orders(agency, 500)))
    await service.is_full.wait()
    agency.now += seconds(1)
    service.answers.set()
    await handling
    assert len(service.calls) == IN_FLIGHT
    assert Counter((reply.outcome, reply.reason) for _, reply in agency.replies()) == {
        ("notAttempted", "throttled"): 500
    }
    assert {reply.retry_after for _, reply in agency.replies()} == {60.0}
    assert {reply.in_doubt for _, reply in agency.replies()} == {True, False}
    (row,) = await agency.agent_health()
    assert row.paused_until == row.open_until == NOW + seconds(61)

    agency.now += WAIT - seconds(0.001)
    await asyncio.gather(*map(agency.agent.handle, orders(agency, 500)))
    assert len(service.calls) == IN_FLIGHT


@pytest.mark.proves("AGT-8")
async def test_after_the_pause_that_a_service_requested_one_call_at_a_time_tries():
    """It may ask again; once it has worked, all may call."""
    agency = Agency(in_flight=IN_FLIGHT)
    service = Throttled(agency)
    agency.agent = replace(agency.agent, remote=service)
    service.answers.set()
    await agency.agent.handle(agency.request)
    for minute in (1, 2):
        agency.now = NOW + minute * WAIT
        service.calls.clear()
        service.answers.clear()
        handling = [
            asyncio.create_task(agency.agent.handle(request)) for request in orders(agency, 500)
        ]
        for turned_away in islice(asyncio.as_completed(handling), 499):
            await turned_away
        service.answers.set()
        await asyncio.gather(*handling)
        assert (len(service.calls), service.most) == (1, 1)
    agency.now += WAIT
    agency.agent = replace(agency.agent, remote=BusyService())
    await asyncio.gather(*map(agency.agent.handle, orders(agency, 1)))
    assert (agency.circuit.open_until, agency.circuit.throttled_until) == (None, None)
