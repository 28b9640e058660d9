"""A version of a workflow that was changed under an order is told by the order's own steps."""

from dataclasses import replace
from datetime import timedelta

import pytest

from engine.declarations.workflow import StepDefinition, WorkflowDefinition, Workflows
from engine.domain.events import WorkflowChanged
from engine.domain.submitted_order import OnFailure
from tests.support.acting import alerts_of
from tests.support.builders import NOW, SOMEWHERE, orders, scheduler, steps


def step(name, *after, **more):
    return StepDefinition(
        name=name,
        capability="payment",
        operation="pay",
        request=lambda order, results: {},
        after=after,
        **more,
    )


CLAIM = WorkflowDefinition(
    name="claim",
    version=1,
    steps=(step("approve"), step("pay", "approve", result_fields=("reference",))),
)
APPROVE, PAY = CLAIM.steps


def order():
    """An order that was submitted when the workflow was as it was at first."""
    return orders.on(CLAIM)


def claimed(*definitions, of=None):
    """What a scheduler makes of the order, for which the workflow has these steps."""
    rules = replace(scheduler, workflows=Workflows(replace(CLAIM, steps=definitions)))
    return rules.claim(of or order(), NOW, SOMEWHERE)


CHANGES = {
    "another operation": [APPROVE, replace(PAY, operation="charge")],
    "what is kept": [APPROVE, replace(PAY, result_fields=())],
    "what undoes it": [APPROVE, replace(PAY, compensation="void")],
    "policy and threshold": [APPROVE, replace(PAY, on_failure=OnFailure.UNDO, threshold=7)],
    "a time": [APPROVE, replace(PAY, late_effect_window=timedelta(seconds=1))],
    "what it comes after": [APPROVE, replace(PAY, after=())],
    "one step less": [APPROVE],
}


@pytest.mark.proves("FLT-12", "ALR-1")
@pytest.mark.parametrize("change", CHANGES)
def test_an_order_that_meets_a_changed_workflow_tells_once_which_step_it_is(change):
    """In its history, and by an alert that is the same for all orders that meet the change."""
    met = claimed(*CHANGES[change])
    (happened,) = [found for found in met.entry.events if isinstance(found, WorkflowChanged)]
    assert happened.steps.startswith("pay (")
    (event,) = alerts_of(met)
    assert (event.type, event.subject) == ("OrderProcessing.WorkflowChanged", "workflows/claim")
    assert happened.steps == event.data["reason"]["facts"]["steps"]
    again = claimed(
        *CHANGES[change],
        of=orders.having(
            order(),
            steps=[
                steps.with_rules(mine, fingerprint=known.rules.fingerprint)
                for mine, known in zip(order().steps, met.after.steps, strict=True)
            ],
        ),
    )
    assert alerts_of(again) == []


@pytest.mark.proves("FLT-12")
def test_every_changed_step_is_named_with_what_it_is_now():
    """The order remembers that, so that it tells once."""
    changed = replace(APPROVE, operation="charge")
    met = claimed(changed)
    (happened,) = [found for found in met.entry.events if isinstance(found, WorkflowChanged)]
    assert happened.steps == f"approve (now {changed.fingerprint}), pay (gone)"
    assert [order_step.rules.fingerprint for order_step in met.after.steps] == [
        changed.fingerprint,
        "",
    ]


@pytest.mark.proves("FLT-12")
def test_nobody_gets_an_alert_of_what_is_as_it_was():
    """A request may be put right, also for orders that are on it; a new step is not theirs."""
    mended = replace(PAY, request=lambda order, results: {"amount": 1})
    assert alerts_of(claimed(APPROVE, PAY)) == []
    assert alerts_of(claimed(APPROVE, mended, step("inform", "pay"))) == []


def test_of_what_judges_a_step_the_name_counts():
    """It may be corrected for orders in flight, as a request may."""

    def needed(order, results):
        return True

    def wanted(order, results):
        return True

    of = {
        condition: replace(APPROVE, condition=condition).fingerprint
        for condition in (needed, wanted)
    }
    assert APPROVE.fingerprint != of[needed] != of[wanted]
    wanted.__name__ = "needed"
    assert replace(APPROVE, condition=wanted).fingerprint == of[needed]
    an_object = type("needed", (), {"__call__": needed})()
    assert replace(APPROVE, condition=an_object).fingerprint == of[needed]


def test_a_field_that_has_its_default_is_no_part_of_a_fingerprint():
    """So what a later version of the app adds changes none."""
    assert APPROVE.fingerprint == replace(APPROVE, late_effect_window=timedelta()).fingerprint
    assert (
        APPROVE.fingerprint != replace(APPROVE, late_effect_window=timedelta(seconds=1)).fingerprint
    )
