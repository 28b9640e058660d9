"""Workflow definitions are checked when the app starts, with every fault at once."""

from dataclasses import replace
from datetime import timedelta

import pytest

from engine.declarations.faults import Fault, FaultCode
from engine.declarations.workflow import (
    LONGEST_TIMEOUT,
    LONGEST_WAIT,
    MAX_STEPS,
    MAX_TITLE,
    MOST_TRIES,
    MOST_VERSION,
    DeclarationError,
    StepDefaults,
    StepDefinition,
    WorkflowDefinition,
    Workflows,
)
from engine.domain.causes import Cause, Code
from engine.domain.deadlines import WhenLate
from engine.domain.messages import OPERATION, STEP_NAME
from engine.domain.orders import InError
from engine.domain.statuses import Outcome
from engine.domain.submitted_order import MAX_KEPT, OnFailure
from engine.storage.orders import columns_of_record, of_transition
from engine.storage.tables import Delete, stored_form
from operations.api.requests import OperatorRequest
from shop.business import ORDER, SHOP
from tests.support.acting import cancel
from tests.support.builders import NOW, orders, scheduler, seconds, steps, supervisor

LONG_NAMES = tuple(f"s{number:02}-{'x' * 37}" for number in range(MAX_STEPS))

NEEDED = {"__call__": lambda *_: True}
"""A condition may be an object, whose name is that of its class."""

CAPABILITIES = ("payment", "inventory", "shipping")


def step(name, *after, **more):
    return StepDefinition(
        **{"name": name, "capability": "payment", "operation": "x", "request": None, "after": after}
        | more
    )


def flow(*steps):
    return WorkflowDefinition(name="w", version=1, steps=steps)


def test_the_shipped_workflows_are_right():
    """Those that the app comes with."""
    SHOP.workflows.check(CAPABILITIES)


def mismatch(field, value, pattern=STEP_NAME):
    return Fault(FaultCode.PATTERN_MISMATCH, field=field, value=value, pattern=pattern)


def bad_version(value):
    return Fault(FaultCode.OUT_OF_RANGE, field="version", value=value, least=1, most=MOST_VERSION)


def too_high(field, value, limit):
    return Fault(FaultCode.TOO_HIGH, field=field, value=value, limit=limit)


WRONG = {
    "empty": (flow(), Fault(FaultCode.NO_STEP)),
    "twice": (flow(step("a"), step("a")), Fault(FaultCode.DUPLICATE_STEP, step="a")),
    "unknown step": (
        flow(step("a", "b")),
        Fault(FaultCode.NOT_ABOVE, "step a", step="b"),
    ),
    "uses what may not be there": (
        flow(step("a"), step("b", uses=("a",))),
        Fault(FaultCode.RESULT_NOT_AFTER, "step b", step="a"),
    ),
    "itself": (flow(step("a", "a")), Fault(FaultCode.NOT_ABOVE, "step a", step="a")),
    "a circle": (
        flow(step("a"), step("b", "a", "d"), step("c", "b"), step("d", "c")),
        Fault(FaultCode.NOT_ABOVE, "step b", step="d"),
    ),
    "a name that no message can bear": (
        flow(step("reserve_stock")),
        mismatch("name", "reserve_stock").within("step reserve_stock"),
    ),
    "v0": (replace(flow(step("a")), version=0), bad_version(0)),
    "v2**31": (replace(flow(step("a")), version=2**31), bad_version(2**31)),
    "more steps than a column holds": (
        flow(*(step(f"s{number}") for number in range(MAX_STEPS + 1))),
        Fault(FaultCode.TOO_MANY_STEPS, steps=MAX_STEPS + 1, limit=MAX_STEPS),
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_definition_is_reported(what):
    """By the workflow, its version and the step."""
    workflow, fault = WRONG[what]
    with pytest.raises(DeclarationError) as error:
        Workflows(workflow).check(CAPABILITIES)
    assert fault.within(f"w version {workflow.version}") in error.value.faults


DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("properties", "fault"),
    [
        (
            {"capability": "postman"},
            Fault(FaultCode.CAPABILITY_NOT_OFFERED, capability="postman"),
        ),
        *(
            ({"capability": name}, mismatch("capability", name))
            for name in ("card|eu", "card/3ds", "3ds", "Card")
        ),
        (
            {"compensation": "y", "result_fields": ("q",), "compensation_needs": ("q", "r")},
            Fault(FaultCode.UNDO_NEEDS_NOT_KEPT, fields=("r",)),
        ),
        (
            {"result_fields": ("r",), "compensation_needs": ("r",)},
            Fault(FaultCode.UNDO_NEEDS_WITHOUT_UNDO),
        ),
        (
            {"compensation": "void/all"},
            mismatch("operation", "void/all", OPERATION.pattern),
        ),
        ({"threshold": 0}, Fault(FaultCode.NOT_POSITIVE, field="threshold", value=0)),
        ({"threshold": 10**6}, too_high("threshold", 10**6, MOST_TRIES)),
        ({"timeout": 0 * DAY}, Fault(FaultCode.NOT_POSITIVE, field="timeout", value=0 * DAY)),
        ({"timeout": seconds(600)}, too_high("timeout", seconds(600), LONGEST_TIMEOUT)),
        (
            {"cooldown": 10**6 * DAY},
            too_high("cooldown", 10**6 * DAY, LONGEST_WAIT),
        ),
        ({"max_cooldowns": -1}, Fault(FaultCode.NEGATIVE, field="max_cooldowns", value=-1)),
        ({"max_cooldowns": 1001}, too_high("max_cooldowns", 1001, MOST_TRIES)),
        (
            {"late_effect_window": seconds(-1)},
            Fault(FaultCode.NEGATIVE, field="late_effect_window", value=seconds(-1)),
        ),
        (
            {"late_effect_window": 31 * DAY},
            too_high("late_effect_window", 31 * DAY, LONGEST_WAIT),
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else value.code,
)
def test_a_wrong_step_is_reported(properties, fault):
    """With its name, and what it can be."""
    with pytest.raises(DeclarationError) as error:
        Workflows(flow(step("a", **properties))).check(CAPABILITIES)
    assert fault.within("w version 1: step a") in error.value.faults


def test_what_is_just_within_its_bounds_is_no_fault():
    """The longest that may be declared."""
    longest = step(
        "a",
        timeout=LONGEST_TIMEOUT,
        threshold=MOST_TRIES,
        cooldown=LONGEST_WAIT,
        max_cooldowns=0,
        late_effect_window=LONGEST_WAIT,
    )
    longest = replace(longest, title=MAX_TITLE * "t", condition=type("w" * MAX_TITLE, (), NEEDED)())
    others = (step(name) for name in LONG_NAMES[1:])
    Workflows(replace(flow(longest, *others), version=MOST_VERSION)).check(CAPABILITIES)


@pytest.mark.parametrize("name", ["free_sample", "Sample", "s" * 42, ""])
def test_a_workflow_that_no_submission_could_name_is_reported(name):
    """Else nobody would notice before the first order for it."""
    with pytest.raises(DeclarationError) as error:
        Workflows(replace(flow(step("a")), name=name)).check(CAPABILITIES)
    assert error.value.faults == [mismatch("name", name).within(f"{name} version 1")]


LONG = {
    "refused": {"detail": 300, "type": 300, "code": 300},
    "condition-failed": {"workflow": 41, "step": 41, "function": 80, "error": 300},
}
"""The lengths of the texts of long causes."""


@pytest.mark.proves("SUB-2")
@pytest.mark.parametrize("character", ['"', "\\", "\x01", "\U0001f9a0"])
@pytest.mark.parametrize("code", LONG)
def test_whatever_happens_to_an_order_of_the_most_steps_fits_its_rows(code, character):
    """With the longest names and causes, all begin, expire, are given up and turned back."""
    texts = {name: length * character for name, length in LONG[code].items()}
    version = {} if code == Code.REFUSED else {"version": 1}
    cause = Cause(Code(code), texts | version)
    workflow = flow(
        *(
            step(name, compensation="y", threshold=1, on_failure=OnFailure.UNDO)
            for name in LONG_NAMES
        )
    )
    workflow = replace(
        workflow,
        steps=tuple(
            replace(definition, request=lambda order, results: {}) for definition in workflow.steps
        ),
    )
    rules = replace(scheduler, workflows=Workflows(workflow))
    order = orders.on(workflow, reply_to="status-a")
    claimed = rules.claim(order, NOW)
    given_up = supervisor.recover(claimed.after, NOW + seconds(7))
    turned_back = cancel(claimed.after, OperatorRequest(operator="grace", note="x"), NOW)
    requested = rules.claim(given_up.after, NOW + seconds(7))
    undo = rules.claim(requested.after, NOW + seconds(7))
    stuck = supervisor.recover(undo.after, NOW + seconds(14))
    ended = rules.claim(stuck.after, NOW + seconds(14))
    assert ended.after.state == InError(Outcome.UNDO_INCOMPLETE)
    for change in (claimed, given_up, turned_back, requested, undo, stuck, ended):
        full = [
            steps.with_texts(
                steps.with_rules(changed, after=LONG_NAMES[:place], title=MAX_TITLE * "x"),
                reason=cause,
                result={"kept": MAX_KEPT * "x"},
            )
            for place, changed in enumerate(change.after.steps)
        ]
        _, rows = of_transition(replace(change, after=orders.having(change.after, steps=full)))
        assert [
            stored_form(columns_of_record(row.row)) for row in rows if not isinstance(row, Delete)
        ]


def test_all_faults_are_reported_at_once():
    """Of all workflows; and two of the same name and version are one too many."""
    with pytest.raises(DeclarationError) as error:
        Workflows(flow(step("a", "b", capability="x")), flow()).check(CAPABILITIES)
    assert len(error.value.faults) == 4
    assert Fault(FaultCode.DUPLICATE_WORKFLOW, "w version 1") in error.value.faults


def test_the_steps_of_an_order_say_what_they_come_after():
    """So whoever looks at an order knows what can go on, without its workflow."""
    steps = ORDER.initial_steps(StepDefaults(timeout=timedelta(seconds=5), threshold=3))
    assert [step.rules.after for step in steps] == [(), (), ("stock", "payment"), ("shipment",)]


def test_new_orders_start_with_the_latest_version():
    """Older ones stay known for the orders that are on them."""
    newer = replace(ORDER, version=3)
    known = Workflows(newer, ORDER)
    assert known.latest("order") is newer
    assert known.find("order", 2) is ORDER
    assert known.find("order", 1) is None


@pytest.mark.proves("SCH-17")
@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"within": timedelta()}, Fault(FaultCode.NOT_POSITIVE, field="within", value=timedelta())),
        (
            {"within": LONGEST_WAIT + seconds(1)},
            Fault(
                FaultCode.TOO_HIGH,
                field="within",
                value=LONGEST_WAIT + seconds(1),
                limit=LONGEST_WAIT,
            ),
        ),
        (
            {"when_late": WhenLate.UNDO},
            Fault(FaultCode.WHEN_LATE_WITHOUT_WITHIN, when_late=WhenLate.UNDO),
        ),
        (
            {"when_late": WhenLate.STOP},
            Fault(FaultCode.WHEN_LATE_WITHOUT_WITHIN, when_late=WhenLate.STOP),
        ),
    ],
)
def test_a_deadline_that_makes_no_sense_is_a_fault(changes, fault):
    """The app does not start with it."""
    assert list(replace(flow(step("a")), **changes).faults(CAPABILITIES)) == [fault]


@pytest.mark.proves("SCH-17")
@pytest.mark.parametrize("when_late", WhenLate)
def test_a_deadline_may_have_any_rule_and_be_as_long_as_a_wait(when_late):
    """It is no part of any step, so no fingerprint changes by it."""
    for within in (seconds(1), LONGEST_WAIT):
        due = replace(flow(step("a")), within=within, when_late=when_late)
        assert list(due.faults(CAPABILITIES)) == []
