"""Messages that only a newer version of the app understands are left to newer hosts for a while."""

import json
from datetime import timedelta

import azure.functions as func
import pytest
from azure.functions.servicebus import ServiceBusMessage

import agents.triggers
from engine.domain.errors import InvalidError, OtherVersionError, UnknownNameError
from engine.domain.messages import (
    AgentRequest,
    FailedReply,
    OrderReady,
    ReplyMessage,
    Submission,
    decode,
    schedule_redelivery,
)
from engine.domain.statuses import ProcessState
from engine.storage.poison import Arrival
from engine.words.causes import words_of
from scheduler.service import WAKE_UP_TIME
from submission.rules import LONGEST_PAUSE, SHORTEST_PAUSE
from submission.service import QUEUE
from tests.support.agency import Agency
from tests.support.builders import LONGEST_UPGRADE, NOW, ORDER_ID, TIMEOUT, answer, seconds
from tests.support.kept import kept
from tests.support.memory_world import MESSAGE, UNKNOWN_NAME_MAX_DELIVERIES, World
from tests.support.outbox import pending_events

REPLY = answer(result={"reference": "r"})
REQUEST = Agency().request
SUBMISSION = json.loads(MESSAGE % "")


def with_(message, **fields):
    """The message with these fields instead of its own, as it goes over the wire."""
    own = message if isinstance(message, dict) else json.loads(message.to_json())
    return json.dumps({**own, **fields}).encode()


NEWER = {
    "a submission's version": (Submission, with_(SUBMISSION, schemaVersion=2)),
    "a version, and all else is different": (Submission, b'{"schemaVersion":3,"order":{}}'),
    "a priority": (Submission, with_(SUBMISSION, priority="urgent")),
    "an outcome": (ReplyMessage, with_(REPLY, outcome="partly")),
    "a reply's version": (ReplyMessage, with_(REPLY, schemaVersion=3, attempt="first")),
    "a reply's version of before": (ReplyMessage, with_(REPLY, schemaVersion=1)),
    "an action": (AgentRequest, with_(REQUEST, action="verify")),
    "a wake-up's version": (OrderReady, with_({"orderId": ORDER_ID}, schemaVersion=2)),
}
INVALID = {
    **{
        f"version {json.dumps(version)}": (ReplyMessage, with_(REPLY, schemaVersion=version))
        for version in (0, -1, "2", "two", 1.5, None, [2])
    },
    "a priority that is none": (Submission, with_(SUBMISSION, priority=7)),
    "an outcome of several words": (ReplyMessage, with_(REPLY, outcome="all is well")),
    "an origin of several words": (
        FailedReply,
        with_(REPLY, outcome="failed", origin="the bank"),
    ),
    "an outcome, and another fault": (ReplyMessage, with_(REPLY, outcome="partly", attempt=0)),
    "no JSON": (ReplyMessage, b"partly"),
}


@pytest.mark.proves("FLT-12")
@pytest.mark.parametrize("label", NEWER)
def test_a_message_of_a_newer_version_differs_from_a_wrong_one(label):
    """Its greater schema version tells, or a value when nothing else is wrong."""
    with pytest.raises(OtherVersionError):
        decode(*NEWER[label])


@pytest.mark.proves("SUB-4", "FLT-6")
@pytest.mark.parametrize("label", INVALID)
def test_what_is_wrong_is_not_held_to_be_newer(label):
    """No version says so."""
    with pytest.raises(InvalidError) as caught:
        decode(*INVALID[label])
    assert not isinstance(caught.value, UnknownNameError)


@pytest.fixture
def world():
    return World()


OF_A_NEWER_VERSION = [
    with_(SUBMISSION, schemaVersion=2, tenant="acme"),
    with_(SUBMISSION, priority="urgent"),
]


@pytest.mark.proves("FLT-12", "SUB-4")
@pytest.mark.parametrize("body", OF_A_NEWER_VERSION, ids=["version", "value"])
async def test_a_submission_of_a_newer_version_comes_again_for_a_day(world, body):
    """It comes again ever more seldom, as it was sent; if no host takes it, it is refused."""
    queue, deliveries = world.parts.queue(QUEUE), 0
    while not queue.texts or queue.texts.pop():
        deliveries += 1
        try:
            await world.submission.record(
                body, Arrival(at=world.now)
            )  # put anew, it has arrived just now
        except UnknownNameError:
            break
        assert queue.texts == [body.decode()]
        world.now += queue.pauses[-1]
    assert LONGEST_UPGRADE <= world.now - NOW < LONGEST_UPGRADE + LONGEST_PAUSE
    assert queue.pauses == sorted(queue.pauses)
    assert (queue.pauses[0], queue.pauses[-1]) == (SHORTEST_PAUSE, LONGEST_PAUSE)
    assert deliveries < 300
    assert await kept(world.poison_store) == []
    assert await pending_events(world.store, *world.store.buckets) == []
    await world.submission.record(body, Arrival(at=world.now), delivery=UNKNOWN_NAME_MAX_DELIVERIES)
    (message,) = await kept(world.poison_store)
    assert message.body == body
    assert "schemaVersion" in words_of(message.reason) or "priority" in words_of(message.reason)
    assert len(await pending_events(world.store, *world.store.buckets)) == 1


@pytest.mark.proves("FLT-12", "SUB-4")
@pytest.mark.parametrize(
    "placed", ["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", "long ago", None]
)
async def test_a_submission_whose_age_nobody_can_tell_is_handed_back_like_an_unknown_name(
    world, placed
):
    """It may have waited for days, and never circles for ever."""
    body = with_(SUBMISSION, schemaVersion=2, placedAt=placed)
    with pytest.raises(OtherVersionError):
        await world.submission.record(body, Arrival(at=NOW), delivery=1)
    await world.submission.record(body, Arrival(at=NOW), delivery=UNKNOWN_NAME_MAX_DELIVERIES)
    assert world.parts.queue(QUEUE).texts == []
    assert len(await kept(world.poison_store)) == 1


async def received(world, body, correlation_id=REPLY.request_id):
    """The payment agent's reply is delivered; what is in the queue of replies, and what is kept."""
    await world.app.engine.inbox.receive(
        "f", "payment", body, correlation_id, Arrival(at=world.now)
    )
    again = [message for message in world.parts.bus.sent if message.queue == "payment-responses"]
    return again, await kept(world.poison_store)


@pytest.mark.proves("FLT-12", "SCH-6")
@pytest.mark.parametrize("correlation_id", [REPLY.request_id, None], ids=["with id", "without"])
@pytest.mark.parametrize(
    "fields",
    [
        {"schemaVersion": 3},
        {"schemaVersion": 1},
        {"outcome": "partly"},
        {"origin": "gateway", "outcome": "failed"},
        {"reason": "paused", "outcome": "notAttempted"},
        {"reason": "paused", "outcome": "deferred"},
    ],
    ids=["version", "former version", "outcome", "origin", "reason", "reason of a deferral"],
)
async def test_a_reply_of_a_newer_version_comes_again_while_it_counts(
    world, fields, correlation_id
):
    """It comes as it was sent, a little later each time; in the end it is kept with its reason."""
    body = with_(REPLY, **fields)
    while not (found := await received(world, body, correlation_id))[1]:
        world.now = found[0][-1].not_before
    again, (message,) = found
    assert len(again) > 2
    assert {(reply.body.encode(), reply.correlation_id) for reply in again} == {
        (body, REPLY.request_id)
    }
    assert len({reply.message_id for reply in again}) == len(again)
    assert {reply.not_before + reply.time_to_live for reply in again} == {REPLY.complete_by}
    assert (message.source, message.body) == ("payment-responses", body)
    assert next(iter(fields)) in words_of(message.reason)


@pytest.mark.proves("FLT-6")
@pytest.mark.parametrize("until", [None, "soon", "2030-01-01T00:00:00Z"])
async def test_a_reply_that_would_come_again_for_ever_is_kept(world, until):
    """If it does not say until when it counts, or that is further off than any upgrade takes."""
    again, (message,) = await received(world, with_(REPLY, schemaVersion=3, completeBy=until))
    assert (again, message.source) == ([], "payment-responses")


@pytest.mark.proves("FLT-12", "SCH-1")
async def test_a_wake_up_of_a_newer_version_is_left_to_the_poll(world):
    """Which finds its order; nobody need look at the message."""
    await world.submitted()
    body = with_(OrderReady(order_id=ORDER_ID), schemaVersion=2)
    await world.app.engine.inbox.on_order_ready("f", body, ORDER_ID, Arrival(at=NOW))
    assert await kept(world.poison_store) == []
    world.now += WAKE_UP_TIME
    await world.scheduler.poll()
    assert (await world.order()).process_state is ProcessState.PROCESSING


@pytest.mark.proves("FLT-12", "AGT-5")
async def test_a_request_of_a_newer_version_comes_again_while_its_time_lasts():
    """It comes on the agent's own queue; no call is made, and in the end it is kept."""
    agency = Agency()
    app = func.FunctionApp()
    app.register_functions(agents.triggers.agent_functions(agency.agent, agency.app.engine.unread))
    (function,) = app.get_functions()
    body = with_(agency.request, action="verify")
    delivered = ServiceBusMessage(
        body=body,
        message_id="m",
        correlation_id=ORDER_ID,
        application_properties={},
        user_properties={},
    )
    await function.get_user_function()(delivered)
    (again,) = agency.parts.bus.sent
    assert (again.queue, again.reply_to) == ("payment-requests", "payment-responses")
    assert (again.body.encode(), again.correlation_id) == (body, ORDER_ID)
    assert again.not_before + again.time_to_live == agency.request.complete_by
    agency.now += TIMEOUT
    await function.get_user_function()(delivered)
    (message,) = await kept(agency.app.engine.poison_store)
    assert (message.body, "action" in words_of(message.reason)) == (body, True)
    assert (len(agency.parts.bus.sent), agency.remote.calls) == (1, [])


@pytest.mark.proves("SCH-6")
@pytest.mark.parametrize(("left", "pause"), [(2, 1), (100, 10), (3600, 30)])
def test_what_comes_again_comes_under_an_id_of_its_own(left, pause):
    """Duplicate detection drops a known id; and no id is too long for a queue."""
    step = "s" * 41
    first = answer(step, "notAttempted", attempt=10**9 - 1, action="undo").to_bus("payment", NOW)
    again = schedule_redelivery(first, NOW, NOW + seconds(left))
    later = schedule_redelivery(first, NOW + timedelta(milliseconds=1), NOW + seconds(left))
    assert len({first.message_id, again.message_id, later.message_id}) == 3
    assert max(len(again.message_id), len(later.message_id)) <= 128
    assert (again.not_before, again.time_to_live) == (NOW + seconds(pause), seconds(left - pause))
    assert schedule_redelivery(first, NOW, NOW + seconds(1)) is None
