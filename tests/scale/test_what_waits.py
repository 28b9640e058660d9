"""What waits costs rows and nothing else, is found after a restart, and raises no alert of delay."""

from collections import Counter
from datetime import datetime, timedelta

import pytest

from engine.alerts.events import STALLED
from engine.domain.work_index import WorkItemKind, all_of
from engine.features.external_events.notifications import NEWS
from engine.workflow import Workflow, application
from operations.api.requests import OperatorRequest
from testkit import OrderUnderTest, WorkflowTestEnvironment
from testkit.environment import BEGINS
from testkit.memory import in_memory
from tests.support.acting import act
from tests.support.apps import app
from tests.support.asking import ADA, ASKING, DAYS, SENT, Question, Request, Work, office
from tests.support.scale import NIGHTLY, in_soak

HOUR = timedelta(hours=1)
GRACE = OperatorRequest(operator="grace", note="the customer asked for it")

waiting = Workflow("waiting", Request)


def in_14_days(request: Request) -> datetime:
    """Say when the parcel is sent."""
    return BEGINS + 14 * DAYS


@waiting.step(office.check, start_at=in_14_days)
def later(request: Request) -> Work:
    """Begin in two weeks."""
    return Work(detail="later")


asking = Workflow("asked", Request)


@asking.wait_for(Request, within=15 * DAYS)
def answered(request: Request) -> Question:
    """Ask for something for 15 days."""
    return Question(text="when?")


@asking.step(office.pay)
def pay(request: Request, answered: Request) -> Work:
    """Use the answer."""
    return Work(detail=answered.who)


BOTH = application(waiting, asking, agents=[office])


class Waits:
    """An order that waits, and nobody who claims or recovers anything any more."""

    def __init__(self, workflow):
        self.environment = WorkflowTestEnvironment(BOTH)
        self.id = self.environment.submit(ADA, workflow).id
        self.store = self.environment._world.engine.store

    def do(self, work):
        return self.environment._world.run(work)

    def act(self, action, at):
        """Let an operator act at that time, of which no scheduler hears."""
        order = self.do(self.store.load(self.id))
        self.do(self.store.commit(act(action, order, GRACE, at).identified(f"{action}")))

    def alerts_at(self, at):
        """What the stall detector announces of the order at that time."""
        there = app(in_memory(clock=lambda: at), pending_alert_seconds=120)
        there.engine.store = there.operations.background_store = self.store
        self.do(there.operations.stall_detector.check())
        rows = [
            row
            for bucket in self.store.buckets
            for row in self.do(self.store.work_items(bucket, *all_of(WorkItemKind.OUTBOX), 100))
        ]
        of_it = [
            row for row in rows if self.id in f"{row.data.get('Subject')}{row.data.get('Data')}"
        ]
        types = [row.data["Type"] for row in of_it]
        return [event_type for event_type in types if event_type not in NEWS]


LATE = timedelta(seconds=120)
A_BIT = timedelta(seconds=2)


@pytest.mark.proves("SUP-7", "SCH-15", "ANS-4")
@pytest.mark.parametrize(("workflow", "days"), [("waiting", 14), ("asked", 15)])
def test_a_wait_is_no_delay_until_the_usual_time_after_it_was_due(workflow, days):
    """A timer of 14 days, or an answer that may take 15: an alert comes two minutes later."""
    order, due = Waits(workflow), BEGINS + days * DAYS
    assert order.alerts_at(due + LATE - A_BIT) == []
    assert order.alerts_at(due + LATE + A_BIT) == [STALLED]


@pytest.mark.proves("SUP-7", "OPR-7")
@pytest.mark.parametrize(("workflow", "held", "due"), [("waiting", 14, 0), ("asked", 1, 15)])
def test_a_hold_is_no_delay_until_the_usual_time_after_it_was_released(workflow, held, due):
    """A timer that passed meanwhile is due then; the deadline of an answer has moved by the hold."""
    order, begins, ends = Waits(workflow), BEGINS + held * DAYS - HOUR, BEGINS + held * DAYS
    order.act("hold", begins)
    ends += 22 * HOUR
    assert order.alerts_at(ends) == []
    order.act("release", ends)
    due = BEGINS + due * DAYS + (ends - begins) if due else ends
    assert order.alerts_at(due + LATE - A_BIT) == []
    assert order.alerts_at(due + LATE + A_BIT) == [STALLED]


def cost_of_an_hour(environment):
    """The reads, the rows that were read, and the writes, while the timers run as always."""
    table, counted = environment._world.orders, Counter()
    rows, submit = table.rows, table.submit

    async def counted_rows(*args, **more):
        found = await rows(*args, **more)
        counted.update(reads=1, rows=len(found))
        return found

    async def counted_submit(*args, **more):
        counted["writes"] += 1
        return await submit(*args, **more)

    table.rows, table.submit = counted_rows, counted_submit
    environment.advance(hours=1)
    return counted


def restarted(environment):
    """Another app on the same rows, at the same time, that remembers nothing."""
    again = WorkflowTestEnvironment(ASKING, begins=environment.now)
    again._world.orders.partitions = environment._world.orders.partitions
    return again


@pytest.mark.proves("ANS-4", "SUP-2")
@pytest.mark.parametrize("count", [20, *in_soak(10_000 if NIGHTLY else 1_000)])
def test_orders_that_wait_cost_no_operation_and_a_restart_finds_them_all(count):
    """In an hour as much is read and written as without them; when their time is up, each is asked again."""
    environment = WorkflowTestEnvironment(ASKING)
    orders = [environment.submit(ADA).id for _ in range(count)]
    environment.advance(minutes=5)
    assert cost_of_an_hour(environment) == cost_of_an_hour(WorkflowTestEnvironment(ASKING))
    again = restarted(environment)
    again.advance(days=5)
    steps = [again.inspect(order_id).steps for order_id in orders]
    (attempts,) = {
        step.attempts for order_steps in steps for step in order_steps if step.name == "pictures"
    }
    assert attempts == 2
    for order_id in orders[:20]:
        again.answer(OrderUnderTest(again, order_id), "pictures", SENT)
