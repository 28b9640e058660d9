"""Orders with a deadline, on the whole app: warned, undone, stopped, or only announced (SCH-17)."""

from datetime import timedelta

import pytest

from engine.alerts.events import ORDER_DUE_SOON, ORDER_LATE
from engine.domain.statuses import ORDER_FAILED, ORDER_UNDONE
from engine.workflow import (
    ERROR,
    Agent,
    Model,
    Nothing,
    Operation,
    WhenLate,
    Workflow,
    application,
)
from testkit import WorkflowTestEnvironment
from testkit.environment import BEGINS

DAY = timedelta(days=1)


class Parcel(Model):
    """The payload."""

    address: str


class Yes(Model):
    """What somebody outside says."""

    by: str


class Depot(Agent):
    """The service of both steps."""

    pack = Operation(Parcel, Nothing)
    unpack = Operation(Parcel, Nothing)
    send = Operation(Parcel, Nothing)


def business(when_late, *, pivot=False, within=DAY, asks=True):
    """An order is packed, somebody agrees within ten days, and it is sent."""
    depot = Depot("depot", refusal="no")
    workflow = Workflow("parcel", Parcel, within=within, when_late=when_late)
    undo = None if pivot else depot.unpack

    @workflow.step(depot.pack, undo=undo, pivot=pivot)
    def pack(parcel: Parcel) -> Parcel:
        """Pack it."""
        return parcel

    if asks:

        @workflow.wait_for(Yes, within=10 * DAY, after=[pack])
        def agree(parcel: Parcel) -> Parcel:
            """Agree to it."""
            return parcel

    @workflow.step(depot.send, after=[agree] if asks else [pack], on_failure=ERROR)
    def send(parcel: Parcel) -> Parcel:
        """Send it."""
        return parcel

    return application(workflow, agents=[depot])


def submitted(*args, not_before=None, **options):
    """An environment with one order."""
    environment = WorkflowTestEnvironment(
        business(*args, **options), public_url="https://shop.example"
    )
    return environment, environment.submit(Parcel(address="1 High Street"), not_before=not_before)


def types(environment):
    return [alert.type for alert in environment.alerts()]


@pytest.mark.proves("SCH-17", "ALR-6")
def test_a_late_order_is_undone():
    """What is awaited from outside ends by the deadline, and operators are warned before it."""
    environment, order = submitted(WhenLate.UNDO)
    view = environment.inspect(order.id)
    assert (view.due_by, view.when_late, view.deadline_state) == (BEGINS + DAY, "undo", "open")
    assert view.complete_by == view.due_by
    environment.advance(hours=21)
    assert types(environment) == []
    environment.advance(hours=2)
    assert types(environment) == [ORDER_DUE_SOON]
    assert environment.inspect(order.id).deadline_state == "warned"
    environment.advance(hours=2)
    assert (order.state, order.outcome) == ("Error", "undone")
    assert environment.effects("depot") == ["pack", "unpack"]
    assert types(environment) == [ORDER_DUE_SOON, ORDER_UNDONE]
    assert environment.alerts()[1].data["cause"] == "deadline-passed"
    events = [entry.event for entry in environment.inspect(order.id).history]
    assert events.count("due-soon") == 1


@pytest.mark.proves("SCH-17", "UND-6")
@pytest.mark.parametrize(("rule", "pivot"), [(WhenLate.STOP, False), (WhenLate.UNDO, True)])
def test_a_late_order_stops_for_an_operator_who_lets_it_go_on(rule, pivot):
    """Past its point of no return it stops too; then it has no deadline any more."""
    environment, order = submitted(rule, pivot=pivot)
    environment.advance(days=2)
    assert (order.state, order.outcome) == ("Error", "failed")
    assert types(environment) == [ORDER_DUE_SOON, ORDER_FAILED]
    assert environment.effects("depot") == ["pack"]
    environment.act(order, "resubmit")
    environment.advance(days=2)
    view = environment.inspect(order.id)
    assert (view.situation, view.deadline_state) == ("awaiting", "lifted")
    environment.answer(order, "agree", Yes(by="grace"))
    assert order.state == "Processed"
    assert types(environment) == [ORDER_DUE_SOON, ORDER_FAILED]


@pytest.mark.proves("SCH-17", "ALR-6")
def test_a_late_order_that_only_alerts_goes_on():
    """Its answer may come after the deadline."""
    environment, order = submitted(WhenLate.ALERT)
    environment.advance(days=3)
    assert types(environment) == [ORDER_DUE_SOON, ORDER_LATE]
    assert environment.inspect(order.id).deadline_state == "lifted"
    environment.answer(order, "agree", Yes(by="grace"))
    assert order.state == "Processed"


@pytest.mark.proves("SCH-17")
def test_an_order_in_time_is_never_announced():
    """Nothing is left of its deadline in the work index."""
    environment, order = submitted(WhenLate.UNDO)
    environment.answer(order, "agree", Yes(by="grace"))
    environment.advance(days=3)
    assert (order.state, types(environment)) == ("Processed", [])


@pytest.mark.proves("SCH-17", "SUB-9")
def test_the_deadline_counts_from_the_time_for_which_the_order_was_placed():
    """However long that is away."""
    begins = BEGINS + 5 * DAY
    environment, order = submitted(WhenLate.STOP, not_before=begins)
    assert environment.inspect(order.id).due_by == begins + DAY
    environment.advance(days=5, hours=1)
    assert order.steps["pack"] == "Completed"
    environment.advance(days=1)
    assert order.outcome == "failed"


@pytest.mark.proves("SCH-17")
def test_a_service_that_hangs_holds_up_no_deadline():
    """The last attempt is over by then, and nothing is tried after it."""
    environment = WorkflowTestEnvironment(
        business(WhenLate.UNDO, within=timedelta(minutes=3), asks=False),
        failure_threshold=1000,
        step_timeout_seconds=60,
        remote_call_timeout_seconds=60,
    )
    environment.hang("depot", "send")
    order = environment.submit(Parcel(address="1 High Street"))
    environment.advance(minutes=2.5)
    view = environment.inspect(order.id)
    assert view.complete_by == view.due_by
    environment.advance(minutes=5)
    assert order.outcome == "undone"
    assert environment.effects("depot") == ["pack", "unpack"]


@pytest.mark.proves("SCH-17")
def test_an_order_undone_or_in_error_has_no_deadline_ahead():
    """Only an operator's resubmit brings it back, and only before it."""
    environment, order = submitted(WhenLate.STOP, asks=False)
    environment.refuse("depot", "send")
    again = environment.submit(Parcel(address="2 High Street"))
    environment.advance(hours=1)
    environment.heal("depot")
    environment.act(again, "resubmit")
    assert (order.state, again.state) == ("Processed", "Processed")
    environment.refuse("depot", "send")
    failed = environment.submit(Parcel(address="3 High Street"))
    environment.advance(days=3)
    assert types(environment) == [ORDER_FAILED, ORDER_FAILED]
    environment.heal("depot")
    environment.act(failed, "resubmit")
    assert failed.state == "Processed"


@pytest.mark.soak
def test_every_course_of_an_order_with_a_deadline():
    """Authors explore them as any other."""
    environment = WorkflowTestEnvironment(business(WhenLate.UNDO), public_url="https://a.example")
    environment.explore({"address": "1 High Street"}, faults=0, seconds=5, progress=False)
