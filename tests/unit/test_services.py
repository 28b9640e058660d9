"""The services on parts in memory: what they load, decide, commit and send."""

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import azure.functions as func
import pytest
from azure.functions.queue import QueueMessage
from builders import (
    ALLOWANCE,
    NOW,
    ORDER_ID,
    REST,
    THRESHOLD,
    TOLERANCE,
    claimed,
    new_order,
    scheduler,
    seconds,
    supervisor,
)

import submission.triggers
import workflows
from adapters.memory import MemoryLeadership, MemoryLease, MemoryRemoteService, in_memory
from agents.circuit import Circuit
from agents.gauge import Gauge
from agents.limits import CallLimits
from agents.service import AgentService
from core.errors import InvalidError, RejectedError, TransientError, UnavailableError
from core.keys import buckets
from core.lanes import PAGE
from core.messages import AgentReply, AgentRequest, Correlation, WakeUp
from core.orders import ProcessState
from core.transitions import Transitions
from scheduler.places import Places
from scheduler.service import WAKE_UP_TIME, SchedulerService
from submission.rules import Terms, read
from submission.service import SubmissionService
from supervisor.service import SupervisorService
from workflows.catalogue import BY_SKU

MESSAGE = (
    f'{{"schemaVersion":1,"orderId":"{ORDER_ID}","placedAt":"2026-01-31T08:15:00Z",'
    '"customer":{"name":"Ada","email":"ada@example.com"},'
    '"items":[{"sku":"TEA-SENCHA","quantity":2,"unitPrice":"14.00"}],"workflow":"payment-only"%s}'
)
ANSWER = Correlation(order_id=ORDER_ID, step="payment", attempt=1, action="do")


class World:
    """All roles on parts in memory, with a clock that stands still unless moved."""

    def __init__(self):
        self.now = NOW
        self.ids = iter(range(10**6))
        self.parts = in_memory(clock=lambda: self.now, new_id=lambda: f"c{next(self.ids)}")
        self.transitions = Transitions(self.parts.store, self.parts.bus, self.parts.clock, self.parts.new_id)
        self.terms = Terms(
            workflows=workflows.ALL,
            skus=frozenset(BY_SKU),
            reply_to_prefix="status-",
            buckets=frozenset({"b03"}),
            allowance=ALLOWANCE,
            threshold=THRESHOLD,
            rest=REST,
        )
        self.submission = SubmissionService(
            transitions=self.transitions,
            store=self.parts.store,
            poison=self.parts.poison,
            clock=self.parts.clock,
            terms=self.terms,
            instance="i1",
        )
        self.scheduler = SchedulerService(
            transitions=self.transitions,
            store=self.parts.store,
            clock=self.parts.clock,
            rules=scheduler,
            places=Places(offers={"payment": ("payment",)}, clock=self.parts.clock, most=100),
            measures=self.parts.measures,
            buckets=8,
        )
        self.supervisor = self.supervised_by("v1")

    def supervised_by(self, instance, lease=None):
        return SupervisorService(
            transitions=self.transitions,
            store=self.parts.store,
            leadership=MemoryLeadership(lease or MemoryLease(), instance, lambda: self.now),
            sweeps=self.parts.sweeps,
            clock=self.parts.clock,
            rules=supervisor,
            buckets=8,
        )

    async def order(self):
        return await self.parts.store.load(ORDER_ID)

    async def submitted(self, extra=""):
        await self.submission.record((MESSAGE % extra).encode())
        return await self.order()


@pytest.fixture
def world():
    return World()


@pytest.mark.proves("SUB-3")
async def test_the_same_message_again_changes_nothing(world):
    """A repeated submission neither changes the order nor is it called a fault."""
    first = await world.submitted()
    assert await world.submitted() == first
    assert world.parts.poison.kept == []


@pytest.mark.proves("SUB-5")
async def test_a_private_response_queue_is_stored_if_its_name_is_allowed(world):
    """`replyTo` stands in the state; a queue without the configured prefix is a fault."""
    order = await world.submitted(',"replyTo":"status-shop-7"')
    assert order.state.reply_to == "status-shop-7"
    with pytest.raises(InvalidError, match="replyTo: only queues whose names begin with status-"):
        read((MESSAGE % ',"replyTo":"scheduler-requests"').encode(), world.terms)


@pytest.mark.proves("SUB-4")
async def test_every_fault_of_a_message_is_named(world):
    """Unknown fields, unknown products, foreign buckets and bad numbers are named together, or by stage."""
    with pytest.raises(InvalidError) as caught:
        read(b'{"schemaVersion":2,"orderId":"x","items":[{"sku":"A","quantity":0.5}],"extra":1}', world.terms)
    text = str(caught.value)
    for place in ("schemaVersion", "orderId", "placedAt", "customer", "items.0.quantity", "extra"):
        assert place in text
    other_bucket = (MESSAGE % "").replace("b03-", "b77-").replace("TEA-SENCHA", "TEA-NONE")
    with pytest.raises(InvalidError, match="there is no product TEA-NONE; orderId: the bucket"):
        read(other_bucket.encode(), world.terms)


def test_a_message_full_of_faults_is_answered_in_moderation(world):
    """The first of them by name, and how many more there are."""
    nonsense = json.dumps({f"{number}{'x' * 1000}": 1 for number in range(500)})
    with pytest.raises(InvalidError) as caught:
        read(nonsense.encode(), world.terms)
    assert len(str(caught.value)) < 10_000
    assert caught.value.faults[-1].endswith("more faults")


@pytest.mark.proves("SUB-3", "SUB-4", "FLT-7")
@pytest.mark.parametrize("other", ["no submission", MESSAGE % ',"priority":"high"'], ids=["invalid", "other content"])
async def test_a_message_that_is_refused_again_and_again_raises_one_alert(world, other):
    """While the poison queue is away it is delivered again, and the order may go on meanwhile."""
    await world.submitted()
    record = queue_function(submission.triggers.blueprint(world.submission))
    put, world.parts.poison.put = world.parts.poison.put, away
    for _ in range(2):
        with pytest.raises(UnavailableError):
            await world.submission.record(other.encode(), NOW)
        world.now += seconds(3)
    await world.scheduler.wake(WakeUp(order_id=ORDER_ID))
    world.parts.poison.put = put
    await record(QueueMessage(body=other.encode(), insertion_time=NOW))
    events = [entry.event for bucket in buckets(8) for entry in await world.parts.store.outbox(bucket, 10)]
    assert [event.at for event in events] == [NOW]
    assert len(world.parts.poison.kept) == 1


async def away(*_):
    raise UnavailableError("the queue is away")


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
        await world.submission.record(b"no submission", time)
    events = [entry.event for entry in await world.parts.store.outbox("b00", 10)]
    assert len({event.event_id for event in events}) == 2


@pytest.mark.proves("SUB-6", "SCH-1")
async def test_polling_finds_an_order_whose_wake_up_was_lost(world):
    """Submission wakes the scheduler; if that message is lost, the poll claims the order."""
    await world.submitted()
    (wake_up,) = world.parts.bus.sent
    assert wake_up.queue == "scheduler-requests"
    assert await world.scheduler.poll() == 0  # the wake-up may still be on its way
    world.now += WAKE_UP_TIME
    assert await world.scheduler.poll() == 1
    assert (await world.order()).state.process_state is ProcessState.PROCESSING
    assert await world.scheduler.poll() == 0


@pytest.mark.proves("SCH-11")
async def test_a_poll_finds_the_first_of_each_lane_however_many_wait_in_another(world):
    """More urgent orders than fit a page hide none that waits behind them: it gets its turn."""
    message = MESSAGE % ',"priority":"high"'
    for number in range(PAGE + 5):
        await world.submission.record(message.replace(ORDER_ID, f"b03-{number:026d}").encode())
    await world.submitted()
    world.now += WAKE_UP_TIME
    assert await world.scheduler.poll() == PAGE + 1
    assert (await world.order()).state.process_state is ProcessState.PROCESSING


@pytest.mark.proves("SCH-2", "FLT-6")
async def test_a_wake_up_that_comes_twice_claims_once(world):
    """The second wake-up finds the order claimed and passes on without an error or a request."""
    await world.submitted()
    await world.scheduler.wake(WakeUp(order_id=ORDER_ID))
    sent = len(world.parts.bus.sent)
    await world.scheduler.wake(WakeUp(order_id=ORDER_ID))
    assert len(world.parts.bus.sent) == sent


@pytest.mark.proves("SUP-1", "SUP-2", "SUP-5")
async def test_only_the_elected_supervisor_sweeps_until_its_lease_lapses(world):
    """The second supervisor does nothing while the first holds the lease, and takes over when it has lapsed."""
    lease = MemoryLease()
    first, second = world.supervised_by("v1", lease), world.supervised_by("v2", lease)
    await world.submitted()
    await world.scheduler.wake(WakeUp(order_id=ORDER_ID))
    assert await first.sweep() == 0
    world.now += ALLOWANCE + TOLERANCE + seconds(0.001)
    assert await second.sweep() == 0
    assert (await world.order()).state.failure_count == 0
    world.now += timedelta(seconds=60)
    assert await second.sweep() == 1
    assert await first.sweep() == 0
    assert (await world.order()).state.failure_count == 1


@pytest.mark.proves("SUP-4", "FLT-5")
async def test_two_sweeps_of_one_time_out_count_it_once(world):
    """Two supervisors that both believe to lead: the conditional write lets one count the failure."""
    await world.submitted()
    await world.scheduler.wake(WakeUp(order_id=ORDER_ID))
    world.now += ALLOWANCE + TOLERANCE + seconds(0.001)
    loaded = await world.order()
    first, second = supervisor.recover(loaded, world.now), supervisor.recover(loaded, world.now)
    assert await world.transitions.carry_out(first) is True
    assert await world.transitions.carry_out(second) is False
    assert (await world.order()).state.failure_count == 1


@pytest.mark.proves("FLT-7")
async def test_a_lost_answer_is_not_taken_for_a_lost_race(world):
    """The commit went through, its answer did not: the history shows it, and the messages are sent once."""
    await world.submitted()
    commit = world.parts.store.commit

    async def commits_without_an_answer(change):
        await commit(change)
        raise UnavailableError("the answer was lost")

    world.parts.store.commit = commits_without_an_answer
    await world.scheduler.wake(WakeUp(order_id=ORDER_ID))
    assert (await world.order()).step("payment").attempts == 1
    assert [message.queue for message in world.parts.bus.sent] == ["scheduler-requests", "payment-requests"]


@pytest.mark.proves("SUP-6")
def test_the_supervisor_knows_no_workflow():
    """Importing all of the supervisor imports no workflow: the rules that it needs stand in the step rows."""
    code = "import supervisor.triggers, sys; sys.exit(any(name.startswith('workflows') for name in sys.modules))"
    root = Path(__file__).parent.parent.parent
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


class Agency:
    """The payment agent with a remote service whose calls take time on a clock of its own."""

    def __init__(self, *failures):
        self.now = NOW
        self.parts = in_memory()
        self.remote = MemoryRemoteService(failures=list(failures))
        circuit = Circuit(orders=10, open_for=seconds(30), clock=self.clock)
        self.agent = AgentService(
            name="payment",
            remote=self.remote,
            bus=self.parts.bus,
            clock=self.clock,
            sleep=self.sleep,
            margin=seconds(0.5),
            call_timeout=seconds(2),
            circuit=circuit,
            limits=CallLimits(
                agent="payment",
                in_flight=10,
                per_second=None,
                rates=self.parts.rates,
                clock=self.clock,
                sleep=self.sleep,
            ),
            gauge=Gauge(
                agent="payment", instance="a1", circuit=circuit, measures=self.parts.measures, clock=self.clock
            ),
        )
        (message,) = scheduler.claim(claimed_from_scratch(), NOW).messages
        self.request = AgentRequest.model_validate_json(message.body)

    def clock(self):
        return self.now

    async def sleep(self, time):
        self.now += seconds(time)

    def replies(self):
        return [(m.correlation_id, AgentReply.model_validate_json(m.body)) for m in self.parts.bus.sent]


def claimed_from_scratch():
    return claimed().with_state(process_state=ProcessState.PENDING, locked_by=None).with_steps(*new_order().steps)


@pytest.mark.proves("AGT-2", "AGT-3")
async def test_transient_faults_are_retried_with_the_same_key():
    """Two failures, then an answer: one reply, and every call bore the same idempotency key."""
    agency = Agency(TransientError("503"), TransientError("503"))
    await agency.agent.handle(agency.request)
    ((correlation, reply),) = agency.replies()
    assert (correlation, reply.outcome) == (f"{ORDER_ID}:payment:1:do", "completed")
    assert {call.idempotency_key for call in agency.remote.calls} == {f"{ORDER_ID}:payment"}
    assert len(agency.remote.calls) == 3


@pytest.mark.proves("AGT-2", "AGT-4")
async def test_the_agent_falls_silent_when_its_time_is_up():
    """Retries stop before complete-by, and then nothing is sent, not even an error."""
    agency = Agency(*[TransientError("503")] * 1000)
    await agency.agent.handle(agency.request)
    assert agency.replies() == []
    assert 3 < len(agency.remote.calls) < 100
    assert agency.now < agency.request.complete_by


@pytest.mark.proves("AGT-4")
async def test_an_answer_that_comes_too_late_is_not_passed_on():
    """The service answered, but the time was up: the agent says nothing."""
    agency = Agency()

    async def slow(request, timeout_seconds):
        agency.now = request.complete_by
        return {}

    agency.remote.call = slow
    await agency.agent.handle(agency.request)
    assert agency.replies() == []


@pytest.mark.proves("AGT-5")
async def test_a_request_that_arrives_expired_is_dropped_without_a_call():
    """An expired request costs nothing and says nothing."""
    agency = Agency()
    agency.now = agency.request.complete_by
    await agency.agent.handle(agency.request)
    assert (agency.replies(), agency.remote.calls) == ([], [])


@pytest.mark.proves("AGT-6")
async def test_a_refusal_is_answered_at_once_with_the_reason():
    """An unrecoverable fault is not retried: the reply says why."""
    agency = Agency(RejectedError("card declined"))
    await agency.agent.handle(agency.request)
    ((_, reply),) = agency.replies()
    assert (reply.outcome, reply.reason, len(agency.remote.calls)) == ("failed", "card declined", 1)


async def test_the_log_tells_how_long_each_step_took(world, caplog):
    """In the line of the change that records its answer, and in no other: the workbook shows it by step."""
    caplog.set_level("INFO", "core.transitions")
    await world.submitted()
    await world.scheduler.wake(WakeUp(order_id=ORDER_ID))
    world.now += seconds(1.5)
    await world.scheduler.receive(ANSWER, AgentReply(outcome="completed"))
    lines = [line for line in caplog.records if line.message == "order.changed"]
    assert [line.seconds for line in lines] == [{}, {}, {"payment": 1.5}]
