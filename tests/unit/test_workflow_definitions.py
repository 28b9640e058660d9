"""Workflow definitions are checked when the app starts, with every fault at once."""

from dataclasses import replace
from datetime import timedelta

import pytest
from acting import cancel
from builders import NOW, new_order, scheduler, seconds, supervisor

from core.life import Outcome
from core.orders import MAX_KEPT, MAX_REASON, OnFailure
from core.workflow import (
    LONGEST_TIMEOUT,
    LONGEST_WAIT,
    MAX_STEPS,
    MAX_TITLE,
    MOST_TRIES,
    MOST_VERSION,
    DeclarationError,
    StepDefinition,
    Workflow,
    Workflows,
)
from operators.requests import OperatorRequest
from shop.business import ORDER, SHOP
from stores.orders import columns_of_record, of_change
from stores.tables import Delete, stored_form

LONG_NAMES = tuple(f"s{number:02}-{'x' * 37}" for number in range(MAX_STEPS))

NEEDED = {"__call__": lambda *_: True}
"""What judges a step may be an object, whose name is that of its class."""

CAPABILITIES = ("payment", "inventory", "shipping")


def step(name, *after, **more):
    return StepDefinition(
        **{"name": name, "capability": "payment", "operation": "x", "request": None, "after": after}
        | more
    )


def flow(*steps):
    return Workflow(name="w", version=1, steps=steps)


def test_the_shipped_workflows_are_right():
    """Those that the app comes with."""
    SHOP.workflows.check(CAPABILITIES)


WRONG = {
    "empty": (flow(), "there is no step"),
    "twice": (flow(step("a"), step("a")), "step a is defined twice"),
    "unknown step": (
        flow(step("a", "b")),
        "step a: it comes after b, which is no step above it",
    ),
    "uses what may not be there": (
        flow(step("a"), step("b", uses=("a",))),
        "step b: it uses what a answers, and does not come after it",
    ),
    "itself": (flow(step("a", "a")), "step a: it comes after a, which is no step above it"),
    "a circle": (
        flow(step("a"), step("b", "a", "d"), step("c", "b"), step("d", "c")),
        "step b: it comes after d, which is no step above it",
    ),
    "a name that no message can bear": (
        flow(step("reserve_stock")),
        "step reserve_stock: its name has to match ^[a-z][a-z0-9-]{0,40}$",
    ),
    "v0": (replace(flow(step("a")), version=0), "its version has to be from 1 to 1000000"),
    "v2**31": (replace(flow(step("a")), version=2**31), "its version has to be from 1 to 1000000"),
    "more steps than a column holds": (
        flow(*(step(f"s{number}") for number in range(MAX_STEPS + 1))),
        f"there are {MAX_STEPS + 1} steps; an order can keep {MAX_STEPS}",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_definition_is_reported(what):
    """In the terms of the definition."""
    workflow, fault = WRONG[what]
    with pytest.raises(DeclarationError) as error:
        Workflows(workflow).check(CAPABILITIES)
    assert f"w version {workflow.version}: {fault}" in error.value.faults


DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"capability": "postman"}, "no agent offers postman"),
        *(
            ({"capability": name}, f"capability {name} has to match ^[a-z][a-z0-9-]{{0,40}}$")
            for name in ("card|eu", "card/3ds", "3ds", "Card")
        ),
        (
            {"compensation": "y", "result_fields": ("q",), "compensation_needs": ("q", "r")},
            "its undo needs r, which is not kept",
        ),
        (
            {"result_fields": ("r",), "compensation_needs": ("r",)},
            "it says what its undo needs, but not what undoes it",
        ),
        (
            {"compensation": "void/all"},
            "operation void/all has to match [a-z][a-z0-9-]{0,40}",
        ),
        ({"threshold": 0}, "threshold is 0; it has to be more"),
        ({"threshold": 10**6}, "threshold is 1000000; it can be 1000 at most"),
        ({"timeout": 0 * DAY}, "timeout is 0:00:00; it has to be more"),
        ({"timeout": seconds(600)}, "timeout is 0:10:00; it can be 0:04:30 at most"),
        (
            {"cooldown": 10**6 * DAY},
            "cooldown is 1000000 days, 0:00:00; it can be 30 days, 0:00:00 at most",
        ),
        ({"max_cooldowns": -1}, "max_cooldowns is -1; it has to be more"),
        ({"max_cooldowns": 1001}, "max_cooldowns is 1001; it can be 1000 at most"),
        (
            {"late_effect_window": seconds(-1)},
            "late_effect_window is -1 day, 23:59:59; it has to be more",
        ),
        (
            {"late_effect_window": 31 * DAY},
            "late_effect_window is 31 days, 0:00:00; it can be 30 days, 0:00:00 at most",
        ),
    ],
    ids=str,
)
def test_a_wrong_step_is_reported(said, fault):
    """With its name, and what it can be."""
    with pytest.raises(DeclarationError) as error:
        Workflows(flow(step("a", **said))).check(CAPABILITIES)
    assert f"w version 1: step a: {fault}" in error.value.faults


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
    longest = replace(longest, title=MAX_TITLE * "t", when=type("w" * MAX_TITLE, (), NEEDED)())
    others = (step(name) for name in LONG_NAMES[1:])
    Workflows(replace(flow(longest, *others), version=MOST_VERSION)).check(CAPABILITIES)


@pytest.mark.parametrize("name", ["free_sample", "Sample", "s" * 42, ""])
def test_a_workflow_that_no_submission_could_name_is_reported(name):
    """Else nobody would notice before the first order for it."""
    with pytest.raises(DeclarationError) as error:
        Workflows(replace(flow(step("a")), name=name)).check(CAPABILITIES)
    assert error.value.faults == [
        f"{name} version 1: its name has to match ^[a-z][a-z0-9-]{{0,40}}$"
    ]


@pytest.mark.proves("SUB-2")
def test_whatever_happens_to_an_order_of_the_most_steps_fits_its_rows():
    """With the longest names and reasons, all begin, expire, are given up and turned back."""
    workflow = flow(
        *(step(name, compensation="y", on_failure=OnFailure.UNDO) for name in LONG_NAMES)
    )
    workflow = replace(
        workflow,
        steps=tuple(replace(each, request=lambda order, results: {}) for each in workflow.steps),
    )
    rules = replace(scheduler, workflows=Workflows(workflow))
    order = new_order(reply_to="status-a").with_state(workflow="w")
    order = replace(
        order, steps=workflow.initial_steps(timeout=seconds(5), threshold=1, cooldown=seconds(60))
    )
    claimed = rules.claim(order, NOW)
    given_up = supervisor.recover(claimed.after, NOW + seconds(7))
    turned_back = cancel(claimed.after, OperatorRequest(operator="grace", note="x"), NOW)
    undo = rules.claim(given_up.after, NOW + seconds(7))
    stuck = supervisor.recover(undo.after, NOW + seconds(14))
    ended = rules.claim(stuck.after, NOW + seconds(14))
    assert ended.after.state.outcome is Outcome.UNDO_INCOMPLETE
    for change in (claimed, given_up, turned_back, undo, stuck, ended):
        steps = [
            replace(
                each,
                reason=MAX_REASON * "\U0001f9a0",
                result={"kept": MAX_KEPT * "x"},
                after=LONG_NAMES[:place],
            )
            for place, each in enumerate(change.after.steps)
        ]
        _, rows = of_change(replace(change, after=replace(change.after, steps=tuple(steps))))
        assert [
            stored_form(columns_of_record(each.row))
            for each in rows
            if not isinstance(each, Delete)
        ]


def test_all_faults_are_reported_at_once():
    """Of all workflows; and two of the same name and version are one too many."""
    with pytest.raises(DeclarationError) as error:
        Workflows(flow(step("a", "b", capability="x")), flow()).check(CAPABILITIES)
    assert len(error.value.faults) == 4
    assert "two workflows have the same name and version" in error.value.faults


def test_the_steps_of_an_order_say_what_they_come_after():
    """So whoever looks at an order knows what can go on, without its workflow."""
    steps = ORDER.initial_steps(timeout=timedelta(seconds=5), threshold=3, cooldown=timedelta(0))
    assert [step.after for step in steps] == [(), (), ("stock", "payment"), ("shipment",)]


def test_new_orders_start_with_the_latest_version():
    """Older ones stay known for the orders that are on them."""
    newer = replace(ORDER, version=3)
    known = Workflows(newer, ORDER)
    assert known.latest("order") is newer
    assert known.find("order", 2) is ORDER
    assert known.find("order", 1) is None
