"""What an agent does with a request: calls, pauses, replies, silence, and news of itself."""

import itertools
from contextlib import suppress
from datetime import UTC, datetime

import azure.functions as func
import pytest
from azure.functions.servicebus import ServiceBusMessage

from agents.triggers import agent_functions
from engine.domain.attempts import FailureOrigin, NotAttemptedReason
from engine.domain.errors import (
    AnswersLaterError,
    CallTimeoutError,
    InvalidRequestError,
    InvalidResultError,
    NotAttemptedError,
    RejectedError,
    ThrottledError,
    TransientError,
)
from tests.support.agency import CIRCUIT_ORDERS, MARGIN, OPEN_FOR, Agency
from tests.support.builders import ORDER_ID, seconds

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
    for earlier, later in itertools.pairwise(
        growing[2:]
    ):  # the first ones are jitter for the most part
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


@pytest.mark.proves("AGT-4")
@pytest.mark.parametrize(
    ("early", "replies"), [(seconds(0.001), 1), (seconds(0), 0), (-MARGIN, 0)], ids=str
)
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
@pytest.mark.parametrize(
    ("kind", "origin"),
    [
        (RejectedError, FailureOrigin.SERVICE),
        (InvalidRequestError, FailureOrigin.REQUEST),
        (InvalidResultError, FailureOrigin.RESULT),
    ],
)
async def test_a_failure_is_answered_at_once_with_its_origin(kind, origin):
    """It is not retried."""
    agency = Agency(kind("card declined"))
    await agency.agent.handle(agency.request)
    ((_, reply),) = agency.replies()
    assert (reply.outcome, reply.detail) == ("failed", "card declined")
    assert (reply.origin, len(agency.remote.calls)) == (origin, 1)


@pytest.mark.parametrize(
    "identifiers", [{}, {"code": "expired_card"}, {"type": "x" * 90, "code": "y" * 90}]
)
async def test_a_refusal_is_answered_with_the_type_and_the_code_that_its_service_gave(identifiers):
    """Without those that it did not give."""
    agency = Agency(RejectedError("no", identifiers=identifiers))
    await agency.agent.handle(agency.request)
    ((_, reply),) = agency.replies()
    assert reply.identifiers == identifiers


@pytest.mark.proves("ANS-8")
async def test_a_service_that_answers_over_its_link_is_called_once_and_gets_no_reply():
    """The attempt has begun and has a fault, so its end without an answer counts; no call failed."""
    agency = Agency(*[AnswersLaterError("202")] * 3)
    await agency.agent.handle(agency.request)
    assert (len(agency.remote.calls), agency.replies(), agency.pauses) == (1, [], [])
    (row,) = await agency.agent_health()
    assert row.begun == (agency.request.request_id,)
    assert [fault.requests for fault in row.faults] == [row.begun]
    assert row.open_until is None


@pytest.mark.proves("ANS-8", "AGT-10")
async def test_every_call_that_is_answered_over_a_link_is_reported_as_begun():
    """Also the second in the same second, though the agent has nothing to do from then on."""
    agency = Agency(*[AnswersLaterError("202")] * 2)
    another = agency.request.model_copy(update={"order_id": "b01-another"})
    for request in (agency.request, another):
        await agency.agent.handle(request)
    (row,) = await agency.agent_health()
    assert row.begun == (agency.request.request_id, another.request_id)


@pytest.mark.proves("ANS-8", "AGT-8")
async def test_a_call_that_is_accepted_closes_the_circuit():
    """To accept is a sign of life."""
    agency = Agency(*[TransientError("503")] * CIRCUIT_ORDERS)
    for number in range(CIRCUIT_ORDERS):
        with suppress(TransientError), agency.circuit.guard(f"b00-{number}"):
            raise TransientError
    assert agency.circuit.open_until is not None
    agency.now = agency.circuit.open_until
    with suppress(AnswersLaterError), agency.circuit.guard("b00-1"):
        raise AnswersLaterError
    assert agency.circuit.open_until is None


@pytest.mark.proves("AGT-10")
@pytest.mark.parametrize(
    "failures",
    [[], [RejectedError("no")], [NotAttemptedError(NotAttemptedReason.BUSY, "busy", seconds(1))]],
    ids=str,
)
async def test_a_reply_says_which_instance_says_it(failures):
    """So that the word of one instance may be taken for that instance's alone."""
    agency = Agency(*failures)
    await agency.agent.handle(agency.request)
    ((_, reply),) = agency.replies()
    (row,) = await agency.agent_health()
    assert reply.instance == row.instance == "a1"


@pytest.mark.proves("UND-2")
@pytest.mark.parametrize(
    ("answers", "outcome", "in_doubt"),
    [
        ([RejectedError("no")], "failed", False),
        ([TransientError("timed out"), RejectedError("no")], "failed", True),
        ([InvalidResultError("too long")], "failed", True),
        ([NotAttemptedError(NotAttemptedReason.BUSY, "busy", seconds(1))], "notAttempted", False),
        (
            [
                TransientError("timed out"),
                NotAttemptedError(NotAttemptedReason.BUSY, "busy", seconds(1)),
            ],
            "notAttempted",
            True,
        ),
        ([ThrottledError("503", seconds(1))], "notAttempted", True),
    ],
    ids=[
        "refused",
        "refused after no answer",
        "answered beyond measure",
        "not tried",
        "not tried after no answer",
        "asked to wait",
    ],
)
async def test_a_call_without_an_answer_leaves_the_step_in_doubt(answers, outcome, in_doubt):
    """Its effect may have happened, whatever a later call is told: so the step will be undone."""
    agency = Agency(*answers)
    await agency.agent.handle(agency.request)
    ((_, reply),) = agency.replies()
    assert (reply.outcome, reply.in_doubt) == (outcome, in_doubt)


@pytest.mark.proves("AGT-6", "UND-2", "FLT-4")
@pytest.mark.parametrize("again", [False, True])
async def test_a_request_that_is_delivered_again_is_not_called_untried(again):
    """A process that ended may have called for it: it is too late to call, so it is in doubt."""
    agency = Agency(NotAttemptedError(NotAttemptedReason.BUSY, "busy", seconds(1)))
    await agency.agent.handle(agency.request, again=again)
    agency.now = agency.request.complete_by - MARGIN - seconds(0.001)
    await agency.agent.handle(agency.request, again=again)
    replies = [reply for _, reply in agency.replies()]
    assert [(reply.outcome, reply.in_doubt) for reply in replies] == [("notAttempted", again)] * 2
    assert (replies[0].reason, replies[0].detail) == (NotAttemptedReason.BUSY, "busy")


@pytest.mark.parametrize(
    ("tries", "pauses"), [(None, []), (1, []), (2, [0.02]), (20, [0.2]), (500, [5]), (2000, [5])]
)
async def test_what_comes_again_and_again_waits_a_little_longer_every_time(tries, pauses):
    """The bus delivers at once again what failed: a service would be called many times a second."""
    agency = Agency(timeout=LONG)
    app = func.FunctionApp()
    app.register_functions(agent_functions(agency.agent, agency.app.engine.unread))
    (function,) = app.get_functions()
    message = ServiceBusMessage(
        body=agency.request.to_json().encode(),
        message_id="m",
        delivery_count=tries,
        application_properties={},
        user_properties={},
    )
    await function.get_user_function()(message)
    assert (agency.pauses, len(agency.remote.calls)) == (pauses, 1)


def with_open_circuit():
    """An agent whose service just failed for many orders; the circuit reads the real time."""
    agency = Agency(begins=datetime.now(UTC))
    for number in range(CIRCUIT_ORDERS):
        with suppress(TransientError), agency.circuit.guard(f"order-{number}"):
            raise TransientError("503")
    return agency


@pytest.mark.proves("AGT-8")
async def test_a_request_that_meets_an_open_circuit_goes_back_untried():
    """No call is made; the reply says that the circuit is open, and when to come again."""
    agency = with_open_circuit()
    await agency.agent.handle(agency.request)
    assert agency.remote.calls == []
    ((_, reply),) = agency.replies()
    assert (reply.outcome, reply.reason) == ("notAttempted", "circuit-open")
    assert 0 < reply.retry_after <= OPEN_FOR.total_seconds() + 1


@pytest.mark.proves("AGT-8", "SUP-3")
@pytest.mark.parametrize("fault", [CallTimeoutError, TransientError])
async def test_a_probe_that_times_out_has_no_reply(fault):
    """Its order ends as its other time-outs do; after any other fault the request meets the open circuit."""
    agency = Agency(*[fault("late")] * 5)
    for number in range(CIRCUIT_ORDERS):
        with suppress(TransientError), agency.circuit.guard(f"order-{number}"):
            raise TransientError("503")
    agency.now = agency.circuit.open_until
    times = {"issued_at": agency.now, "complete_by": agency.now + LONG}
    request = agency.request.model_copy(update=times)
    await agency.agent.handle(request)
    assert len(agency.remote.calls) == 1
    (row,) = await agency.agent_health()
    if fault is CallTimeoutError:
        assert agency.replies() == []
        assert [reported.requests for reported in row.faults] == [(request.request_id,)]
        assert row.faults[0].timed_out_at == (agency.now.replace(microsecond=0),)
    else:
        ((_, reply),) = agency.replies()
        assert (reply.outcome, reply.in_doubt) == ("notAttempted", True)
        assert row.faults == ()


TIMEOUTS = [CallTimeoutError("late"), TransientError("503")]


@pytest.mark.proves("AGT-8", "SUP-3")
@pytest.mark.parametrize("last", TIMEOUTS, ids=["timed out", "503"])
async def test_the_agent_says_whether_the_last_call_timed_out(last):
    """The calls before it decide nothing."""
    agency = Agency(*TIMEOUTS, *[last] * 1000)
    await agency.agent.handle(agency.request)
    (row,) = await agency.agent_health()
    assert [fault.timed_out_at is not None for fault in row.faults] == [last is TIMEOUTS[0]]


@pytest.mark.proves("AGT-10", "AGT-8")
@pytest.mark.parametrize(
    ("failures", "is_answered"),
    [
        ([], True),
        ([RejectedError("no")], True),
        ([AnswersLaterError()], True),
        ([NotAttemptedError(NotAttemptedReason.BUSY, "busy", seconds(1))], False),
        ([ThrottledError("429", seconds(1))], False),
        ([CallTimeoutError("late")] * 100, False),
    ],
    ids=["done", "refused", "answered over its link", "not tried", "throttled", "timed out"],
)
async def test_the_rate_counts_requests_that_were_answered(failures, is_answered):
    """So admission sends fewer when calls time out."""
    agency = Agency(*failures)
    await agency.agent.handle(agency.request)
    agency.now += seconds(30)
    assert (agency.agent.health_reporter._now().rate > 0) is is_answered


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
async def test_a_request_begins_once_however_often_it_is_tried():
    """Else schedulers would take a service that fails for an agent that does much."""
    agency, rows = Agency(*[TransientError("503")] * 5), []
    publish = agency.app.engine.agent_health.publish

    async def recorded(*args):
        rows.append(args)
        await publish(*args)

    agency.app.engine.agent_health.publish = recorded
    await agency.agent.handle(agency.request)
    assert sum(agency.pauses) > 1
    assert len(rows) == 1
