"""Orders of today's records in `Error`, with two failed steps of each kind: a short exploration gets to few of them."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain, cycle, product

from core.life import Direction, Outcome, ProcessState, StepState
from core.orders import Snapshot, Step
from engine.domain.causes import Cause, Code

DECLINED = Cause(Code.REFUSED, {"detail": "declined"})
TIMED_OUT = Cause(Code.TIMED_OUT, {"fault": ""})
SOON, LATER = timedelta(seconds=1), timedelta(hours=1)


def failed_orders(order: Snapshot, now: datetime) -> Iterator[Snapshot]:
    """Make the first and the last step of an order fail, and the one between them be in each other state.

    The last step needs the result of the first one in every second order.
    """
    first, between, last = order.steps
    others, needs = cycle(_between(between)), cycle(((first.name,), ()))
    for ways, kinds in product((Direction.FORWARD, Direction.UNDO), _pairs()):
        one, other = (
            _failed(step, kind, now, cause)
            for step, kind, cause in zip((first, last), kinds, (DECLINED, TIMED_OUT), strict=True)
        )
        steps = one, next(others), replace(other, uses=next(needs))
        outcome = Outcome.FAILED if ways is Direction.FORWARD else Outcome.UNDO_INCOMPLETE
        yield replace(order, steps=steps).with_state(
            process_state=ProcessState.ERROR,
            direction=ways,
            outcome=outcome,
            cause=DECLINED,
            failure_count=2,
        )


KINDS = (
    {},
    {"refused_for_good": True},
    {"in_doubt": True},
    {"in_doubt": True, "key_known_until": SOON},
    {"in_doubt": True, "key_known_until": LATER},
    {"key_known_until": SOON},
    {"in_doubt": True, "settled_at": SOON},
    {"in_doubt": True, "settled_at": timedelta()},
    {"in_doubt": True, "state": StepState.SKIPPED, "cause": None},
    {"answer_by": SOON, "state": StepState.NOT_STARTED, "cause": None},
    {
        "attempts": 0,
        "state": StepState.NOT_STARTED,
        "cause": None,
        "failure_count": 0,
        "provider": None,
    },
)
"""What is known of a failed step; times count from the action."""


def _pairs():
    """Return each kind beside itself, beside the next one, and before and after a plain failure."""
    following = zip(KINDS, (*KINDS[1:], KINDS[0]), strict=True)
    plain = ((kind, KINDS[0]) for kind in KINDS), ((KINDS[0], kind) for kind in KINDS)
    return [*((kind, kind) for kind in KINDS), *following, *chain(*plain)]


def _failed(step: Step, kind, now: datetime, cause: Cause) -> Step:
    known = {
        name: now + value if isinstance(value, timedelta) else value for name, value in kind.items()
    }
    failed = {"state": StepState.FAILED, "cause": cause, "attempts": 2, "failure_count": 2}
    failed |= {"provider": "psp"}
    return replace(step, **failed | known)


def _between(step: Step) -> Iterator[Step]:
    """Yield the external step as nobody was asked for it, as the request was cancelled, and as it is done."""
    yield step
    yield replace(step, attempts=1, failure_count=1, right="t")
    yield replace(step, state=StepState.COMPLETED, attempts=1, result={"said": "yes"})
