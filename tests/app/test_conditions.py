"""A step is needed or not: that is judged once, when its turn comes."""

from dataclasses import replace
from datetime import date

import pytest

from engine.decisions.transitions import NotClaimed
from engine.declarations.faults import Fault, FaultCode
from engine.declarations.workflow import DeclarationError, WorkflowDefinition, Workflows
from engine.domain.causes import Cause, Code
from engine.domain.states import ConditionPending, Skipped, SkipReason, Waiting
from engine.domain.submitted_order import OnFailure
from engine.words.causes import words_of
from engine.workflow import UNDO, Agent, Model, Operation, Workflow, application
from testkit import WorkflowTestEnvironment
from tests.support.acting import cancel, resubmit
from tests.support.faults import without_lines
from tests.support.judging import BY_GRACE, NO_CAPACITY, Case, step

ASSESS = step("assess")


def above_limit(order, results):
    return results["assess"]["amount"] > 1000


def broken(order, results):
    return results["nothing"]


def never(order, results):
    return False


APPROVE = step("approve", "assess", uses=("assess",), condition=above_limit)
CLAIM = (ASSESS, APPROVE, step("pay", "approve"))


@pytest.mark.proves("SCH-14")
@pytest.mark.parametrize(("amount", "needed"), [(10, False), (5000, True)])
def test_a_step_is_judged_by_what_was_answered_before_it(amount, needed):
    """One that is not needed is skipped in the same write; the step after it begins."""
    case = Case(*CLAIM).claim().done("assess", amount=amount)
    if needed:
        assert case.states == {"assess": "Completed", "approve": "Running", "pay": "NotStarted"}
        return
    assert case.states == {"assess": "Completed", "approve": "Skipped", "pay": "Running"}
    assert case.last_entry[0] == "step-completed"
    unmet = Cause(Code.CONDITION_NOT_MET, {"condition": "above_limit"})
    assert case.order.step("approve").state == Skipped(SkipReason.CONDITION, unmet)
    assert "above_limit" in case.explained()


@pytest.mark.proves("SCH-14", "SCH-5")
def test_an_order_whose_last_step_is_not_needed_ends_with_the_one_before():
    """At once, and without anybody's room."""
    case = (
        Case(ASSESS, replace(APPROVE, condition=never))
        .claim()
        .done("assess", capacity=NO_CAPACITY, amount=1)
    )
    assert case.ended == ("Processed", None)


@pytest.mark.proves("SCH-14")
def test_nothing_is_skipped_because_a_step_before_it_was():
    """A step that joins two ways begins after the one that was gone."""
    one = replace(APPROVE, name="one", condition=never)
    case = Case(ASSESS, one, APPROVE, step("pay", "one", "approve"))
    case.claim().done("assess", amount=5000).done("approve", amount=0)
    assert case.states["one"] == "Skipped"
    assert case.states["pay"] == "Running"


@pytest.mark.proves("SCH-14")
def test_an_order_of_which_nothing_is_needed_ends_by_its_claim():
    """With the name of its condition in the history."""
    case = Case(replace(ASSESS, condition=never), step("pay", "assess", condition=never)).claim()
    assert case.ended == ("Processed", None)
    event, detail = case.last_entry
    assert (event, detail.count(never.__name__)) == ("processed", 2)


class Opinion:
    """A predicate that says something else each time, and counts how often it is asked."""

    __name__ = "opinion"

    def __init__(self, *answers):
        self.answers, self.evaluations = list(answers), 0

    def __call__(self, order, results):
        self.evaluations += 1
        return self.answers[min(self.evaluations, len(self.answers)) - 1]


@pytest.mark.proves("SCH-14")
def test_a_step_that_is_needed_is_not_judged_again_while_it_waits_for_capacity():
    """What was said when its turn came is recorded."""
    opinion = Opinion(True, False)
    case = Case(ASSESS, replace(APPROVE, condition=opinion)).claim()
    assert case.order.step("approve").state == ConditionPending()
    case.done("assess", capacity=NO_CAPACITY, amount=1)
    assert case.order.step("approve").state == Waiting()
    case.claim()
    assert (case.states["approve"], opinion.evaluations) == ("Running", 1)


@pytest.mark.proves("SCH-14")
@pytest.mark.parametrize("what", ["time-out", "refusal", "request"])
def test_a_step_that_is_needed_is_not_judged_again_for_another_try(what):
    """Nor when an operator resubmits it."""
    opinion = Opinion(True, False)
    makes = request_that_fails_once() if what == "request" else (lambda order, results: {})
    case = Case(ASSESS, replace(APPROVE, condition=opinion, request=makes)).claim()
    case.done("assess", amount=1)
    if what == "time-out":
        case.expire()
    else:
        if what == "refusal":
            case.refused("approve")
        assert case.ended == ("Error", "failed")
        case.took(resubmit(case.order, BY_GRACE, case.now))
    case.claim(case.order.derived.not_before)
    assert (case.states["approve"], opinion.evaluations) == ("Running", 1)


def request_that_fails_once():
    calls = iter([KeyError("amount"), None])

    def request(order, results):
        if fault := next(calls):
            raise fault
        return {}

    return request


@pytest.mark.proves("SCH-14")
def test_a_claim_that_starts_nothing_judges_for_nobody():
    """It writes nothing, so what the predicate said is said again at the next claim."""
    case = Case(replace(ASSESS, condition=Opinion(True)))
    assert isinstance(case.scheduler.claim(case.order, case.now, NO_CAPACITY), NotClaimed)


@pytest.mark.proves("SCH-14")
@pytest.mark.parametrize("rule", list(OnFailure))
def test_a_predicate_that_fails_has_failed_its_step(rule):
    """The step's rule says what follows, and the reason names the function."""
    case = Case(ASSESS, replace(APPROVE, condition=broken, on_failure=rule, max_cooldowns=0))
    case.claim().done("assess", amount=1)
    failed = {"function": "condition broken", "error": "KeyError 'nothing'"}
    cause = Cause(
        Code.CONDITION_FAILED, {"workflow": "w", "version": 1, "step": "approve"} | failed
    )
    assert case.order.step("approve").cause == cause
    expected = {
        OnFailure.UNDO: ("Pending", None),
        OnFailure.CONTINUE: ("Processed", None),
    }
    assert case.ended == expected.get(rule, ("Error", "failed"))
    assert words_of(cause) in case.last_entry[1]


def knows_only_others(order, results):
    return {}[order.payload["customer"]["name"]]


@pytest.mark.proves("SCH-14", "SCH-8")
def test_a_predicate_that_fails_tells_nobody_who_the_customer_is():
    """Neither the reason nor the history has what the payload says of a person."""
    case = (
        Case(ASSESS, replace(APPROVE, condition=knows_only_others)).claim().done("assess", amount=1)
    )
    assert case.order.step("approve").cause.facts["error"] == "KeyError 'erased'"
    assert "Ada" not in case.last_entry[1]


@pytest.mark.proves("SCH-14")
def test_a_predicate_that_has_failed_is_evaluated_again_after_a_resubmit():
    """It has said nothing yet."""
    case = Case(ASSESS, replace(APPROVE, condition=broken)).claim().done("assess", amount=1)
    mended = WorkflowDefinition(name="w", version=1, steps=(ASSESS, APPROVE))
    case.scheduler = case.scheduler_on(mended)
    case.took(resubmit(case.order, BY_GRACE, case.now)).claim()
    assert case.ended == ("Processed", None)
    assert case.states["approve"] == "Skipped"


@pytest.mark.proves("SCH-14")
@pytest.mark.parametrize(("answer", "name"), [(None, "NoneType"), (1, "int")])
def test_a_predicate_answers_yes_or_no(answer, name):
    """Anything else is a fault: `None` would skip what a forgotten `return` needs."""
    case = (
        Case(ASSESS, replace(APPROVE, condition=Opinion(answer))).claim().done("assess", amount=1)
    )
    assert f"condition opinion failed: TypeError it returned {name}, not bool" in case.last_entry[1]


@pytest.mark.proves("SCH-14", "SCH-12")
def test_nothing_is_judged_once_a_step_has_failed_or_the_order_goes_back():
    """Nor what has to be undone."""
    opinion = Opinion(True)
    failing = Case(ASSESS, step("beside"), replace(APPROVE, condition=opinion)).claim()
    failing.refused("beside").done("assess", amount=1)
    assert failing.ended == ("Error", "failed")
    back = Case(ASSESS, replace(APPROVE, condition=opinion)).claim()
    back.took(cancel(back.order, BY_GRACE, back.now)).done("assess", amount=1).done("assess")
    assert back.ended == ("Error", "undone")
    assert opinion.evaluations == 0


@pytest.mark.proves("SCH-14", "UND-2")
def test_what_was_not_needed_has_nothing_to_undo():
    """And was not done, though it may be a pivot."""
    approve = replace(APPROVE, pivot=True)
    case = Case(ASSESS, approve, step("pay", "approve")).claim().done("assess", amount=1)
    assert case.order.passed_pivots() == ()
    case.took(cancel(case.order, BY_GRACE, case.now)).refused("pay")
    assert case.states == {"assess": "Undoing", "approve": "Skipped", "pay": "Undoing"}


@pytest.mark.proves("SCH-14")
def test_an_order_that_was_recorded_before_the_step_had_a_predicate_is_not_judged():
    """Its workflow was changed without a new version."""
    plain = Case(ASSESS, replace(APPROVE, condition=None))
    plain.scheduler = plain.scheduler_on(
        WorkflowDefinition(name="w", version=1, steps=(ASSESS, APPROVE))
    )
    plain.claim().done("assess", amount=1)
    assert plain.states["approve"] == "Running"


@pytest.mark.proves("SCH-14")
def test_the_name_of_a_predicate_is_part_of_what_the_workflow_is():
    """Its code may be mended for orders in flight."""
    other = step("approve", "assess", uses=("assess",), condition=Opinion(True))
    assert APPROVE.fingerprint == replace(APPROVE, condition=replaced(above_limit)).fingerprint
    assert APPROVE.fingerprint != other.fingerprint
    assert APPROVE.fingerprint != replace(APPROVE, condition=None).fingerprint


class Long(Opinion):
    """One whose name no list can show."""

    __name__ = 81 * "x"


def replaced(function):
    def mended(order, results):
        return function(order, results)

    mended.__name__ = function.__name__
    return mended


@pytest.mark.proves("SCH-14")
@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({}, Fault(FaultCode.RESULT_MAY_BE_MISSING, "w version 1: step pay", step="approve")),
        ({"may_lack": ("approve",)}, None),
        (
            {"may_lack": ("approve",), "condition": Long()},
            Fault(FaultCode.FUNCTION_WITHOUT_NAME, "w version 1: step pay: condition", limit=80),
        ),
        (
            {"may_lack": ("approve",), "condition": lambda order, results: True},
            Fault(FaultCode.FUNCTION_WITHOUT_NAME, "w version 1: step pay: condition", limit=80),
        ),
    ],
)
def test_a_predicate_that_cannot_be_used_is_named_at_the_start(changed, fault):
    """A predicate without a name, and an answer that may be missing."""
    pay = replace(step("pay", "approve", uses=("approve",)), **changed)
    workflows = Workflows(WorkflowDefinition(name="w", version=1, steps=(ASSESS, APPROVE, pay)))
    faults = list(workflows.faults(("payment",)))
    assert faults == ([fault] if fault else [])


# As an author writes it


class Claim(Model):
    """What is claimed."""

    amount: int


class Assessed(Model):
    """What the damage is worth."""

    worth: int | None = None


class Approval(Model):
    """Who approved it."""

    by: str | None = None


class Payout(Model):
    """What is paid."""

    amount: int
    approved: bool


class Office(Agent):
    """The one service of this business."""

    assess = Operation(Claim, Assessed)
    approve = Operation(Claim, Approval)
    withdraw = Operation(Claim)
    pay = Operation(Payout)


office = Office("office")


def over(claim: Claim, assess: Assessed) -> bool:
    return claim.amount > 1000 and assess.worth is None


def claims(condition=over):
    flow = Workflow("claim", Claim)

    @flow.step(office.assess)
    def assess(claim: Claim) -> Claim:
        return claim

    @flow.step(office.approve, undo=office.withdraw, condition=condition, on_failure=UNDO)
    def approve(claim: Claim) -> Claim:
        return claim

    @flow.step(office.pay)
    def pay(claim: Claim, approve: Approval | None) -> Payout:
        return Payout(amount=claim.amount, approved=approve is not None)

    return application(flow, agents=[office])


@pytest.mark.proves("SCH-14")
@pytest.mark.parametrize(
    ("amount", "effects"), [(10, ["assess", "pay"]), (5000, ["assess", "approve", "pay"])]
)
def test_a_claim_is_approved_only_above_the_limit(amount, effects):
    """It is paid either way, and says whether it was approved."""
    environment = WorkflowTestEnvironment(claims())
    order = environment.submit(Claim(amount=amount))
    assert (order.state, environment.effects("office")) == ("Processed", effects)
    assert (order.steps["approve"] == "Skipped") == (amount == 10)


def test_what_a_predicate_takes_comes_before_the_step():
    """As if the step's own function took it."""
    _, approve, pay = claims().workflows.latest("claim").steps
    assert (approve.uses, approve.after, approve.may_lack) == (("assess",), ("assess",), ())
    assert (pay.uses, pay.may_lack) == (("approve",), ("approve",))


def later(claim: Claim, pay: Payout) -> bool:
    return True


def not_a_bool(claim: Claim) -> date:
    return date(2026, 1, 31)


async def waits(claim: Claim) -> bool:
    return True


@pytest.mark.proves("SCH-14")
@pytest.mark.parametrize(
    ("condition", "fault"),
    [
        (later, Fault(FaultCode.PARAMETER_UNKNOWN, "condition: parameter pay", payload="Claim")),
        (not_a_bool, Fault(FaultCode.RETURN_TYPE, "condition", expected="bool", returned="date")),
        (waits, Fault(FaultCode.NOT_PLAIN_FUNCTION, "condition")),
        (lambda: True, Fault(FaultCode.FUNCTION_WITHOUT_NAME, "condition", limit=80)),
    ],
)
def test_what_a_predicate_cannot_be_is_named_with_its_place(condition, fault):
    """When the app starts."""
    with pytest.raises(DeclarationError) as raised:
        claims(condition)
    place = "test_conditions.py:N: claim version 1: step approve"
    assert fault.within(place) in without_lines(raised.value.faults)


def test_the_drawing_names_the_predicate():
    """For who reads the workflow."""
    drawn = Workflow("claim", Claim)

    def big(claim: Claim) -> bool:
        return claim.amount > 1000

    @drawn.step(office.assess, condition=big)
    def assess(claim: Claim) -> Claim:
        return claim

    assert "<br/>condition: big" in drawn.mermaid()
