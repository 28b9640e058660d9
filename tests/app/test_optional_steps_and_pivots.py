"""An order goes on without a step, and it has a point of no return."""

from dataclasses import replace

import pytest

from engine.decisions.operator_actions import cancel_for_customer, possible
from engine.declarations.faults import Fault, FaultCode
from engine.declarations.workflow import DeclarationError, WorkflowDefinition
from engine.domain.attempts import FailureOrigin
from engine.domain.causes import Cause, Code
from engine.domain.states import Skipped, SkipReason, Undoing, UndoPending
from engine.domain.submitted_order import OnFailure
from engine.words.causes import words_of
from engine.words.history import in_words
from engine.workflow import CONTINUE, UNDO, Agent, Model, Operation, Workflow, application
from operations.cli.formatting import order_text
from samples.claims.business import CLAIMS
from samples.claims_with_approvals.business import GROWN
from samples.simulator.samples import sample_order
from testkit import WorkflowTestEnvironment
from tests.support.acting import alerts_of, cancel, is_refused, skip
from tests.support.builders import orders, refusal
from tests.support.faults import without_lines
from tests.support.judging import BY_GRACE, Case, step

POINTS = step("points", "pay", on_failure=OnFailure.CONTINUE)
BUYING = (step("pay"), POINTS, step("mail", "points", on_failure=OnFailure.UNDO))
STOCK = step("stock")
SHIP = step("ship", "stock", pivot=True, compensation=None)
SELLING = (STOCK, SHIP, step("bill", "ship"))


def undo_requested(case):
    """What is to be undone now."""
    return [
        order_step.name
        for order_step in case.order.steps
        if isinstance(order_step.state, UndoPending | Undoing)
    ]


@pytest.mark.proves("SCH-13")
@pytest.mark.parametrize("answered", [True, False], ids=["refused", "timed out"])
def test_an_order_goes_on_without_a_step_that_failed_for_good(answered):
    """The step is skipped with its reason, and the order ends as any other."""
    case = Case(*BUYING).claim().done("pay")
    if answered:
        case.refused("points", "no such member")
        assert case.last_entry == (
            "step-failed",
            "points: no such member; the order continues without points; mail attempt 1 started",
        )
    else:
        case.give_up()
        assert case.last_entry[1].endswith("; the order continues without points")
        case.claim()
    assert case.states == {"pay": "Completed", "points": "Skipped", "mail": "Running"}
    case.done("mail")
    assert case.ended == ("Processed", None)
    late = Cause(Code.THRESHOLD_REACHED, {"step": "points", "failures": 3, "fault": ""})
    why = refusal("no such member") if answered else late
    assert case.order.step("points").state == Skipped(SkipReason.FAILED, why)
    assert alerts_of(case.changes[-1]) == []
    assert f"points was skipped: {words_of(why)}" in case.explained()


@pytest.mark.proves("SCH-13", "UND-2")
def test_what_an_order_went_on_without_is_undone_with_it_if_it_was_ever_tried():
    """Its effect may stand, also after a refusal: the same request may have come twice."""
    case = Case(*BUYING).claim().done("pay").refused("points").refused("mail")
    assert case.order.direction == "undo"
    assert undo_requested(case) == ["pay", "points", "mail"]


@pytest.mark.proves("SCH-13")
def test_a_step_whose_request_cannot_be_made_is_passed_over_and_has_nothing_to_undo():
    """It was never tried."""
    broken = replace(POINTS, request=lambda order, results: results["nothing"])
    case = Case(BUYING[0], broken, BUYING[2]).claim().done("pay")
    assert case.states["mail"] == "Running"
    why = case.order.step("points").cause
    assert (why.code, why.facts["error"]) == (Code.REQUEST_FAILED, "KeyError 'nothing'")
    assert undo_requested(case.refused("mail")) == ["pay", "mail"]


@pytest.mark.proves("SCH-13")
def test_an_operator_decides_about_a_failure_that_did_not_come_from_the_service():
    """Then the order stops at the step, whatever its rule; the step may be skipped there."""
    case = Case(*BUYING).claim().done("pay").refused("points", origin=FailureOrigin.REQUEST)
    assert case.ended == ("Error", "failed")
    skipped = skip(case.order, BY_GRACE, case.now).after.step("points")
    assert skipped.state == Skipped(SkipReason.OPERATOR)


@pytest.mark.proves("SCH-13", "UND-4")
def test_an_undo_that_fails_is_not_passed_over():
    """The order ends, and says what is left."""
    case = Case(*BUYING).claim().done("pay").done("points").refused("mail")
    case.claim().done("mail").refused("points", "not now")
    assert case.states["points"] == "Failed"
    assert case.ended == ("Error", "undo-incomplete")


@pytest.mark.proves("SCH-13")
def test_nothing_goes_on_without_a_step_once_the_order_goes_back():
    """A step that is refused then is undone like any other that was tried."""
    case = Case(*BUYING).claim().done("pay")
    case.took(cancel(case.order, BY_GRACE, case.now)).refused("points")
    assert "continues without" not in in_words(case.changes[-1].entry.events)
    assert "points" in undo_requested(case)


@pytest.mark.proves("UND-6")
def test_a_step_that_fails_after_the_point_of_no_return_asks_an_operator():
    """Nothing is undone, though a step beside the pivot says so."""
    beside = step("gift", "stock", on_failure=OnFailure.UNDO)
    case = Case(STOCK, SHIP, beside).claim().done("stock").done("ship").refused("gift", "gone")
    assert case.ended == ("Error", "failed")
    assert case.order.cause == refusal("gone")
    assert undo_requested(case) == []
    assert "past its point of no return (ship)" in case.explained()


@pytest.mark.proves("UND-6")
@pytest.mark.parametrize(
    ("far", "passed"),
    [
        (lambda case: case, False),
        (lambda case: case.done("stock"), True),
        (lambda case: case.done("stock").expire(), True),
        (lambda case: case.done("stock").done("ship"), True),
        (lambda case: case.done("stock").refused("ship"), False),
        (lambda case: case.done("stock").refused("ship", in_doubt=True), True),
        (
            lambda case: (
                case.done("stock").refused("ship").took(skip(case.order, BY_GRACE, case.now))
            ),
            True,
        ),
    ],
    ids=["before", "running", "timed out", "done", "refused", "refused in doubt", "done by hand"],
)
def test_once_the_pivot_may_be_done_the_order_cannot_be_cancelled(far, passed):
    """While it runs it may be done; what was refused was not done, unless somebody did it by hand."""
    case = far(Case(*SELLING).claim())
    assert ("cancel" not in possible(case.order, case.now)) == passed
    if not passed:
        assert cancel(case.order, BY_GRACE, case.now).after.direction == "undo"
        return
    with is_refused(Code.PIVOT_PASSED, steps=["ship"]):
        cancel(case.order, BY_GRACE, case.now)
    with is_refused(Code.TOO_LATE_TO_CANCEL):
        cancel_for_customer(case.order, "bill", case.now)


@pytest.mark.proves("UND-6")
@pytest.mark.parametrize("in_doubt", [False, True])
def test_a_pivot_that_fails_itself_lets_the_order_be_undone_unless_it_is_in_doubt(in_doubt):
    """What its service refused was not done."""
    case = Case(STOCK, replace(SHIP, on_failure=OnFailure.UNDO)).claim().done("stock")
    case.refused("ship", in_doubt=in_doubt)
    assert case.ended == (("Error", "failed") if in_doubt else ("Pending", None))
    assert undo_requested(case) == ([] if in_doubt else ["stock"])


@pytest.mark.proves("UND-6", "AGT-11")
def test_a_pivot_that_was_accepted_and_then_refused_was_not_passed():
    """The order can be cancelled, and what came before the pivot is undone (engine 5)."""
    environment = WorkflowTestEnvironment(GROWN)
    environment.accept("bank", "pay")
    order = environment.submit(GROWN.sample.payload)
    environment.answer(order, "photographs", {"urls": ["https://x/1.jpg"]})
    environment.advance(seconds=5)
    environment.heal("bank", "pay")
    environment.refuse("bank", "pay", "account closed")
    environment.advance(minutes=10)
    assert (order.state, order.outcome) == ("Error", "failed")
    assert "cancel" in environment.inspect(order.id).actions
    environment.act(order, "cancel")
    environment.advance(minutes=10)
    assert order.outcome == "undone"


@pytest.mark.proves("UND-6")
def test_a_pivot_that_the_order_went_on_without_was_not_passed():
    """Its refusal is its reason; a service that accepted it may have done it."""
    ship = replace(SHIP, on_failure=OnFailure.CONTINUE)
    case = Case(STOCK, ship, step("bill", "ship")).claim().done("stock")
    accepted = case.reply("ship", "deferred", retry_after=60)
    assert [pivot.name for pivot in accepted.order.passed_pivots()] == ["ship"]
    case.claim(case.now + 2 * case.order.step("ship").rules.timeout * 10).refused("ship")
    assert case.order.passed_pivots() == ()


@pytest.mark.proves("UND-6")
def test_after_a_pivot_no_step_may_ask_for_the_undo():
    """Directly or not; a step beside it may."""
    undo = {"on_failure": OnFailure.UNDO}
    steps = (STOCK, SHIP, step("bill", "ship"), step("mail", "bill", **undo), step("tell", **undo))
    assert list(WorkflowDefinition(name="w", version=1, steps=steps).faults(("payment",))) == [
        Fault(FaultCode.UNDO_AFTER_PIVOT, "step mail", step="ship")
    ]


@pytest.mark.proves("SCH-13")
def test_who_uses_an_answer_that_may_be_missing_has_to_allow_none():
    """The start fails otherwise."""
    mail = step("mail", "points", uses=("points",))
    workflow = WorkflowDefinition(name="w", version=1, steps=(step("pay"), POINTS, mail))
    assert list(workflow.faults(("payment",))) == [
        Fault(FaultCode.RESULT_MAY_BE_MISSING, "step mail", step="points")
    ]
    allowed = replace(workflow, steps=(step("pay"), POINTS, replace(mail, may_lack=("points",))))
    assert list(allowed.faults(("payment",))) == []


# As an author writes it


class Purchase(Model):
    """What is bought."""

    amount: int


class Member(Model):
    """The points of a member."""

    points: int | None = None


class Letter(Model):
    """What is written to the customer."""

    points: int | None


class Shop(Agent):
    """The one service of this business."""

    charge = Operation(Purchase)
    refund = Operation(Purchase)
    reward = Operation(Purchase, Member)
    send = Operation(Purchase)
    write = Operation(Letter)


shop = Shop("shop")


def purchases(mail_takes=Member | None, mail_rule=OnFailure.ERROR, points_rule=CONTINUE, **more):
    flow = Workflow("purchase", Purchase)

    @flow.step(shop.charge, undo=shop.refund)
    def pay(purchase: Purchase) -> Purchase:
        return purchase

    @flow.step(shop.reward, on_failure=points_rule, after=[pay])
    def points(purchase: Purchase) -> Purchase:
        return purchase

    @flow.step(shop.send, after=[points], pivot=True)
    def ship(purchase: Purchase) -> Purchase:
        return purchase

    def mail(points, purchase: Purchase) -> Letter:
        return Letter(points=points.points if points else None)

    mail.__annotations__["points"] = mail_takes
    flow.step(shop.write, after=[ship], on_failure=mail_rule)(mail)
    return application(flow, agents=[shop], **more)


@pytest.mark.proves("SCH-13", "UND-6")
def test_a_purchase_without_points_is_shipped_and_cannot_be_taken_back():
    """The letter is written without them; the history says what the order went on without."""
    environment = WorkflowTestEnvironment(purchases())
    environment.refuse("shop", "reward", "no such member")
    environment.refuse("shop", "write", "no paper")
    order = environment.submit(Purchase(amount=5))
    assert order.steps == {
        "pay": "Completed",
        "points": "Skipped",
        "ship": "Completed",
        "mail": "Failed",
    }
    assert any(
        "points: no such member; the order continues without points" in h for h in order.history
    )
    with is_refused(Code.PIVOT_PASSED, steps=["ship"]):
        environment.act(order, "cancel")
    environment.heal()
    environment.act(order, "resubmit")
    assert order.state == "Processed"
    assert environment.effects("shop") == ["charge", "send", "write"]
    [points] = [
        order_step
        for order_step in environment.inspect(order.id).steps
        if order_step.name == "points"
    ]
    assert (points.optional, points.pivot, points.reason) == (True, False, "no such member")
    shown = order_text(environment.inspect(order.id).model_dump(mode="json", by_alias=True))
    assert "ship (point of no return)" in shown
    assert "no such member" in shown


def test_an_operator_may_skip_what_later_steps_can_do_without():
    """Their function takes None then."""
    environment = WorkflowTestEnvironment(purchases(points_rule=OnFailure.ERROR))
    environment.refuse("shop", "reward")
    order = environment.submit(Purchase(amount=5))
    assert order.outcome == "failed"
    environment.act(order, "skip", step="points")
    assert order.state == "Processed"


def test_a_sample_order_does_not_wait_for_a_step_that_it_goes_on_without():
    """Whoever tries out the app sees it stop at others only."""
    made = purchases(sample=Purchase(amount=5))
    sample = sample_order(made, made.agents, ["shop"])
    assert {step.name: step.waits for step in sample.steps} == {
        "pay": True,
        "points": False,
        "ship": True,
        "mail": True,
    }


def test_a_function_that_allows_for_no_none_gets_the_defaults_of_an_answer_that_is_missing():
    """The order went on without it, or the step was skipped."""
    pay = CLAIMS.workflows.latest("claim").definition("pay")
    order = orders.new(payload=CLAIMS.sample.payload).submitted
    assert pay.request(order, {})["approval"] is None


@pytest.mark.proves("SCH-13", "UND-6")
@pytest.mark.parametrize(
    ("how", "fault"),
    [
        (
            {"mail_takes": Member},
            Fault(FaultCode.RESULT_MAY_BE_MISSING, step="points"),
        ),
        ({"mail_rule": UNDO}, Fault(FaultCode.UNDO_AFTER_PIVOT, step="ship")),
        (
            {"mail_takes": Purchase | None},
            Fault(
                FaultCode.PARAMETER_TYPE,
                "parameter points",
                step="points",
                expected="Member",
                declared=str(Purchase | None),
            ),
        ),
    ],
)
def test_what_a_workflow_cannot_mean_is_named_with_its_place(how, fault):
    """When the app starts."""
    with pytest.raises(DeclarationError) as raised:
        purchases(**how)
    place = "test_optional_steps_and_pivots.py:N: purchase version 1: step mail"
    assert fault.within(place) in without_lines(raised.value.faults)


def test_the_drawing_says_both():
    """For who reads the workflow."""
    drawn = Workflow("purchase", Purchase)

    @drawn.step(shop.send, on_failure=CONTINUE, pivot=True)
    def ship(purchase: Purchase) -> Purchase:
        return purchase

    assert "<br/>point of no return<br/>on failure: continue without it" in drawn.mermaid()
