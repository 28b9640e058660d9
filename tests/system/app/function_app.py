"""The production app with more workflows: the order workflow under each policy, and in two versions."""

from dataclasses import replace
from datetime import timedelta
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import workflows
from core.orders import Policy
from core.workflow import Workflow, Workflows
from workflows.order import ORDER

SETTLING = timedelta(seconds=2)


LONG = timedelta(minutes=1)
"""Time enough for a step on any machine: it fails only if its service does."""


def under(policy: Policy) -> Workflow:
    """The order workflow with this policy for all its steps."""
    return replace(ORDER, name=f"order-{policy}", steps=tuple(replace(step, policy=policy) for step in ORDER.steps))


def failing(name: str, policy: Policy) -> Workflow:
    """The order workflow with this policy; all steps but the one that is to fail have a long time."""
    steps = (replace(step, allowance=None if step.name == name else LONG) for step in under(policy).steps)
    return replace(ORDER, name=f"{name}-{policy}", steps=tuple(steps))


def slow_service() -> Workflow:
    """A payment service that does not refuse undone keys: its undo waits until no call can take effect any more."""
    stock, payment, *_ = ORDER.steps
    return Workflow(name="settling", version=1, steps=(stock, replace(payment, settling=SETTLING, policy=Policy.UNDO)))


def restock() -> Workflow:
    """Nothing but a call to the inventory: an order that needs no payment."""
    return Workflow(name="restock", version=1, steps=(replace(ORDER.steps[0], after=()),))


def unhurried() -> Workflow:
    """The order workflow with a long time for all its steps."""
    return replace(ORDER, name="unhurried", steps=tuple(replace(step, allowance=LONG) for step in ORDER.steps))


POLICIES = (Policy.ERROR, Policy.UNDO)
more = [failing(step.name, policy) for step in ORDER.steps for policy in POLICIES]
workflows.ALL = Workflows(*workflows.ALL.all, *map(under, POLICIES), *more, slow_service(), restock(), unhurried())
spec = spec_from_file_location("production_function_app", Path(__file__).parents[3] / "function_app.py")
assert spec
assert spec.loader
production = module_from_spec(spec)
spec.loader.exec_module(production)
app = production.app
