"""The production app with more workflows: those that are measured, and the order workflow under each policy."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import shop.business
from bench.workflows import MEASURED, PAYMENT_ONLY
from development.business import load_app
from engine.declarations.workflow import ANSWER, StepDefinition, WorkflowDefinition, Workflows
from engine.domain.submitted_order import EXTERNAL_PARTY, OnFailure
from engine.workflow import Model
from engine.workflow.external_events import fields_of
from shop.business import ORDER

LATE_EFFECT_WINDOW = timedelta(seconds=2)
SHORT = timedelta(seconds=3)
"""For a step that is meant to time out; all others have the long time of the settings, and fail only if told to."""
LONG = timedelta(minutes=1)
"""Where the settings give a short one: time enough for a step on any machine."""
OFTEN = 1000


def like_order(name: str, change: Callable[[StepDefinition], StepDefinition]) -> WorkflowDefinition:
    """The order workflow under another name, each of its steps changed."""
    return replace(ORDER, name=name, steps=tuple(map(change, ORDER.steps)))


def under(on_failure: OnFailure) -> WorkflowDefinition:
    """With this policy for all its steps."""
    return like_order(f"order-{on_failure}", lambda step: replace(step, on_failure=on_failure))


def failing(on_failure: OnFailure, *names: str) -> WorkflowDefinition:
    """With this policy, and a short time for the steps that may fail."""
    return like_order(
        f"{'-'.join(names)}-{on_failure}",
        lambda step: replace(
            step, on_failure=on_failure, timeout=SHORT if step.name in names else None
        ),
    )


def patient() -> WorkflowDefinition:
    """Whose payment may time out as often as it likes."""
    steps = [
        replace(step, timeout=SHORT, threshold=OFTEN) if step.name == "payment" else step
        for step in ORDER.steps
    ]
    return WorkflowDefinition(name="patient", version=1, steps=tuple(steps))


def payment_short() -> WorkflowDefinition:
    """One step, which may time out."""
    return replace(
        PAYMENT_ONLY, name="payment-short", steps=(replace(PAYMENT_ONLY.steps[0], timeout=SHORT),)
    )


def slow_service() -> WorkflowDefinition:
    """A payment service that does not refuse undone keys: its undo waits until no call can take effect any more."""
    stock, payment, *_ = ORDER.steps
    late_effect_window = replace(
        payment, timeout=SHORT, late_effect_window=LATE_EFFECT_WINDOW, on_failure=OnFailure.UNDO
    )
    return WorkflowDefinition(name="settling", version=1, steps=(stock, late_effect_window))


def resting() -> WorkflowDefinition:
    """Whose payment rests once it has timed out, and goes on soon enough to be tried again while something is away."""
    payment = replace(
        PAYMENT_ONLY.steps[0],
        threshold=1,
        on_failure=OnFailure.COOLDOWN,
        cooldown=timedelta(seconds=20),
    )
    return WorkflowDefinition(name="resting", version=1, steps=(payment,))


def restock() -> WorkflowDefinition:
    """Nothing but a call to the inventory: an order that needs no payment."""
    return WorkflowDefinition(
        name="restock", version=1, steps=(replace(ORDER.steps[0], after=(), timeout=LONG),)
    )


class Choice(Model):
    """What a customer answers."""

    colour: str
    bags: int
    grams: Decimal | None = None


def asking() -> WorkflowDefinition:
    """Whose customer is asked before anything is reserved."""
    choice = StepDefinition(
        name="choice",
        title="the colour of the bags",
        capability=EXTERNAL_PARTY,
        operation=ANSWER,
        request=lambda order, _: {"text": f"Which bags, {order.payload['customer']['name']}?"},
        result_fields=("colour", "bags", "grams"),
        timeout=timedelta(days=1),
        threshold=3,
        **fields_of(Choice),
    )
    then = replace(ORDER.steps[0], after=("choice",), timeout=LONG)
    return WorkflowDefinition(name="asked", version=1, steps=(choice, then))


POLICIES = (OnFailure.ERROR, OnFailure.UNDO)
known = Workflows(
    *MEASURED.workflows.all,
    *map(under, POLICIES),
    *(failing(on_failure, step.name) for step in ORDER.steps for on_failure in POLICIES),
    *(failing(on_failure, "stock", "payment") for on_failure in POLICIES),
    patient(),
    payment_short(),
    slow_service(),
    resting(),
    restock(),
    asking(),
)
shop.business.SHOP = replace(MEASURED, workflows=known)
app = load_app("shop.business:SHOP")
