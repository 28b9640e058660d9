"""The production app with more workflows: the order workflow under each policy, and in two versions."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import workflows
from core.orders import Policy
from core.workflow import StepDefinition, Workflow, Workflows
from workflows.order import ORDER

SETTLING = timedelta(seconds=2)
LONG = timedelta(minutes=1)
"""Time enough for a step on any machine: it fails only if its service does."""


def like_order(name: str, change: Callable[[StepDefinition], StepDefinition]) -> Workflow:
    """The order workflow under another name, each of its steps changed."""
    return replace(ORDER, name=name, steps=tuple(map(change, ORDER.steps)))


def under(policy: Policy) -> Workflow:
    """With this policy for all its steps."""
    return like_order(f"order-{policy}", lambda step: replace(step, policy=policy))


def failing(name: str, policy: Policy) -> Workflow:
    """With this policy; all steps but the one that is to fail have a long time."""
    return like_order(
        f"{name}-{policy}",
        lambda step: replace(step, policy=policy, allowance=None if step.name == name else LONG),
    )


def unhurried() -> Workflow:
    """With a long time for all its steps."""
    return like_order("unhurried", lambda step: replace(step, allowance=LONG))


def slow_service() -> Workflow:
    """A payment service that does not refuse undone keys: its undo waits until no call can take effect any more."""
    stock, payment, *_ = ORDER.steps
    return Workflow(name="settling", version=1, steps=(stock, replace(payment, settling=SETTLING, policy=Policy.UNDO)))


def restock() -> Workflow:
    """Nothing but a call to the inventory: an order that needs no payment."""
    return Workflow(name="restock", version=1, steps=(replace(ORDER.steps[0], after=(), allowance=LONG),))


POLICIES = (Policy.ERROR, Policy.UNDO)
workflows.ALL = Workflows(
    *workflows.ALL.all,
    *map(under, POLICIES),
    *(failing(step.name, policy) for step in ORDER.steps for policy in POLICIES),
    unhurried(),
    slow_service(),
    restock(),
)
spec = spec_from_file_location("production_function_app", Path(__file__).parents[3] / "function_app.py")
assert spec
assert spec.loader
production = module_from_spec(spec)
spec.loader.exec_module(production)
app = production.app
