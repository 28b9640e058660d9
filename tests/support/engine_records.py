"""Builds the records of `engine.domain` for tests: a step in any state, and an order of steps."""

from datetime import UTC, datetime, timedelta

from engine.domain.causes import Cause, Code
from engine.domain.effects import InDoubt, NotDone, NothingSent, RequestKey
from engine.domain.orders import Derived, OrderAggregate
from engine.domain.states import State, Waiting
from engine.domain.steps import Counts, Step, StepIn, StepKind, StepRules
from engine.domain.submitted_order import Order
from engine.domain.verbs import start

NOW = datetime(2026, 1, 31, 8, 15, tzinfo=UTC)
TIMEOUT = timedelta(seconds=30)
HOUR = timedelta(hours=1)
KEY = RequestKey(agent="bank", provider="psp")
DECLINED = Cause(Code.REFUSED, {"detail": "card declined", "code": "declined"})
TIMED_OUT = Cause(Code.TIMED_OUT, {"fault": ""})
NOT_BEGUN = Cause(Code.NOT_BEGUN, {"agent": "bank"})
OVERLOADED = Cause(Code.AGENT_OVERLOADED, {"agent": "bank", "fault": "late"})
WAITING = Waiting()
ORDER_ID = "b00-01JCX4T9Q8ZK7M2N5P6R3S1V0W"


def rules(**changes):
    """The rules of a step at the bank that has an undo and two tries."""
    return StepRules(
        **{"capability": "bank", "timeout": TIMEOUT, "threshold": 2, "undoable": True} | changes
    )


def step(state: State = WAITING, name="pay", effect=None, counts=None, **changes) -> Step:
    """A step in this state; `changes` are of its rules."""
    return StepIn(
        name=name,
        rules=rules(**changes),
        counts=counts or Counts(attempts=0 if effect is None else 1),
        effect=NothingSent() if effect is None else effect,
        state=state,
    )


def external(state: State = WAITING, name="approve", **changes) -> Step:
    """A step that an external event completes."""
    own = {"kind": StepKind.EXTERNAL, "capability": "outside", "undoable": False}
    return step(state, name, **own | changes)


def running(name="pay", key=KEY, **changes) -> Step:
    """A step whose first attempt has just started."""
    return start(step(name=name, **changes), key, NOW + TIMEOUT)


def in_doubt(state: State, **changes) -> Step:
    """A step of which an attempt had no answer."""
    return step(state, effect=InDoubt(key=KEY), **changes)


def refused(state: State, **changes) -> Step:
    """A step that its service refused to do."""
    return step(state, effect=NotDone(key=KEY), **changes)


def order(*steps: Step, not_before=None, ready_since=NOW, **changes) -> OrderAggregate:
    """An order of these steps; `not_before` is its own date."""
    submitted = Order(
        order_id=ORDER_ID, placed_at=NOW, payload={}, not_before=not_before, submission_digest=""
    )
    own = {"workflow": "claim", "workflow_version": 1, "updated_at": NOW}
    derived = Derived(ready_since=ready_since)
    return OrderAggregate(submitted=submitted, steps=steps, derived=derived, **own | changes)
