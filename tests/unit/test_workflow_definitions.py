"""Workflow definitions are checked when the app starts, with every fault at once."""

from dataclasses import replace
from datetime import timedelta

import pytest
from acting import cancel
from builders import NOW, new_order, scheduler, seconds, supervisor

from core.life import Outcome
from core.orders import MAX_REASON, OnFailure
from core.workflow import (
    LONGEST_TIMEOUT,
    LONGEST_WAIT,
    MAX_STEPS,
    MOST_TRIES,
    MOST_VERSION,
    DeclarationError,
    StepDefinition,
    Workflow,
    Workflows,
)
from operators.requests import OperatorRequest
from scheduler.rules import MAX_KEPT
from shop.business import ORDER, SHOP
from stores.orders import columns_of_record, of_change
from stores.tables import Delete, stored_form

LONG_NAMES = tuple(f"s{number:02}-{'x' * 37}" for number in range(MAX_STEPS))

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


@pytest.mark.parametrize(
    ("workflow", "fault"),
    [
        pytest.param(flow(), "there is no step", id="empty"),
        pytest.param(flow(step("a"), step("a")), "step a is defined twice", id="twice"),
        pytest.param(
            flow(step("a", "b")),
            "step a: it comes after b, which is no step above it",
            id="unknown step",
        ),
        pytest.param(
            flow(step("a"), step("b", uses=("a",))),
            "step b: it uses what a answers, and does not come after it",
            id="uses what may not be there",
        ),
        pytest.param(
            flow(step("a", capability="postman")),
            "step a: no agent offers postman",
            id="nobody offers it",
        ),
        pytest.param(
            flow(step("a", "a")), "step a: it comes after a, which is no step above it", id="itself"
        ),
        pytest.param(
            flow(step("a"), step("b", "a", "d"), step("c", "b"), step("d", "c")),
            "step b: it comes after d, which is no step above it",
            id="a circle",
        ),
        pytest.param(
            flow(step("a", compensation="y", result_fields=("q",), compensation_needs=("q", "r"))),
            "step a: its undo needs r, which is not kept",
            id="an undo without data",
        ),
        pytest.param(
            flow(step("reserve_stock")),
            "step reserve_stock: its name has to match ^[a-z][a-z0-9-]{0,40}$",
            id="a name that no message can bear",
        ),
        pytest.param(
            flow(step("a", compensation="void/all")),
            "step a: operation void/all has to match [a-z][a-z0-9-]{0,40}",
            id="an undo that no message can ask for",
        ),
        pytest.param(
            flow(step("a", threshold=0)),
            "step a: threshold is 0; it has to be more",
            id="no try at all",
        ),
        pytest.param(
            flow(step("a", timeout=timedelta(0))),
            "step a: timeout is 0:00:00; it has to be more",
            id="no time",
        ),
        pytest.param(
            flow(step("a", timeout=timedelta(minutes=10))),
            "step a: timeout is 0:10:00; it can be 0:04:30 at most",
            id="longer than the host lets a function run",
        ),
        pytest.param(
            flow(step("a", threshold=10**6)),
            "step a: threshold is 1000000; it can be 1000 at most",
            id="never given up",
        ),
        pytest.param(
            flow(step("a", cooldown=timedelta(days=10**6))),
            "step a: cooldown is 1000000 days, 0:00:00; it can be 30 days, 0:00:00 at most",
            id="cools down beyond the calendar",
        ),
        pytest.param(
            flow(step("a", max_cooldowns=-1)),
            "step a: max_cooldowns is -1; it has to be more",
            id="no cooldown",
        ),
        pytest.param(
            flow(step("a", max_cooldowns=1001)),
            "step a: max_cooldowns is 1001; it can be 1000 at most",
            id="cools down for ever",
        ),
        pytest.param(
            flow(step("a", late_effect_window=timedelta(seconds=-1))),
            "step a: late_effect_window is -1 day, 23:59:59; it has to be more",
            id="takes effect before its time",
        ),
        pytest.param(
            flow(step("a", late_effect_window=timedelta(days=31))),
            "step a: late_effect_window is 31 days, 0:00:00; it can be 30 days, 0:00:00 at most",
            id="is never undone",
        ),
        *(
            pytest.param(
                flow(step("a", capability=name)),
                f"step a: capability {name} has to match ^[a-z][a-z0-9-]{{0,40}}$",
                id=f"capability {name}",
            )
            for name in ("card|eu", "card/3ds", "3ds", "Card")
        ),
        *(
            pytest.param(
                replace(flow(step("a")), version=version),
                "its version has to be from 1 to 1000000",
                id=f"v{version}",
            )
            for version in (0, 2**31)
        ),
        pytest.param(
            flow(*(step(f"s{number}") for number in range(MAX_STEPS + 1))),
            f"there are {MAX_STEPS + 1} steps; an order can keep {MAX_STEPS}",
            id="more steps than a column holds",
        ),
        pytest.param(
            flow(step("a", result_fields=("r",), compensation_needs=("r",))),
            "step a: it says what its undo needs, but not what undoes it",
            id="nothing undoes it",
        ),
    ],
)
def test_a_wrong_definition_is_reported(workflow, fault):
    """In the terms of the definition."""
    with pytest.raises(DeclarationError) as error:
        Workflows(workflow).check(CAPABILITIES)
    assert f"w version {workflow.version}: {fault}" in error.value.faults


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
    Workflows(replace(flow(longest), version=MOST_VERSION)).check(CAPABILITIES)


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
