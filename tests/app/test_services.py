"""The services on parts in memory: what they load, decide, commit and send."""

import json
from unittest.mock import patch

import azure.functions as func
import pytest
from azure.functions.queue import QueueMessage

import submission.triggers
from engine.decisions.operator_actions import BY_NAME
from engine.domain.errors import ConflictError, InvalidError, UnavailableError, UnknownNameError
from engine.domain.events import Submitted
from engine.domain.keys import buckets
from engine.domain.messages import OrderReady
from engine.domain.statuses import ProcessState
from engine.storage.agent_health import AgentHealth
from engine.storage.bucket_reader import PAGE
from engine.storage.poison import Arrival
from engine.words.causes import words_of
from engine.words.history import in_words
from operations.api.requests import OperatorRequest
from scheduler.service import WAKE_UP_TIME
from submission.rules import read
from tests.support.away import away
from tests.support.builders import NOW, ORDER_ID, answer, seconds
from tests.support.kept import kept
from tests.support.memory_world import MESSAGE, UNKNOWN_NAME_MAX_DELIVERIES, World
from tests.support.outbox import pending_events


@pytest.fixture
def world():
    return World()


@pytest.mark.proves("SUB-3")
async def test_the_same_message_again_changes_nothing(world):
    """A repeated submission neither changes the order nor is it called a fault."""
    first = await world.submitted()
    assert await world.submitted() == first
    assert await kept(world.poison_store) == []


@pytest.mark.proves("SUB-3", "OPR-8")
async def test_the_same_message_again_changes_nothing_whatever_operators_did(world):
    """The order was put before others, then erased; the row keeps what was submitted (engine 30)."""
    await world.submitted()
    request = OperatorRequest(operator="grace", note="soon")
    await world.app.operations.services.orders.act(BY_NAME["expedite"], ORDER_ID, request)
    await world.app.operations.services.retention.erase(ORDER_ID, request)
    before = await world.order()
    assert await world.submitted() == before
    assert await kept(world.poison_store) == []
    assert [entry.event for entry in await world.store.history(ORDER_ID)][1:] == [
        "expedited",
        "erased",
    ]


@pytest.mark.proves("SUB-4")
async def test_every_fault_of_a_message_is_named(world):
    """All faults are named together, stage by stage."""
    with pytest.raises(InvalidError) as caught:
        read(
            b'{"schemaVersion":2,"orderId":"x","items":[{"sku":"A","quantity":0.5}],"extra":1}',
            world.terms,
        )
    text = str(caught.value)
    for place in ("schemaVersion", "orderId", "placedAt", "customer", "items.0.quantity", "extra"):
        assert place in text
    other_bucket = (MESSAGE % "").replace("b03-", "b77-").replace("TEA-SENCHA", "TEA-NONE")
    with pytest.raises(
        InvalidError,
        match=r"orderId: unknown-bucket.*; items\.0\.sku: there is no product TEA-NONE",
    ):
        read(other_bucket.encode(), world.terms)


@pytest.mark.proves("FLT-12", "SUB-4")
def test_a_fault_of_the_payload_outweighs_an_unknown_name(world):
    """A newer version may know the bucket, and none such a quantity; both are named."""
    body = (MESSAGE % "").replace("b03-", "b77-").replace('"quantity":2', '"quantity":0')
    with pytest.raises(
        InvalidError, match=r"orderId: unknown-bucket.*; items\.0\.quantity: "
    ) as caught:
        read(body.encode(), world.terms)
    assert not isinstance(caught.value, UnknownNameError)


def test_a_message_full_of_faults_is_answered_in_moderation(world):
    """The first of them by name, and how many more there are."""
    nonsense = json.dumps({f"{number}{'x' * 1000}": 1 for number in range(500)})
    with pytest.raises(InvalidError) as caught:
        read(nonsense.encode(), world.terms)
    assert len(str(caught.value)) < 10_000
    assert caught.value.faults[-1].code == "more-faults"


@pytest.mark.proves("SUB-3", "SUB-4", "FLT-7")
@pytest.mark.parametrize(
    "other", ["no submission", MESSAGE % ',"priority":"high"'], ids=["invalid", "other content"]
)
async def test_a_message_that_is_refused_again_and_again_raises_one_alert(world, other):
    """While the table is away it is delivered again, and the order may go on meanwhile."""
    await world.submitted()
    record = queue_function(submission.triggers.submission_functions(world.submission))
    for _ in range(2):
        with patch.object(world.poison_store, "put", away), pytest.raises(UnavailableError):
            await world.submission.record(other.encode(), Arrival(at=NOW))
        world.now += seconds(3)
    await world.scheduler.on_order_ready(OrderReady(order_id=ORDER_ID))
    await record(QueueMessage(body=other.encode(), insertion_time=NOW))
    events = await pending_events(world.store, *buckets(8))
    assert [event.at for event in events] == [NOW]
    assert len(await kept(world.poison_store)) == 1


@pytest.mark.proves("SUB-3", "SUB-4", "ALR-1")
@pytest.mark.parametrize(
    "other", ["no submission", MESSAGE % ',"priority":"high"'], ids=["invalid", "other content"]
)
async def test_a_message_is_kept_only_once_the_operators_are_sure_to_get_an_alert(world, other):
    """After a crash in between both are done again, and neither is lost."""
    await world.submitted()
    with patch.multiple(world.store, announce=away, note=away), pytest.raises(UnavailableError):
        await world.submission.record(other.encode(), Arrival(at=NOW))
    assert await kept(world.poison_store) == []


@pytest.mark.proves("SUB-4", "FLT-7")
async def test_a_submission_is_handed_back_if_it_is_refused_and_no_order_is_there(world):
    """A conflict says that there is an order; if there is none, the message is not done."""
    commit, world.store.commit = world.store.commit, conflicts
    with pytest.raises(UnavailableError):
        await world.submitted()
    world.store.commit = commit
    assert await world.submitted()


async def conflicts(*_):
    raise ConflictError


OF_A_NEWER_VERSION = {
    "product": ("TEA-SENCHA", "TEA-NEW", "there is no product TEA-NEW"),
    "workflow": ("payment-only", "new-workflow", "there is no workflow new-workflow"),
    "bucket": (ORDER_ID, ORDER_ID.replace("b03", "b12"), "orderId: unknown bucket"),
}


@pytest.mark.proves("FLT-12", "SUB-4")
@pytest.mark.parametrize("what", OF_A_NEWER_VERSION)
async def test_what_a_newer_host_may_know_is_handed_back_for_a_while(world, what):
    """A newer host may take it; if none does, it is refused with its reason after all."""
    known, unknown, reason = OF_A_NEWER_VERSION[what]
    body = (MESSAGE % "").replace(known, unknown).encode()
    record = queue_function(submission.triggers.submission_functions(world.submission))
    for delivery in range(1, UNKNOWN_NAME_MAX_DELIVERIES):
        with pytest.raises(UnknownNameError):
            await record(QueueMessage(body=body, insertion_time=NOW, dequeue_count=delivery))
    assert await kept(world.poison_store) == []
    assert await pending_events(world.store, *world.store.buckets) == []
    await record(
        QueueMessage(body=body, insertion_time=NOW, dequeue_count=UNKNOWN_NAME_MAX_DELIVERIES)
    )
    (message,) = await kept(world.poison_store)
    assert message.body == body
    assert reason in words_of(message.reason)
    assert len(await pending_events(world.store, *world.store.buckets)) == 1


@pytest.mark.proves("SUB-4")
async def test_what_no_version_can_know_is_refused_at_once(world):
    """A message with another fault besides, or without any sense, is not handed back."""
    for body in (MESSAGE % ',"replyTo":"scheduler-requests"', "no submission"):
        await world.submission.record(
            body.replace("TEA-SENCHA", "TEA-NEW").encode(), Arrival(at=NOW)
        )
    assert len(await kept(world.poison_store)) == 2


def queue_function(blueprint):
    """The only function of the blueprint."""
    app = func.FunctionApp()
    app.register_functions(blueprint)
    (function,) = app.get_functions()
    return function.get_user_function()


@pytest.mark.proves("SUB-4")
async def test_a_bad_message_that_is_put_back_raises_another_alert(world):
    """It arrived anew: somebody believed that it was mended."""
    for time in (NOW, NOW + seconds(60)):
        await world.submission.record(b"no submission", Arrival(at=time))
    events = await pending_events(world.store, *world.store.buckets)
    assert len({event.event_id for event in events}) == 2


@pytest.mark.proves("WRK-3", "SUB-3")
async def test_rejections_are_announced_in_all_buckets(world):
    """A mad sender slows no bucket more than others; a repeated message is told of once."""
    for _ in range(2):
        for number in range(80):
            await world.submission.record(f"no submission {number}".encode(), Arrival(at=NOW))
    counts = [len(await pending_events(world.store, bucket)) for bucket in world.store.buckets]
    assert sum(counts) == 80
    assert all(4 <= wait <= 20 for wait in counts)


@pytest.mark.proves("SUB-6", "SCH-1")
async def test_polling_finds_an_order_whose_wake_up_was_lost(world):
    """Submission wakes the scheduler; if that message is lost, the poll claims the order."""
    order = await world.submitted()
    (order_ready,) = world.parts.bus.sent
    assert order_ready.queue == "scheduler-requests"
    assert (order.derived.ready_since, order.derived.not_before) == (NOW, None)
    await world.scheduler.poll()
    assert await world.order() == order  # the wake-up may still be on its way
    world.now += WAKE_UP_TIME
    await world.scheduler.poll()
    order = await world.order()
    assert order.process_state is ProcessState.PROCESSING
    await world.scheduler.poll()
    assert await world.order() == order


@pytest.mark.proves("SCH-11")
async def test_a_poll_finds_the_first_of_every_lane_however_many_wait_in_another(world):
    """More urgent orders than fit a page hide none that waits behind them: it gets its turn."""
    message = MESSAGE % ',"priority":"high"'
    for number in range(PAGE + 5):
        await world.submission.record(message.replace(ORDER_ID, f"b03-{number:026d}").encode())
    await world.submitted()
    world.now += WAKE_UP_TIME
    report = AgentHealth(agent="payment", instance="1", at=world.now, rate=100.0)
    await world.app.engine.agent_health.publish(report)
    await world.scheduler.poll()
    assert (await world.order()).process_state is ProcessState.PROCESSING


@pytest.mark.proves("SCH-2", "FLT-6")
async def test_a_wake_up_that_comes_twice_claims_once(world):
    """The second wake-up finds the order claimed and passes on without an error or a request."""
    await world.submitted()
    await world.scheduler.on_order_ready(OrderReady(order_id=ORDER_ID))
    sent = len(world.parts.bus.sent)
    await world.scheduler.on_order_ready(OrderReady(order_id=ORDER_ID))
    assert len(world.parts.bus.sent) == sent


@pytest.mark.proves("FLT-7")
async def test_a_lost_answer_is_not_taken_for_a_lost_race(world):
    """The commit went through without an answer: the history shows it, and messages go out once."""
    await world.submitted()
    commit = world.store.commit

    async def commits_without_an_answer(change):
        await commit(change)
        raise UnavailableError("the answer was lost")

    world.store.commit = commits_without_an_answer
    await world.scheduler.on_order_ready(OrderReady(order_id=ORDER_ID))
    assert (await world.order()).step("payment").counts.attempts == 1
    assert [message.queue for message in world.parts.bus.sent] == [
        "scheduler-requests",
        "payment-requests",
    ]


async def test_the_log_tells_how_long_every_step_took(world, caplog):
    """It stands in the line of the change that records its answer, and in no other."""
    caplog.set_level("INFO", "engine.storage.unit_of_work")
    await world.submitted()
    await world.scheduler.on_order_ready(OrderReady(order_id=ORDER_ID))
    world.now += seconds(1.5)
    await world.scheduler.receive(answer(), "payment")
    lines = [line for line in caplog.records if line.message == "order.changed"]
    assert [line.seconds for line in lines] == [{}, {}, {"payment": 1.5}]
    steps = ["NotStarted", "Running", "Completed"]
    assert [line.steps for line in lines] == [{"payment": state} for state in steps]
    first = (await world.store.history(ORDER_ID))[0]
    assert first.events == (Submitted(workflow="payment-only"),)


async def test_the_log_says_nothing_that_a_service_or_a_person_wrote(world, caplog):
    """Not even the part that is left when personal values are removed. The history has it."""
    caplog.set_level("DEBUG")
    await world.submitted()
    await world.scheduler.on_order_ready(OrderReady(order_id=ORDER_ID))
    await world.scheduler.receive(answer(outcome="failed", detail="declined for Ada"), "payment")
    assert "declined for erased" in in_words((await world.store.history(ORDER_ID))[-1].events)
    assert [line for line in caplog.records if "declined" in str(vars(line))] == []
