"""The agent's row tells of an attempt that came to nothing, so nobody searches a log (AGT-4)."""

import asyncio

import pytest

from engine.domain.attempts import NotAttemptedReason
from engine.domain.errors import GatewayError, NotAttemptedError, TransientError
from engine.domain.texts import without_particulars
from engine.storage.agent_health import AttemptFault
from tests.support.agency import MARGIN, Agency
from tests.support.builders import ORDER_ID, TIMEOUT, seconds

DOWN = "503 down"


async def faults_in_row(agency):
    """What the agent's row says of the attempts that came to nothing."""
    (row,) = await agency.agent_health()
    return {
        request: (fault.text, fault.by_gateway)
        for fault in row.faults
        for request in fault.requests
    }


@pytest.mark.proves("AGT-2", "AGT-4")
async def test_the_agent_tells_the_last_fault_once_there_is_no_time_for_another_call():
    """In its row, of this attempt, before its time is up; it replies nothing: that is no answer."""
    agency = Agency(*[TransientError("no answer")] * 3, *[TransientError(DOWN)] * 1000)
    await agency.agent.handle(agency.request)
    assert agency.replies() == []
    assert 3 < len(agency.remote.calls) < 100
    assert await faults_in_row(agency) == {agency.request.request_id: (DOWN, False)}
    assert agency.now < agency.request.complete_by - MARGIN


@pytest.mark.proves("AGT-4")
async def test_of_a_service_that_hangs_to_the_end_the_agent_tells_that():
    """That there was no answer shows when the time is up: the margin is for saying so."""
    agency = Agency()

    async def hangs(request, timeout_seconds):
        agency.now += seconds(timeout_seconds)
        raise TransientError("no answer")

    agency.remote.call = hangs
    await agency.agent.handle(agency.request)
    assert agency.replies() == []
    assert await faults_in_row(agency) == {agency.request.request_id: ("no answer", False)}
    assert agency.now == agency.request.complete_by - MARGIN


@pytest.mark.proves("AGT-4")
async def test_an_answer_that_comes_too_late_is_reported_as_that():
    """It may not be passed on any more; the attempt was begun, and all can see that."""
    agency = Agency()

    async def slow(request, timeout_seconds):
        agency.now = request.complete_by - MARGIN
        return {}

    await agency.agent.handle(agency.request)
    agency.now += seconds(0.1)
    later = agency.request.model_copy(update={"issued_at": agency.now, "attempt": 2})
    agency.remote.call = slow
    await agency.agent.handle(later)
    assert await faults_in_row(agency) == {
        later.request_id: ("the service answered after the time was up", False)
    }
    (row,) = await agency.agent_health()
    assert later.request_id in row.begun


@pytest.mark.proves("AGT-4")
async def test_that_a_call_was_turned_away_before_the_service_is_reported_too():
    """So that an operator hears of it, and no order is taken back for it."""
    agency = Agency(*[GatewayError("403")] * 1000)
    await agency.agent.handle(agency.request)
    assert await faults_in_row(agency) == {agency.request.request_id: ("403", True)}


@pytest.mark.proves("AGT-4", "SUP-3")
async def test_the_fault_of_an_attempt_stands_whatever_comes_of_others():
    """The supervisor may come later than the next rows; that of one order is none of another's (engine 13)."""
    agency = Agency(*[GatewayError("403")] * 100)
    await agency.agent.handle(agency.request)
    first = {agency.request.request_id: ("403", True)}
    agency.remote.failures.clear()
    agency.now += seconds(10)
    late = {"issued_at": agency.now, "complete_by": agency.now + TIMEOUT, "attempt": 2}
    await agency.agent.handle(agency.request.model_copy(update=late))
    assert await faults_in_row(agency) == first
    agency.remote.failures += [TransientError(DOWN)] * 1000
    other = agency.request.model_copy(update=late | {"order_id": f"{ORDER_ID[:-1]}X"})
    await agency.agent.handle(other)
    assert await faults_in_row(agency) == first | {other.request_id: (DOWN, False)}


@pytest.mark.proves("AGT-4")
async def test_a_request_that_is_delivered_again_has_the_fault_of_its_last_delivery():
    """It stands once in the row."""
    agency = Agency(*[GatewayError("403")] * 100)
    await agency.agent.handle(agency.request)
    agency.remote.failures[:] = [TransientError(DOWN)] * 1000
    again = {"issued_at": agency.now, "complete_by": agency.now + TIMEOUT}
    await agency.agent.handle(agency.request.model_copy(update=again), again=True)
    (row,) = await agency.agent_health()
    assert row.faults == (AttemptFault(text=DOWN, requests=(agency.request.request_id,)),)


@pytest.mark.proves("AGT-4", "AGT-5")
async def test_of_what_was_not_begun_there_is_nothing_to_tell():
    """It came too late, or was not tried: no service was called."""
    agency = Agency(NotAttemptedError(NotAttemptedReason.BUSY, "busy", seconds(1)))
    agency.now = agency.request.complete_by
    await agency.agent.handle(agency.request)
    assert await agency.agent_health() == []


@pytest.mark.proves("AGT-4")
async def test_many_attempts_without_a_result_are_reported_together():
    """Together, and before the margin is over."""
    agency, hang, writes = Agency(in_flight=500), asyncio.Event(), []
    publish = agency.app.engine.agent_health.publish

    async def counted(*args):
        writes.append(args)
        await publish(*args)

    agency.app.engine.agent_health.publish = counted
    calling = []

    async def hangs(request, timeout_seconds):
        calling.append(request)
        if len(calling) == 100:
            agency.now = request.complete_by - MARGIN
            hang.set()
        await hang.wait()
        raise TransientError("no answer")

    agency.remote.call = hangs
    requests = [
        agency.request.model_copy(update={"order_id": f"{ORDER_ID[:-2]}{number:02d}"})
        for number in range(100)
    ]
    await asyncio.gather(*map(agency.agent.handle, requests))
    assert await faults_in_row(agency) == {
        request.request_id: ("no answer", False) for request in requests
    }
    assert len(writes) <= 3


@pytest.mark.proves("ALR-1")
async def test_what_a_service_says_is_short_and_plain():
    """Whatever it is: it goes to lists, terminals and logs."""
    agency = Agency(
        *[TransientError("down 2026-01-31T08:15:00Z\n\x1b[31m\u202e" + "x" * 900)] * 1000
    )
    await agency.agent.handle(agency.request)
    ((fault, _),) = (await faults_in_row(agency)).values()
    assert fault.startswith("down …  [31m xxx")
    assert fault.isprintable()
    assert len(fault) == 200


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("503 down", "503 down"),
        ("order b03-01JCX4T9Q8ZK7M2N5P6R3S1V0W is unknown", "order … is unknown"),
        ("request 7f3a0c52-1f7e-4b43-9a51-0b1f0a4b8f11 failed", "request … failed"),
        ("failed at 2026-01-31T08:15:00.123Z", "failed at …"),
        ("since 08:15:00 (4711000 ms)", "since … (… ms)"),
        ("trace 4bf92f3577b34da6a3ce929d0e0e4736.", "trace …."),
        (
            "Cannot connect to host 127.0.0.1:10000 ssl:default",
            "Cannot connect to host 127.0.0.1:10000 ssl:default",
        ),
        (
            "no answer: pay-2.example.com:8443, HTTP/1.1",
            "no answer: pay-2.example.com:8443, HTTP/1.1",
        ),
    ],
    ids=range(8),
)
def test_causes_can_be_grouped_by_what_services_say(text, shown):
    """Without what is different each time: ids and times."""
    assert without_particulars(text) == shown
