"""A workflow makes each request: what becomes of an order whose request cannot be made."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from engine.decisions.requests import without
from engine.decisions.transitions import HistoryEntry, Note, Transition
from engine.declarations.workflow import StepDefinition, WorkflowDefinition, Workflows
from engine.domain.causes import Cause, Code
from engine.domain.effects import InDoubt, NothingSent
from engine.domain.messages import OrderReady
from engine.domain.orders import InError, Pending, Processing
from engine.domain.states import (
    Completed,
    Failed,
    Running,
    UndoFailed,
    Undoing,
    UndoPending,
    Waiting,
)
from engine.domain.statuses import Direction, Outcome, ProcessState
from engine.domain.submitted_order import OnFailure
from engine.words.causes import words_of
from engine.words.history import in_words
from operations.api.requests import OperatorRequest
from tests.support import acting as operator_rules
from tests.support.acting import alerts_of
from tests.support.builders import (
    NOW,
    ORDER_ID,
    answer,
    orders,
    scheduler,
    seconds,
    some,
    steps,
    supervisor,
)
from tests.support.memory_world import World
from tests.support.outbox import pending_events

GRACE = OperatorRequest(operator="grace", note="not needed any more")


def nothing(order, results):
    return {}


def broken(order, results):
    return {"number": {}["claimNumber"]}


def request_failed(error="KeyError 'claimNumber'"):
    """Why `pay` has failed in version 1 of `claim`."""
    facts = {"workflow": "claim", "version": 1, "step": "pay", "error": error}
    return Cause(Code.REQUEST_FAILED, facts)


def kinds(order):
    return [type(order_step.state) for order_step in order.steps]


def step(name, *after, **more):
    rules = {"capability": "payment", "operation": "do", "compensation": "undo", "request": nothing}
    return StepDefinition(name=name, after=after, **rules | more)


def claim_of(*definitions):
    """A new order of the workflow `claim`, and the scheduler that knows it."""
    workflow = WorkflowDefinition(name="claim", version=1, steps=definitions)
    return orders.on(workflow), replace(scheduler, workflows=Workflows(workflow))


@pytest.mark.proves("SCH-8", "ALR-1")
def test_a_step_whose_request_cannot_be_made_has_failed_and_says_why():
    """It was never tried, so no failure is counted, and there is nothing to undo."""
    order, rules = claim_of(step("pay", request=broken))
    change = rules.claim(order, NOW)
    after, pay, why = change.after, change.after.step("pay"), request_failed()
    assert (after.state, after.cause) == (InError(Outcome.FAILED), why)
    assert (pay.state, pay.effect) == (Failed(why), NothingSent())
    assert (pay.counts.attempts, after.failures) == (0, 0)
    data = alerts_of(change)[0].data
    assert (data["step"], data["reason"]) == ("pay", why.as_json())
    assert in_words(change.entry.events) == f"pay: {words_of(why)}"


@pytest.mark.proves("SCH-8")
def test_of_every_step_whose_request_cannot_be_made_an_operator_reads():
    """Two begin in one claim: neither hides the other."""
    order, rules = claim_of(step("pay", request=broken), step("pack", request=broken))
    ended = rules.claim(order, NOW).after
    assert kinds(ended) == [Failed, Failed]


@pytest.mark.proves("UND-2")
def test_a_step_whose_request_cannot_be_made_again_stays_in_doubt():
    """The workflow was changed after an attempt without an answer, which may have been done; the rest since is over."""
    order, rules = claim_of(step("pay", request=broken))
    tried = steps.cooling_down(order.step("pay"), until=NOW)
    failed = rules.claim(orders.with_steps(order, tried), NOW).after.step("pay")
    assert failed.state == Failed(request_failed())
    assert isinstance(failed.effect, InDoubt)


@pytest.mark.proves("SCH-8", "UND-1")
def test_the_policy_of_the_step_decides_what_that_means():
    """The step before it is done, which the failure does not undo by itself."""
    for on_failure, expected, approved in (
        (OnFailure.ERROR, InError(Outcome.FAILED), Completed),
        (OnFailure.UNDO, Pending(), UndoPending),
    ):
        order, rules = claim_of(
            step("approve"), step("pay", "approve", request=broken, on_failure=on_failure)
        )
        change = rules.receive(rules.claim(order, NOW).after, answer("approve", result={}), NOW)
        assert change.after.state == expected
        assert kinds(change.after) == [approved, Failed]


@pytest.mark.proves("SCH-12")
def test_no_other_step_begins_beside_one_whose_request_cannot_be_made():
    """Neither what is ready at the same time; what runs already answers first."""
    order, rules = claim_of(
        step("approve"), step("runs"), step("pay", "approve", request=broken), step("x", "approve")
    )
    running = rules.claim(order, NOW).after
    change = rules.receive(running, answer("approve", result={}), NOW)
    assert change.messages == ()
    assert kinds(change.after) == [Completed, Running, Failed, Waiting]
    assert change.after.state == Processing("s1")
    assert "step pay: request failed" in in_words(change.entry.events)
    ended = rules.receive(change.after, answer("runs", result={}), NOW)
    assert ended.after.state == InError(Outcome.FAILED)


@pytest.mark.proves("UND-4", "UND-5")
@pytest.mark.parametrize("outcome", ["completed", "failed"])
def test_an_undo_whose_request_cannot_be_made_is_left_to_an_operator(outcome):
    """Nobody was asked to take the step back, so it may stand, also if it was refused."""
    order, rules = claim_of(step("pay"))
    more = {"result": {}} if outcome == "completed" else {"detail": "no"}
    change = rules.receive(rules.claim(order, NOW).after, answer("pay", outcome, **more), NOW)
    pay = change.after.step("pay")
    ended = orders.in_error(
        change.after, steps=[pay, steps.failed_before_start("other", reason="no")]
    )
    back = operator_rules.cancel(ended, GRACE, NOW).after
    rules = replace(
        rules,
        workflows=Workflows(
            WorkflowDefinition(name="claim", version=1, steps=(step("pay", request=broken),))
        ),
    )
    change = rules.claim(back, NOW)
    assert change.after.state == InError(Outcome.UNDO_INCOMPLETE)
    assert isinstance(change.after.step("pay").state, UndoFailed)
    assert alerts_of(change)[0].data["stillToBeUndone"] == ["pay"]
    assert change.after.cause == request_failed()


@pytest.mark.proves("UND-4")
@pytest.mark.parametrize(
    ("result", "state"),
    [({"reference": "R-1"}, Undoing), ({"reference": None}, UndoFailed), ({}, UndoFailed)],
)
def test_an_undo_without_what_it_needs_of_the_answer_is_left_to_an_operator(result, state):
    """`engine 29`: it was sent, and the service could not know what to take back."""
    order, rules = claim_of(
        step("pay", result_fields=("reference",), compensation_needs=("reference",))
    )
    change = rules.receive(rules.claim(order, NOW).after, answer("pay", result=result), NOW)
    pay = change.after.step("pay")
    ended = orders.in_error(
        change.after, steps=[pay, steps.failed_before_start("other", reason="no")]
    )
    change = rules.claim(operator_rules.cancel(ended, GRACE, NOW).after, NOW)
    assert isinstance(change.after.step("pay").state, state)
    if state is UndoFailed:
        cause = change.after.cause
        assert (cause.code, cause.facts["step"]) == (Code.REQUEST_FAILED, "pay")
        assert "result.reference" in cause.facts["error"]


@pytest.mark.proves("SCH-8")
def test_a_step_that_its_workflow_does_not_have_has_failed_and_says_so():
    """It was renamed without a new version; a reply cannot be understood any more."""
    order, rules = claim_of(step("approve"), step("pay", "approve"))
    running = rules.claim(order, NOW).after
    renamed = WorkflowDefinition(
        name="claim", version=1, steps=(step("accept"), step("pay", "accept"))
    )
    rules = replace(rules, workflows=Workflows(renamed))
    removed = {"workflow": "claim", "version": 1, "step": "approve"}
    why = Cause(Code.STEP_REMOVED, removed)
    note = rules.receive(running, answer("approve", result={}), NOW)
    assert isinstance(note, Note)
    assert in_words(note.entry.events) == words_of(why)
    assert rules.claim(order, NOW).after.cause == why
    expired = supervisor.recover(running, NOW + seconds(7)).after
    assert rules.claim(expired, NOW + seconds(7)).after.cause == why


def customer(order):
    return order.payload["customer"]


def about(value):
    return lambda order, results: {"x": value(order)}


@pytest.mark.proves("SCH-8")
@pytest.mark.parametrize(
    ("request_of", "text"),
    [
        (
            about(lambda order: int(customer(order)["name"])),
            "ValueError at test_requests.py, line ",
        ),
        (about(lambda order: {}[customer(order)["name"]]), "KeyError 'erased'"),
        (
            about(lambda order: {}[f"to {customer(order)['email']}\n" + 1000 * "x"]),
            "KeyError 'to erased" + "\\n",
        ),
        (
            about(lambda order: order.price),
            "AttributeError 'Order' object has no attribute 'price'",
        ),
        (about(lambda order: Decimal(1) / 0), "DivisionByZero ["),
        (about(lambda order: object()), "PydanticSerializationError at "),
        (about(lambda order: customer(order)["name"] * 100_000), "InvalidError message-too-long"),
        (
            lambda order, results: [customer(order)["name"]],
            "ValidationError content: Input should be a valid dictionary",
        ),
    ],
    ids=["value", "key", "long key", "attribute", "arithmetic", "no JSON", "too long", "a list"],
)
@pytest.mark.parametrize("direction", Direction)
def test_the_text_of_an_error_is_short_and_shows_nothing_personal(request_of, text, direction):
    """Only the kind and place of an error are told: its text may repeat what the order holds."""
    order, rules = claim_of(step("pay", request=request_of))
    if direction is Direction.UNDO:
        order = operator_rules.cancel(
            orders.with_steps(order, steps.not_done(order.step("pay"))), GRACE, NOW
        ).after
    cause = rules.claim(order, NOW).after.step("pay").cause
    assert cause == request_failed(cause.facts["error"])
    reason = words_of(cause)
    assert direction is Direction.UNDO or text in reason
    assert "ada" not in reason.lower().replace("adapters", "")
    assert len(reason) < 300
    assert reason.isprintable()


@pytest.mark.proves("SCH-3")
def test_a_change_names_the_steps_that_it_has_changed():
    """All of them when the order is new; one that stays as it was is not among them."""
    order, rules = claim_of(step("pay"), step("send", "pay"))
    change = rules.claim(order, NOW)
    assert [changed.name for changed in change.changed_steps()] == ["pay"]
    first = replace(change, before=None)
    assert [changed.name for changed in first.changed_steps()] == ["pay", "send"]


@pytest.mark.proves("SCH-8")
def test_the_line_that_is_named_is_the_one_that_raised():
    """Not the one that called it."""

    def number(text):
        return int(text)

    order, rules = claim_of(step("pay", request=lambda order, results: {"number": number("one")}))
    cause = rules.claim(order, NOW).after.step("pay").cause
    assert cause.facts["error"].endswith(f"line {number.__code__.co_firstlineno + 1}")


@pytest.mark.proves("SCH-8", "SCH-1")
async def test_an_order_of_which_a_request_cannot_be_made_holds_up_no_other():
    """Neither in the poll that finds both; and it is in Error at once, with an alert."""
    world, ids = World(), [ORDER_ID, f"{ORDER_ID[:-1]}X"]
    bad, rules = claim_of(step("pay", request=broken))
    rules = replace(rules, workflows=Workflows(*rules.workflows.all, *scheduler.workflows.all))
    for order, order_id in ((bad, ids[0]), (orders.new(), ids[1])):
        named = orders.having(order, order_id=order_id)
        entry = HistoryEntry(at=NOW, actor="t", events=some("submitted"))
        await world.store.commit(Transition(before=None, after=named, entry=entry))
    one = replace(world.scheduler, rules=rules)
    world.now += seconds(60)
    await one.poll()
    states = [(await world.store.load(order_id)).process_state for order_id in ids]
    assert states == [ProcessState.ERROR, ProcessState.PROCESSING]
    assert len(await pending_events(world.store, "b03")) == 1
    await one.on_order_ready(OrderReady(order_id=ids[0]))


def test_a_request_may_hold_what_json_can():
    """Times and exact numbers, as pydantic writes them."""
    moment = datetime(2026, 1, 31, tzinfo=UTC)
    order, rules = claim_of(
        step("pay", request=lambda order, results: {"at": moment, "amount": Decimal("28.00")})
    )
    (message,) = rules.claim(order, NOW).messages
    assert json.loads(message.body)["content"] == {"at": "2026-01-31T00:00:00Z", "amount": "28.00"}


def everything(order, results):
    return {"results": dict(results)}


@pytest.mark.proves("SCH-10", "OPR-4")
def test_a_request_is_made_from_the_answers_that_its_step_uses_and_no_others():
    """Who forgets to name one sees that at once, and a step that nobody uses can be skipped."""
    steps = (step(name, result_fields=("reference",)) for name in ("a", "b"))
    order, rules = claim_of(*steps, step("c", "a", "b", uses=("b",), request=everything))
    order = rules.claim(order, NOW).after
    for name in ("a", "b"):
        change = rules.receive(
            order, answer(name, result={"reference": f"{name}-1", "more": 1}), NOW
        )
        order = change.after
    (message,) = change.messages
    assert json.loads(message.body)["content"] == {"results": {"b": {"reference": "b-1"}}}


@pytest.mark.parametrize("name", ["Ada", "O'Neil", 'Ada "Byron"', "Ada\n"])
@pytest.mark.parametrize("beside", ["", " 'x'", ' "x"'])
def test_a_personal_value_is_found_in_either_kind_of_quotes(name, beside):
    """Python chooses them by what else it shows."""
    assert name.strip()[-3:] not in without([name], repr(f"{name} {beside}"))
