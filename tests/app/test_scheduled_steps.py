"""A step begins at a time that its workflow says, and an order at a time that was submitted with it."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from engine.alerts.events import STALLED
from engine.decisions.conditions import EARLIEST, LATEST
from engine.decisions.transitions import NotClaimed
from engine.declarations.faults import Fault, FaultCode
from engine.declarations.workflow import DeclarationError, StepDefaults
from engine.domain.causes import Code
from engine.domain.errors import InvalidError
from engine.domain.keys import sortable
from engine.domain.messages import SCHEDULER_REQUESTS
from engine.domain.states import Scheduled, UnderWay
from engine.domain.statuses import NotClaimable
from engine.domain.submitted_order import OnFailure
from engine.storage.orders import ORDER
from engine.words.history import in_words
from engine.workflow import Agent, Model, Operation, Workflow, application
from operations.cli.formatting import order_text
from shop.business import SHOP
from submission.rules import Terms, new_order, read, same_submission
from testkit import WorkflowTestEnvironment
from testkit.environment import BEGINS
from tests.support.acting import cancel, resubmit
from tests.support.builders import (
    CONTENT,
    NOW,
    ORDER_ID,
    PAYLOAD,
    answer,
    index_rows,
    orders,
    seconds,
    steps,
)
from tests.support.faults import without_lines
from tests.support.judging import BY_GRACE, NO_CAPACITY, Case, step

DAY = timedelta(days=1)
TOMORROW = NOW + DAY


def tomorrow(order, results):
    return TOMORROW


def broken(order, results):
    return results["nothing"]


PAY = step("pay")
SHIP = step("ship", "pay", start_at=tomorrow)


@pytest.mark.proves("SCH-15")
def test_a_step_begins_at_its_time_and_not_before():
    """Until then the order is Pending, without a wake-up, in the later part of its lane."""
    case = Case(PAY, SHIP).claim().done("pay")
    assert case.ended == ("Pending", None)
    assert case.order.step("ship").state == Scheduled(TOMORROW)
    derived = case.order.derived
    assert (derived.not_before, derived.ready_since) == (TOMORROW, TOMORROW)
    assert derived.locked_by is None
    assert case.changes[-1].messages == ()
    assert list(index_rows(case.order)) == [
        f"!pending|1|payment|later|{sortable(TOMORROW)}|{ORDER_ID}"
    ]
    early = case.scheduler.claim(case.order, TOMORROW - seconds(5))
    assert early == NotClaimed(why=NotClaimable.NOT_YET)
    assert case.claim(TOMORROW).states["ship"] == "Running"


@pytest.mark.proves("SCH-15", "OPR-2")
def test_history_and_explanation_say_what_is_waited_for():
    """A chosen time is no failure."""
    case = Case(PAY, SHIP).claim().done("pay")
    at = "2026-02-01 08:15:00 UTC"
    assert case.last_entry == (
        "waits",
        f"pay completed by attempt 1; ship starts at {at}, the time that tomorrow returned; the order waits until {at}",
    )
    assert f"at {at} or later: ship attempt 1 started" in case.explained()


@pytest.mark.proves("SCH-15")
@pytest.mark.parametrize("when", [None, NOW, NOW - DAY, EARLIEST])
def test_a_time_that_has_come_is_no_wait(when):
    """Nor is none."""
    case = Case(PAY, replace(SHIP, start_at=named(lambda: when))).claim().done("pay")
    assert case.states["ship"] == "Running"
    assert "starts at" not in case.last_entry[1]


@pytest.mark.proves("SCH-15")
def test_a_wait_that_no_workflow_chose_is_recorded_as_what_it_is():
    """A service that accepted the step is asked again later: that is no plan."""
    case = Case(PAY).claim().reply("pay", "deferred", retry_after=60)
    assert case.last_entry[0] == "requeued"


def named(says):
    def chosen(order, results):
        return says()

    return chosen


@pytest.mark.proves("SCH-15", "SCH-10")
def test_a_step_that_waits_for_its_time_holds_up_no_other():
    """What may begin begins, whatever it needs; the order is claimed again at the time."""
    note = step("note", "pay", capability="inventory")
    case = Case(PAY, SHIP, note).claim().done("pay", {"inventory": ("inventory",)})
    assert case.states == {"pay": "Completed", "ship": "NotStarted", "note": "Running"}
    assert case.ended == ("Processing", None)
    keys = sorted(key.split("|")[0] for key in index_rows(case.order))
    assert keys == ["!pending", "!running"]
    case.done("note")
    assert case.ended == ("Pending", None)
    assert case.claim(TOMORROW).states["ship"] == "Running"


@pytest.mark.proves("SCH-15")
def test_a_step_that_may_begin_waits_in_its_own_lane():
    """A timer never stands before it."""
    note = step("note", "pay", capability="inventory")
    case = Case(PAY, SHIP, note).claim().done("pay", NO_CAPACITY)
    assert sorted(index_rows(case.order)) == [
        f"!pending|1|inventory|{sortable(case.now)}|{ORDER_ID}",
        f"!pending|1|payment|later|{sortable(TOMORROW)}|{ORDER_ID}",
    ]
    assert case.order.derived.not_before is None


@pytest.mark.proves("SCH-15")
def test_the_time_is_computed_once():
    """Whatever the function would say later, and however often the step is tried."""
    times = iter([TOMORROW, TOMORROW + DAY])
    case = Case(PAY, replace(SHIP, start_at=named(lambda: next(times)))).claim().done("pay")
    case.claim(TOMORROW).expire().claim()
    assert (case.states["ship"], case.order.step("ship").counts.attempts) == ("Running", 2)


@pytest.mark.proves("SCH-15")
@pytest.mark.parametrize(
    ("start_at", "fault"),
    [
        (broken, "KeyError 'nothing'"),
        (named(lambda: NOW.replace(tzinfo=None)), "TypeError it returned a time without a time"),
        (named(lambda: "2026-02-01"), "TypeError it returned str, not datetime"),
        (named(lambda: datetime.max.replace(tzinfo=UTC)), "it returned a time that is not from"),
        (named(lambda: LATEST), "it returned a time that is not from 2000 to 2100"),
        (named(lambda: datetime.min.replace(tzinfo=timezone(DAY / 2))), "that is not from 2000"),
    ],
)
def test_what_says_no_time_has_failed_its_step(start_at, fault):
    """The step's rule decides, and the reason names the function."""
    case = Case(PAY, replace(SHIP, start_at=start_at)).claim().done("pay")
    assert case.ended == ("Error", "failed")
    cause = case.order.cause
    assert cause.code is Code.CONDITION_FAILED
    assert cause.facts["function"] == f"start_at {start_at.__name__}"
    assert fault in cause.facts["error"]
    went_on = Case(PAY, replace(SHIP, start_at=start_at, on_failure=OnFailure.CONTINUE))
    assert went_on.claim().done("pay").ended == ("Processed", None)


@pytest.mark.proves("SCH-15", "UND-1")
def test_an_order_that_goes_back_waits_for_no_time():
    """What has not begun has nothing to undo."""
    case = Case(PAY, SHIP).claim().done("pay")
    case.took(cancel(case.order, BY_GRACE, case.now)).claim().done("pay")
    assert case.ended == ("Error", "undone")


@pytest.mark.proves("SCH-15", "OPR-3")
def test_a_resubmit_of_another_step_leaves_the_time_as_it_is():
    """Only what failed begins afresh."""
    case = Case(PAY, SHIP, step("note", "pay")).claim().done("pay").refused("note")
    case.took(resubmit(case.order, BY_GRACE, case.now)).claim().done("note")
    assert case.order.derived.not_before == TOMORROW


@pytest.mark.proves("SCH-14", "SCH-15")
def test_a_step_that_is_not_needed_is_not_waited_for():
    """Whether it is needed is asked first."""
    unneeded = replace(SHIP, condition=named(lambda: False), start_at=broken)
    assert Case(PAY, unneeded).claim().done("pay").ended == ("Processed", None)


# The order's own time

TERMS = Terms(
    workflows=SHOP.workflows,
    default_workflow="order",
    payload=SHOP.payload,
    reply_to_prefix="status-",
    buckets=frozenset({"b03"}),
    defaults=StepDefaults(timeout=seconds(5), threshold=3, cooldown=seconds(60)),
)


def message(**more):
    placed = {"schemaVersion": 1, "orderId": ORDER_ID, "placedAt": NOW.isoformat(), **CONTENT}
    return json.dumps({**placed, **more}).encode()


def recorded(**more):
    submission, workflow = read(message(**more), TERMS)
    return new_order(submission, workflow, TERMS, NOW, "submission/1")


@pytest.mark.proves("SUB-9")
def test_an_order_may_be_submitted_for_a_later_time():
    """Its steps begin then; until then it waits for a poll, and nothing wakes anybody."""
    change = recorded(notBefore=TOMORROW.isoformat())
    derived = change.after.derived
    assert (derived.not_before, derived.ready_since) == (TOMORROW, TOMORROW)
    assert change.messages == ()
    assert {change.after.starts_at(step) for step in change.after.steps} == {TOMORROW}
    assert in_words(change.entry.events).endswith("not before 2026-02-01 08:15:00 UTC")
    assert ORDER.columns(change.after.submitted)["NotBefore"] == TOMORROW
    again = recorded(notBefore=TOMORROW.isoformat()).after
    assert same_submission(change.after, again, PAYLOAD)
    assert not same_submission(change.after, recorded().after, PAYLOAD)


@pytest.mark.proves("SUB-9")
@pytest.mark.parametrize("time", [None, NOW, NOW - timedelta(days=1)])
def test_an_order_whose_time_has_come_begins_at_once(time):
    """As one that names no time, also in the history."""
    change = recorded(notBefore=time and time.isoformat())
    assert change.after.derived.not_before is None
    assert [event.not_before for event in change.entry.events] == [None]
    assert [sent.queue for sent in change.messages] == [SCHEDULER_REQUESTS]


@pytest.mark.proves("SUB-9", "SUB-4")
@pytest.mark.parametrize("time", ["tomorrow", 7, "2026-02-01T08:15:00", "9999-12-31T23:00:00Z"])
def test_no_time_is_a_fault_of_the_message(time):
    """With its place."""
    with pytest.raises(InvalidError, match="notBefore"):
        read(message(notBefore=time), TERMS)


def for_tomorrow(order):
    """The order as if it had been submitted for tomorrow."""
    return orders.having(order, not_before=TOMORROW)


@pytest.mark.proves("SUB-9")
def test_the_time_of_an_order_holds_for_all_of_its_steps():
    """The later of its own time and the order's counts, and none for an undo."""
    in_two_days = TOMORROW + DAY
    case = Case(PAY, step("ship", "pay"), step("tell", "pay"))
    order = for_tomorrow(case.order)
    pay, ship, tell = order.steps
    ship, tell = steps.scheduled(ship, at=NOW), steps.scheduled(tell, at=in_two_days)
    assert [order.starts_at(planned) for planned in (pay, ship, tell)] == [TOMORROW] * 2 + [
        in_two_days
    ]
    back = orders.undoing(order)
    assert [back.starts_at(planned) for planned in (pay, ship, tell)] == [None, NOW, in_two_days]


@pytest.mark.proves("SUB-9")
def test_no_step_starts_before_the_time_of_its_order_however_the_claim_came_about():
    """The time is asked again where steps start (engine 3)."""
    case = Case(PAY, step("ship", "pay"))
    pay = steps.running(case.order.step("pay"), started=TOMORROW - seconds(2))
    order = orders.with_steps(orders.processing(for_tomorrow(case.order)), pay)
    early = case.scheduler.receive(order, answer("pay"), TOMORROW - seconds(1)).after
    assert (early.in_state(UnderWay), early.derived.not_before) == ((), TOMORROW)
    claimed = case.scheduler.claim(early, TOMORROW).after
    assert [started.name for started in claimed.in_state(UnderWay)] == ["ship"]


@pytest.mark.proves("SUB-9", "SCH-14")
def test_the_first_step_is_judged_when_the_orders_time_has_come():
    """And not when the order comes."""
    calls = []
    first = replace(PAY, condition=named(lambda: not calls.append(1)))
    case = Case(first)
    case.order = for_tomorrow(case.order)
    assert isinstance(case.scheduler.claim(case.order, NOW), NotClaimed)
    assert calls == []
    assert case.claim(TOMORROW).states["pay"] == "Running"


# As an author writes it


class Booking(Model):
    """What is booked."""

    day: datetime


class Hotel(Agent):
    """The one service of this business."""

    reserve = Operation(Booking)
    charge = Operation(Booking)


hotel = Hotel("hotel")


def after_the_stay(booking: Booking) -> datetime:
    return booking.day + timedelta(days=14)


def stays(start_at=after_the_stay):
    flow = Workflow("stay", Booking)

    @flow.step(hotel.reserve)
    def reserve(booking: Booking) -> Booking:
        return booking

    @flow.step(hotel.charge, after=[reserve], start_at=start_at)
    def charge(booking: Booking) -> Booking:
        return booking

    return application(flow, agents=[hotel])


def standstill(environment):
    return [alert.subject for alert in environment.alerts() if alert.type == STALLED]


@pytest.mark.proves("SCH-15", "SUP-7")
def test_a_timer_of_two_weeks_raises_no_alert_until_the_usual_time_after_it():
    """Its wait is no delay; that nobody takes the order afterwards is."""
    environment = WorkflowTestEnvironment(stays())
    order = environment.submit(Booking(day=BEGINS))
    other = environment.submit(Booking(day=BEGINS))
    assert (order.state, environment.effects("hotel")) == ("Pending", ["reserve"] * 2)
    environment.act(other, "hold")
    environment.advance(days=13, hours=23)
    assert f"orders/{order.id}" not in standstill(environment)
    environment.advance(hours=1, minutes=1)
    assert order.state == "Processed"
    assert environment.effects("hotel", order) == ["reserve", "charge"]


@pytest.mark.proves("SUB-9")
def test_an_order_of_any_business_may_be_for_later():
    """The shop's too."""
    environment = WorkflowTestEnvironment(SHOP)
    order = environment.submit(CONTENT, not_before=BEGINS + timedelta(days=2))
    environment.advance(days=1, hours=23)
    assert (order.state, environment.effects("payment")) == ("Pending", [])
    view = environment.inspect(order.id)
    assert view.not_before == BEGINS + timedelta(days=2)
    shown = order_text(view.model_dump(mode="json", by_alias=True))
    assert "not before 2026-01-07 09:00:00Z" in " ".join(shown.split())
    environment.advance(hours=2)
    assert order.state == "Processed"
    assert standstill(environment) == []


class Permit(Model):
    """What somebody outside says."""

    number: str


def permitted():
    """A stay that somebody outside has to permit."""
    flow = Workflow("stay", Booking)

    @flow.wait_for(Permit, within=5 * DAY)
    def permit(booking: Booking) -> Booking:
        return booking

    @flow.step(hotel.reserve, after=[permit])
    def reserve(booking: Booking) -> Booking:
        return booking

    return application(flow, agents=[hotel])


@pytest.mark.proves("SUB-9", "ANS-2")
@pytest.mark.parametrize("first", ["answered", "refused and resubmitted"])
def test_an_early_answer_lets_no_step_begin_before_the_time_of_its_order(first):
    """Nor does a resubmit after an early refusal (engine 3)."""
    environment = WorkflowTestEnvironment(permitted())
    order = environment.submit(Booking(day=BEGINS), not_before=BEGINS + 20 * DAY)
    if first == "answered":
        environment.answer(order, "permit", Permit(number="1"))
    else:
        environment.answer(order, "permit", refusal="no")
        environment.act(order, "resubmit")
    environment.advance(days=19, hours=23)
    assert (order.state, environment.effects("hotel")) == ("Pending", [])
    assert "Running" not in order.steps.values()
    assert environment.inspect(order.id).steps[1].not_before == BEGINS + 20 * DAY
    environment.advance(hours=2)
    assert environment.effects("hotel") == (["reserve"] if first == "answered" else [])
    assert order.state == ("Processed" if first == "answered" else "Processing")
    assert environment.inspect(order.id).steps[1].not_before is None
    assert standstill(environment) == []


def no_time(booking: Booking) -> str:
    return str(booking.day)


@pytest.mark.proves("SCH-15")
@pytest.mark.parametrize(
    ("start_at", "fault"),
    [
        (no_time, Fault(FaultCode.RETURN_TYPE, "start_at", expected="datetime", returned="str")),
        (lambda: None, Fault(FaultCode.FUNCTION_WITHOUT_NAME, "start_at", limit=80)),
    ],
)
def test_what_says_no_time_is_named_with_its_place(start_at, fault):
    """When the app starts."""
    with pytest.raises(DeclarationError) as raised:
        stays(start_at)
    place = "test_scheduled_steps.py:N: stay version 1: step charge"
    assert fault.within(place) in without_lines(raised.value.faults)


def test_the_drawing_names_the_function():
    """For who reads the workflow."""
    assert "start_at: after_the_stay" in drawing()


def drawing():
    flow = Workflow("stay", Booking)

    @flow.step(hotel.charge, start_at=after_the_stay)
    def charge(booking: Booking) -> Booking:
        return booking

    return flow.mermaid()


@pytest.mark.proves("SCH-15", "SCH-6")
def test_a_late_reply_to_another_step_changes_nothing_of_the_time():
    """It is refused as ever."""
    case = Case(PAY, SHIP).claim().done("pay")
    note = case.scheduler.receive(case.order, answer("pay"), case.now)
    assert note.entry.event == "reply-refused"
