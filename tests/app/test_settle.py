"""An operator settles a step in doubt: it was done, or it was not (OPR-12)."""

import json
from datetime import timedelta
from functools import partial

import azure.functions as func
import pytest

from engine.decisions.actions.action import OperatorCommand
from engine.decisions.actions.settle import SettleArguments
from engine.decisions.operator_actions import BY_NAME, possible, possible_at
from engine.decisions.results import kept_answer
from engine.declarations.workflow import WorkflowDefinition, Workflows
from engine.domain.effects import Done, NotDone
from engine.domain.errors import InvalidError, RefusedError
from engine.domain.orders import InError, Pending
from engine.domain.states import Completed, Failed, Running, Waiting
from engine.domain.statuses import Outcome
from engine.storage.outbox import notices_of
from operations.api.requests import BulkRequest, OperatorRequest, Where
from samples.claims_with_approvals.business import GROWN
from testkit import WorkflowTestEnvironment
from tests.support.acting import act
from tests.support.apps import functions
from tests.support.builders import NOW, orders, seconds, steps
from tests.support.judging import Case, step

STOCK = step("stock")
SHIP = step("ship", "stock", pivot=True, compensation=None)
BILL = step("bill", "ship", uses=("ship",))
UNTIL = NOW + timedelta(hours=1)


GRACE = OperatorRequest(operator="grace", note="asked the carrier")


def command(was_done, **more):
    return OperatorCommand(
        operator="grace", note=GRACE.note, arguments=SettleArguments(was_done=was_done, **more)
    )


def in_doubt(*steps):
    """An order whose pivot was refused after a call without an answer."""
    case = Case(*(steps or (STOCK, SHIP, BILL))).claim().done("stock")
    return case.refused("ship", "closed", in_doubt=True)


def settle(order, command, now=NOW):
    return BY_NAME["settle"].act(order, command, now)


def checked(command, workflows):
    return BY_NAME["settle"].checked(in_doubt().order, command, partial(kept_answer, workflows))


def states(order):
    return {order_step.name: str(order_step.pattern_state) for order_step in order.steps}


@pytest.mark.proves("OPR-12", "UND-6")
def test_only_settling_it_leads_out_of_a_doubt_about_the_point_of_no_return():
    """Skip is refused because of the step that needs it, and cancel because of the pivot (engine 5)."""
    case = in_doubt()
    assert possible(case.order, case.now) == ["resubmit", "settle"]
    assert [possible_at(case.order, order_step, case.now) for order_step in case.order.steps] == [
        [],
        ["settle"],
        [],
    ]


@pytest.mark.proves("OPR-12")
def test_a_step_that_was_done_is_completed_with_its_answer():
    """The order goes on, and the step after it can use the answer."""
    case = in_doubt()
    change = settle(case.order, command(True, answer={"amount": "9"}), case.now)
    done = change.after.step("ship")
    assert done.state == Completed()
    assert done.effect == Done(key=done.key, result={"amount": "9"})
    assert (change.after.state, change.after.cause) == (Pending(), None)
    assert (change.entry.event, change.entry.actor) == ("settled", "operator/grace")
    settled = change.entry.events[0]
    assert (settled.was_done, settled.note) == (True, GRACE.note)
    case.took(change).claim().done("bill")
    assert case.ended == ("Processed", None)


@pytest.mark.proves("OPR-12", "UND-6")
def test_after_a_step_that_was_not_done_the_order_can_be_cancelled():
    """It stays in Error until then; what came before the pivot is undone."""
    case = in_doubt()
    change = settle(case.order, command(False), case.now)
    assert states(change.after) == states(case.order)
    assert change.after.state == InError(Outcome.FAILED)
    assert isinstance(change.after.step("ship").effect, NotDone)
    assert (change.entry.event, change.entry.events[0].was_done) == ("step-settled", False)
    assert possible(change.after, case.now) == ["resubmit", "cancel"]
    case.took(change).took(act("cancel", change.after, GRACE, case.now)).claim()
    assert case.states == {"stock": "Undoing", "ship": "Failed", "bill": "NotStarted"}


@pytest.mark.proves("OPR-12")
def test_a_step_that_was_not_done_is_resubmitted_with_the_same_key():
    """A late call and the next attempt are one to the service (AGT-3)."""
    case = in_doubt()
    case.took(settle(case.order, command(False), case.now))
    again = case.took(act("resubmit", case.order, GRACE, case.now)).claim().order.step("ship")
    assert isinstance(again.state, Running)
    assert (again.counts.attempts, again.key.generation) == (2, 0)


@pytest.mark.proves("OPR-12", "UND-2", "AGT-11")
@pytest.mark.parametrize("accepted", [False, True], ids=["a late call", "what it accepted"])
def test_not_done_is_refused_while_a_call_may_still_take_effect(accepted):
    """Unless the operator confirms that; the history says so."""
    order = in_doubt().order
    ship = order.step("ship")
    if accepted:
        ship = steps.accepted_by_service(ship, ask_again_at=NOW, finish_by=UNTIL)
    else:
        ship = steps.with_key(ship, effects_final_at=UNTIL)
    order = orders.with_steps(order, steps.failed(ship))
    with pytest.raises(RefusedError):
        settle(order, command(False), UNTIL - seconds(1))
    early = settle(order, command(False, confirm_late_effect=True), UNTIL - seconds(1))
    in_time = settle(order, command(False, confirm_late_effect=True), UNTIL)
    assert [change.entry.events[0].late_effect_possible for change in (early, in_time)] == [
        True,
        False,
    ]
    assert isinstance(settle(order, command(False), UNTIL).after.step("ship").effect, NotDone)
    assert settle(order, command(True, answer={}), NOW).after.step("ship").state == Completed()


@pytest.mark.proves("OPR-12")
def test_of_several_steps_in_doubt_one_is_named_and_the_order_waits_for_the_others():
    """Also of one that has not failed, which keeps its state."""
    order = in_doubt().order
    order = orders.with_steps(order, steps.in_doubt(order.step("bill")))
    with pytest.raises(RefusedError):
        settle(order, command(False))
    with pytest.raises(RefusedError):
        settle(order, command(False, step="stock"))
    change = settle(order, command(False, step="bill"))
    assert (change.entry.event, change.after.step("bill").state) == ("step-settled", Waiting())
    done = settle(order, command(True, step="bill", answer={}))
    assert (done.entry.event, done.after.state) == ("step-settled", InError(Outcome.FAILED))
    assert states(done.after)["bill"] == "Completed"


@pytest.mark.proves("OPR-12", "UND-6")
def test_a_step_that_was_skipped_as_done_has_failed_if_it_was_not():
    """It would count as done for ever, and an order past such a pivot could not be cancelled."""
    case = in_doubt(STOCK, SHIP, step("bill", "ship"))
    case.took(act("skip", case.order, GRACE, case.now)).claim().refused("bill")
    assert case.states == {"stock": "Completed", "ship": "Skipped", "bill": "Failed"}
    assert "cancel" not in possible(case.order, case.now)
    change = settle(case.order, command(False), case.now)
    assert isinstance(change.after.step("ship").state, Failed)
    assert "cancel" in possible(change.after, case.now)
    again = act("resubmit", change.after, GRACE, case.now).after
    assert (states(again)["ship"], states(again)["bill"]) == ("NotStarted", "NotStarted")
    done = settle(case.order, command(True, answer={}), case.now)
    assert states(done.after)["ship"] == "Completed"


@pytest.mark.proves("OPR-12", "AGT-12")
def test_a_step_that_was_done_keeps_until_when_its_key_is_known():
    """Its undo has the same key; after that time the service cannot tell what to undo (engine 4)."""
    order = in_doubt().order
    order = orders.with_steps(order, steps.with_key(order.step("ship"), known_until=UNTIL))
    done = settle(order, command(True, answer={})).after.step("ship")
    assert done.key.known_until == UNTIL
    assert settle(order, command(False)).after.step("ship").key.known_until is None


@pytest.mark.proves("OPR-12")
def test_it_is_for_an_order_in_error_on_its_way_forward():
    """An undo that failed is skipped, and what runs may still answer."""
    case = Case(STOCK, step("gift", "stock")).claim()
    assert "settle" not in possible(case.expire().order, case.now)
    case.claim().done("stock").refused("gift", in_doubt=True)
    assert "settle" in possible(case.order, case.now)
    case.took(act("cancel", case.order, GRACE, case.now)).claim().refused("gift", in_doubt=True)
    assert case.ended == ("Error", "undo-incomplete")
    with pytest.raises(RefusedError):
        settle(case.order, command(False), case.now)


@pytest.mark.proves("OPR-12")
def test_an_order_without_a_doubt_is_not_settled():
    """A refusal is an answer."""
    case = Case(STOCK, SHIP).claim().done("stock").refused("ship")
    with pytest.raises(RefusedError):
        settle(case.order, command(False), case.now)


def test_an_answer_is_not_checked_without_the_steps_definition():
    """A workflow that this app does not have cannot say what the step answers."""
    newer = Workflows(WorkflowDefinition(name="w", version=2, steps=(STOCK,)))
    with pytest.raises(RefusedError):
        checked(command(True, answer={}), newer)


@pytest.mark.proves("OPR-12")
def test_an_answer_is_not_checked_for_a_step_that_is_not_in_doubt():
    """Although another one is."""
    known = Workflows(WorkflowDefinition(name="w", version=1, steps=(STOCK, SHIP, BILL)))
    with pytest.raises(RefusedError, match="ship"):  # the step that can be settled
        checked(command(True, step="stock", answer={}), known)


# In the app


def paid_in_doubt():
    """An order of the grown business whose payment was refused after a call without an answer."""
    environment = WorkflowTestEnvironment(GROWN)
    environment.down("bank", "pay")
    order = environment.submit(GROWN.sample.payload)
    environment.answer(order, "photographs", {"urls": ["https://x/1.jpg"]})
    environment.advance(seconds=1)
    environment.heal("bank", "pay")
    environment.refuse("bank", "pay", "account closed")
    environment.advance(minutes=10)
    assert (order.state, order.outcome) == ("Error", "failed")
    environment.heal("bank", "pay")
    return environment, order


@pytest.mark.proves("OPR-12")
@pytest.mark.parametrize(
    ("outcome", "field"),
    [
        ({}, "wasDone"),
        ({"was_done": False, "answer": {}}, "answer"),
        ({"was_done": True, "confirm_late_effect": True, "answer": {}}, "confirmLateEffect"),
        ({"was_done": True, "answer": {"reference": 5}}, "answer.reference"),
    ],
)
def test_an_outcome_is_checked_and_every_fault_named(outcome, field):
    """By the step's answer model, as if its service had answered; nothing is changed."""
    environment, order = paid_in_doubt()
    with pytest.raises(InvalidError) as raised:
        environment.act(order, "settle", **outcome)
    assert [str(fault).partition(":")[0] for fault in raised.value.faults] == [field]
    assert order.steps["pay"] == "Failed"


@pytest.mark.proves("OPR-12")
def test_an_order_is_settled_in_the_app_and_goes_on():
    """With the answer of the payment, which the steps after it use (engine 5)."""
    environment, order = paid_in_doubt()
    assert environment.inspect(order.id).actions == ["resubmit", "settle"]
    environment.act(order, "settle", was_done=True, answer={"reference": "P-1", "more": 1})
    (pay,) = (
        order_step for order_step in environment.inspect(order.id).steps if order_step.name == "pay"
    )
    assert pay.result == {"reference": "P-1"}
    environment.advance(minutes=1)
    assert order.state == "Processed"
    assert environment.effects("bank", order).count("pay") == 0


@pytest.mark.proves("OPR-12")
def test_an_order_is_settled_as_not_done_and_taken_back():
    """Here the payment had no answer, and was not made (engine 5)."""
    environment, order = paid_in_doubt()
    with pytest.raises(RefusedError):
        environment.act(order, "cancel")
    environment.act(order, "settle", "pay", was_done=False)
    environment.act(order, "cancel")
    environment.advance(minutes=10)
    assert order.outcome == "undone"


@pytest.mark.proves("OPR-12")
def test_no_other_action_takes_an_outcome():
    """It would have no meaning there."""
    environment, order = paid_in_doubt()
    with pytest.raises(InvalidError):
        environment.act(order, "resubmit", was_done=True)


PAY = Where(step="pay")


WRONG_BODIES = {
    "no outcome": ({}, 400),
    "a word for it": ({"wasDone": "yes"}, 400),
    "another spelling": ({"was_done": True}, 400),
    "no object": ({"wasDone": True, "answer": ["P-1"]}, 400),
    "not the step's answer": ({"wasDone": True, "answer": {"reference": 5}}, 400),
    "an answer of nothing done": ({"wasDone": False, "answer": {}}, 400),
    "a word to confirm": ({"wasDone": False, "confirmLateEffect": "true"}, 400),
    "a step without a doubt": ({"wasDone": True, "step": "assess"}, 409),
}


@pytest.mark.proves("OPR-12")
def test_over_http_a_wrong_body_changes_nothing_and_a_right_one_settles_once():
    """The second of two operators is told that nothing is in doubt any more."""
    environment, order = paid_in_doubt()
    (found,) = (
        function
        for function in functions(environment._world).get_functions()
        if function.get_function_name() == "operator_settle"
    )

    def post(body):
        request = func.HttpRequest(
            method="POST",
            url="http://x/api/operator",
            headers={},
            route_params={"orderId": order.id},
            body=json.dumps({"operator": "grace", "note": "asked", **body}).encode(),
        )
        return environment._world.run(found.get_user_function()(request)).status_code

    sent = {label: post(body) for label, (body, _) in WRONG_BODIES.items()}
    assert sent == {label: status for label, (_, status) in WRONG_BODIES.items()}
    assert "settle" in environment.inspect(order.id).actions
    right = {"wasDone": True, "answer": {"reference": "P-1"}}
    assert [post(right), post(right)] == [202, 409]
    assert order.steps["pay"] == "Completed"


@pytest.mark.proves("OPR-12")
def test_many_orders_are_settled_at_once_after_a_dry_run():
    """What is wrong with the answer is said of each; those that were not done still wait."""
    environment, order = paid_in_doubt()
    bulk = environment._world.operations.services.bulk

    def run(where=PAY, **more):
        request = BulkRequest(action="settle", where=where, **GRACE.model_dump(), **more)
        return environment._world.run(bulk.run(request))

    environment.advance(minutes=1)
    with pytest.raises(InvalidError):  # what was found out concerns one step
        run(arguments={"wasDone": False}, where=Where(workflow="claim"))
    for wrong in (
        {"step": "pay", "wasDone": False},
        {"wasDone": False, "until": 1},
        {"answer": {}},
    ):
        with pytest.raises(InvalidError) as refused:
            run(arguments=wrong)
        assert all(fault.place.startswith("arguments.") for fault in refused.value.faults)
    dry = run(arguments={"wasDone": False})
    assert ([match.order_id for match in dry.matching], dry.done) == ([order.id], [])
    with pytest.raises(InvalidError):
        run(dry_run=False, until=dry.until)
    act = partial(run, dry_run=False, until=dry.until)
    wrong = act(arguments={"wasDone": True, "answer": {"reference": 5}})
    assert [refusal.order_id for refusal in wrong.refused] == [order.id]
    page = act(arguments={"wasDone": False})
    assert (page.done, page.still_waiting, page.refused) == ([order.id], [order.id], [])
    assert "cancel" in environment.inspect(order.id).actions


@pytest.mark.proves("OPR-12", "ALR-2")
def test_the_sender_gets_a_notice_of_a_step_that_was_done_and_of_no_other():
    """As after an answer of its service."""
    case = in_doubt()
    order = orders.having(case.order, reply_to="shop-replies")

    def events(was_done):
        change = settle(order, command(was_done), case.now)
        bodies = (notice.body for notice in notices_of(order, change.after, change.entry))
        return [(body["event"], body["step"]) for body in map(json.loads, bodies)]

    assert (events(was_done=True), events(was_done=False)) == ([("step-completed", "ship")], [])
