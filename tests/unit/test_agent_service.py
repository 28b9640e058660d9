"""What an agent does with a request: calls, pauses, replies, silence; and what it says of itself (AGT-2 to AGT-8)."""

import itertools
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from agency import CIRCUIT_ORDERS, MARGIN, OPEN_FOR, Agency
from builders import NOW, ORDER_ID, TIMEOUT, answer, seconds

from core.errors import NotTriedError, RejectedError, TransientError

LONG = seconds(60)


@pytest.mark.proves("AGT-2", "AGT-3")
async def test_transient_faults_are_retried_with_the_same_key():
    """Two failures, then an answer: one reply, and every call bore the same idempotency key."""
    agency = Agency(TransientError("503"), TransientError("503"))
    await agency.agent.handle(agency.request)
    ((correlation, reply),) = agency.replies()
    assert (correlation, reply.outcome) == (f"{ORDER_ID}:payment:1:do", "completed")
    assert {call.idempotency_key for call in agency.remote.calls} == {f"{ORDER_ID}:payment"}
    assert len(agency.remote.calls) == 3


@pytest.mark.proves("AGT-2")
async def test_pauses_between_tries_grow_exponentially():
    """Each is about twice the one before, from a fraction of a second up to a bound."""
    agency = Agency(*[TransientError("503")] * 1000, timeout=LONG)
    await agency.agent.handle(agency.request)
    assert 0.1 <= agency.pauses[0] <= 0.2
    growing = [pause for pause in agency.pauses if pause < max(agency.pauses)]
    assert len(growing) > 5
    for earlier, later in itertools.pairwise(growing[2:]):  # the first ones are jitter for the most part
        assert 1.5 < later / earlier < 2.5
    assert max(agency.pauses) <= 10


@pytest.mark.proves("AGT-2")
async def test_agents_that_failed_at_the_same_time_do_not_come_again_at_the_same_time():
    """Jitter: no two pauses are alike, else a service that is back would get all calls at once."""
    pauses = []
    for _ in range(3):
        agency = Agency(*[TransientError("503")] * 5)
        await agency.agent.handle(agency.request)
        pauses += agency.pauses
    assert len(pauses) == len(set(pauses))


@pytest.mark.proves("AGT-2", "AGT-4")
async def test_the_agent_tells_its_last_fault_before_its_time_is_up():
    """It stops a margin before complete-by, for clocks differ; what it says of its last call is no answer."""
    agency = Agency(*[TransientError("no answer")] * 3, *[TransientError("503 down")] * 1000)
    await agency.agent.handle(agency.request)
    ((correlation, reply),) = agency.replies()
    assert (correlation, reply.outcome, reply.reason) == (f"{ORDER_ID}:payment:1:do", "unfinished", "503 down")
    assert 3 < len(agency.remote.calls) < 100
    assert agency.now < agency.request.complete_by - MARGIN


@pytest.mark.proves("AGT-4")
async def test_the_agent_falls_silent_when_its_time_is_up():
    """Nothing is sent then, not even what went wrong."""
    agency = Agency()

    async def hangs(request, timeout_seconds):
        agency.now = request.complete_by - MARGIN / 2
        raise TransientError("no answer")

    agency.remote.call = hangs
    await agency.agent.handle(agency.request)
    assert agency.replies() == []


@pytest.mark.proves("AGT-4")
async def test_of_a_service_that_hangs_to_the_end_the_agent_tells_that():
    """That there was no answer shows when the time is up: half of the margin is for saying so."""
    agency = Agency()

    async def hangs(request, timeout_seconds):
        agency.now += seconds(timeout_seconds)
        raise TransientError("no answer")

    agency.remote.call = hangs
    await agency.agent.handle(agency.request)
    ((_, reply),) = agency.replies()
    assert (reply.outcome, reply.reason) == ("unfinished", "no answer")
    assert agency.now == agency.request.complete_by - MARGIN


@pytest.mark.proves("AGT-4")
@pytest.mark.parametrize(("early", "replies"), [(seconds(0.001), 1), (seconds(0), 0), (-MARGIN, 0)], ids=str)
async def test_an_answer_is_passed_on_until_a_margin_before_complete_by(early, replies):
    """The service answered, but the time was up: the agent says nothing."""
    agency = Agency()

    async def slow(request, timeout_seconds):
        agency.now = request.complete_by - MARGIN - early
        return {}

    agency.remote.call = slow
    await agency.agent.handle(agency.request)
    assert len(agency.replies()) == replies


@pytest.mark.proves("AGT-4")
@pytest.mark.parametrize("failures", [[], [RejectedError("no")]], ids=["completed", "failed"])
async def test_a_reply_lives_no_longer_than_until_complete_by(failures):
    """Whatever it says: on the queue it dies with the time of its request."""
    agency = Agency(*failures)
    agency.now += seconds(1)
    await agency.agent.handle(agency.request)
    (message,) = agency.parts.bus.sent
    assert message.time_to_live == agency.request.complete_by - agency.now == seconds(4)


@pytest.mark.proves("AGT-5")
@pytest.mark.parametrize("early", [seconds(0), MARGIN], ids=["expired", "too late to be answered"])
async def test_a_request_that_arrives_expired_is_dropped_without_a_call(early):
    """An expired request costs nothing and says nothing."""
    agency = Agency()
    agency.now = agency.request.complete_by - early
    await agency.agent.handle(agency.request)
    assert (agency.replies(), agency.remote.calls) == ([], [])


@pytest.mark.proves("AGT-6")
async def test_a_refusal_is_answered_at_once_with_the_reason():
    """An unrecoverable fault is not retried: the reply says why."""
    agency = Agency(RejectedError("card declined"))
    await agency.agent.handle(agency.request)
    ((_, reply),) = agency.replies()
    assert (reply.outcome, reply.reason, len(agency.remote.calls)) == ("failed", "card declined", 1)


@pytest.mark.proves("UND-2")
@pytest.mark.parametrize(
    ("answers", "outcome", "in_doubt"),
    [
        ([RejectedError("no")], "failed", False),
        ([TransientError("timed out"), RejectedError("no")], "failed", True),
        ([RejectedError("too long", in_doubt=True)], "failed", True),
        ([NotTriedError("busy", seconds(1))], "notTried", False),
        ([TransientError("timed out"), NotTriedError("busy", seconds(1))], "notTried", True),
    ],
    ids=["refused", "refused after no answer", "answered beyond measure", "not tried", "not tried after no answer"],
)
async def test_a_call_without_an_answer_leaves_the_step_in_doubt(answers, outcome, in_doubt):
    """Its effect may have happened, whatever is said to the call after it: so the step will be undone."""
    agency = Agency(*answers)
    await agency.agent.handle(agency.request)
    ((_, reply),) = agency.replies()
    assert (reply.outcome, reply.in_doubt) == (outcome, in_doubt)


def with_open_circuit():
    """An agent whose service has failed for one order after another just now; the circuit reads the real time."""
    agency = Agency(begins=datetime.now(UTC))
    for number in range(CIRCUIT_ORDERS):
        with suppress(TransientError), agency.circuit.guard(f"order-{number}"):
            raise TransientError("503")
    return agency


@pytest.mark.proves("AGT-8")
async def test_a_request_that_meets_an_open_circuit_goes_back_untried():
    """The service is not called; the reply says that the circuit is open, and when to come again."""
    agency = with_open_circuit()
    await agency.agent.handle(agency.request)
    assert agency.remote.calls == []
    ((_, reply),) = agency.replies()
    assert (reply.outcome, reply.circuit_open) == ("notTried", True)
    assert 0 < reply.retry_after <= OPEN_FOR.total_seconds() + 1


@pytest.mark.proves("AGT-8")
async def test_an_open_circuit_is_published_before_the_request_goes_back():
    """Else the scheduler that gets it back, or any other, would send it straight here again."""
    agency = with_open_circuit()
    published, send = [], agency.parts.bus.send

    async def sends(messages):
        published.extend(await agency.agent_health())
        await send(messages)

    agency.parts.bus.send = sends
    await agency.agent.handle(agency.request)
    assert [health.open_until for health in published] == [agency.circuit.open_until]
    assert agency.circuit.open_until is not None


@pytest.mark.proves("AGT-10")
async def test_how_long_a_request_waited_shows_nothing_of_its_tries():
    """Schedulers would take a service that fails for an agent that has too much to do."""
    agency = Agency(*[TransientError("503")] * 5)
    await agency.agent.handle(agency.request)
    assert sum(agency.pauses) > 1
    assert [health.waited for health in await agency.agent_health()] == [0.0]


@pytest.mark.proves("AGT-10")
async def test_an_agent_says_which_share_of_its_time_a_request_waited():
    """From when it was issued until the agent begins."""
    agency = Agency()
    agency.now += TIMEOUT / 2
    await agency.agent.handle(agency.request)
    assert [health.waited for health in await agency.agent_health()] == [0.5]


@pytest.mark.proves("AGT-4")
async def test_of_a_fault_that_says_too_much_the_beginning_is_told():
    """A reply that is too long to be read would say nothing at all."""
    agency = Agency(*[TransientError("x" * 5000)] * 1000)
    await agency.agent.handle(agency.request)
    ((_, reply),) = agency.replies()
    assert (reply.outcome, reply.reason) == ("unfinished", "x" * 1000)


@pytest.mark.proves("AGT-4")
def test_what_is_told_meanwhile_and_the_answer_are_two_messages():
    """A queue that drops what came before would drop the answer."""
    ids = {answer(outcome=outcome).to_bus("payment", NOW).message_id for outcome in ("unfinished", "completed")}
    assert len(ids) == 2
