"""Workflow definitions are checked when the app starts, with every fault at once."""

from dataclasses import replace
from datetime import timedelta

import pytest

import workflows
from core.workflow import StepDefinition, Workflow, WorkflowError, Workflows
from workflows.order import ORDER

CAPABILITIES = ("payment", "inventory", "shipping")


def step(name, *after, **more):
    return StepDefinition(
        **{"name": name, "capability": "payment", "does": "x", "request": None, "after": after} | more
    )


def flow(*steps):
    return Workflow(name="w", version=1, steps=steps)


def test_the_shipped_workflows_are_right():
    """Those that the app comes with."""
    workflows.ALL.check(CAPABILITIES)


@pytest.mark.parametrize(
    ("workflow", "fault"),
    [
        pytest.param(flow(), "there is no step", id="empty"),
        pytest.param(flow(step("a"), step("a")), "step a is defined twice", id="twice"),
        pytest.param(flow(step("a", "b")), "step a: it comes after b, which is no step above it", id="unknown step"),
        pytest.param(flow(step("a", capability="postman")), "step a: no agent offers postman", id="nobody offers it"),
        pytest.param(flow(step("a", "a")), "step a: it comes after a, which is no step above it", id="itself"),
        pytest.param(
            flow(step("a"), step("b", "a", "d"), step("c", "b"), step("d", "c")),
            "step b: it comes after d, which is no step above it",
            id="a circle",
        ),
        pytest.param(
            flow(step("a", undone_by="y", keeps=("q",), undo_needs=("q", "r"))),
            "step a: its undo needs r, which is not kept",
            id="an undo without data",
        ),
        pytest.param(
            flow(step("a", keeps=("r",), undo_needs=("r",))),
            "step a: it says what its undo needs, but not what undoes it",
            id="nothing undoes it",
        ),
    ],
)
def test_a_wrong_definition_is_reported(workflow, fault):
    """In the terms of the definition."""
    with pytest.raises(WorkflowError) as error:
        Workflows(workflow).check(CAPABILITIES)
    assert f"w version 1: {fault}" in error.value.faults


def test_all_faults_are_reported_at_once():
    """Of all workflows; and two of the same name and version are one too many."""
    with pytest.raises(WorkflowError) as error:
        Workflows(flow(step("a", "b", capability="x")), flow()).check(CAPABILITIES)
    assert len(error.value.faults) == 4
    assert "two workflows have the same name and version" in error.value.faults


def test_the_steps_of_an_order_say_what_they_come_after():
    """So whoever looks at an order knows what can go on, without its workflow."""
    steps = ORDER.initial_steps(allowance=timedelta(seconds=5), threshold=3, rest=timedelta(0))
    assert [step.after for step in steps] == [(), (), ("stock", "payment"), ("shipment",)]


def test_new_orders_start_with_the_latest_version():
    """Older ones stay known for the orders that are on them."""
    newer = replace(ORDER, version=3)
    known = Workflows(newer, ORDER)
    assert known.latest("order") is newer
    assert known.find("order", 2) is ORDER
    assert known.find("order", 1) is None
