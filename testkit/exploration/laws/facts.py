"""Facts that the laws derive from an order, its history and the services.

The shipped code is not used where it is the subject of the check.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from engine.decisions.transitions import Transition
from engine.domain.deadlines import WhenLate
from engine.domain.effects import Doubt
from engine.domain.messages import AgentRequest
from engine.domain.orders import InError, OrderAggregate
from engine.domain.states import (
    BackingOff,
    Completed,
    RequestCancelled,
    Running,
    Skipped,
    SkipReason,
    Startable,
    UnderWay,
    Undoing,
    UndoPending,
)
from engine.domain.statuses import Outcome
from engine.domain.steps import Step, StepIn
from engine.storage.agent_health import AgentHealth
from testkit.exploration.driving import Answer, HealthRows, Returned
from testkit.exploration.turns import BEING_DONE, FAILED, NOT_STARTED, next_check, stops
from testkit.exploration.world import World

OPEN = NOT_STARTED | BEING_DONE
"""The states of a step that may still be done."""
NEVER = datetime.min.replace(tzinfo=UTC)
CUSTOMER = "customer"
"""The actor of a customer's acts."""
OVER_LINK = "outside"
"""The actor of an answer at a callback URL."""


def has_ended(world: World) -> bool:
    """Whether the order has ended or is on hold, so that only an operator can continue it.

    This includes an order that was never recorded.
    """
    order = world.order()
    if order is None:
        return bool(world.poison)
    return order.has_ended or order.hold is not None


def is_true(world: World, order: OrderAggregate, kind: str) -> bool:
    """Whether an operator who has checked the services would choose this action.

    If no service forgets keys, this is always true.
    """
    if not any(agent.keys_last for agent in world.deployed.agents.values()):
        return True
    stands = any(standing_generations(world, step) for step in failed_steps(order))
    return {"retry-with-new-key": not stands, "skip": stands is not order.is_undo}.get(kind, True)


def found_out(world: World, order: OrderAggregate) -> tuple[Step, bool]:
    """Return the first step in doubt, and whether it was really done."""
    step = next(step for step in order.steps if isinstance(step.effect, Doubt))
    return step, bool(standing_generations(world, step))


def is_health(answer: Answer) -> bool:
    """Whether the answer is a reading of the agents' health rows, which may be empty."""
    return isinstance(answer, Returned) and isinstance(answer.value, HealthRows)


def health_in(answer: Answer) -> list[AgentHealth]:
    """Return the agents' health rows if the answer is a reading of them."""
    value = answer.value if isinstance(answer, Returned) else None
    return list(value) if isinstance(value, HealthRows) else []


def passed_pivots(order: OrderAggregate) -> list[Step]:
    """Return the pivots that were done, or may have been (UND-6)."""
    return [step for step in order.steps if step.rules.pivot and _may_be_done(step)]


def _may_be_done(step: Step) -> bool:
    match step.state:
        case Running() | Completed() | Skipped(reason=SkipReason.OPERATOR):
            return True
    return isinstance(step.effect, Doubt)


def standing_generations(world: World, step: Step) -> set[int]:
    """Return the key generations of a step that took effect at its service and were not undone."""
    # One that began after the copy is not known any more.
    # A generation that started after the copy is unknown.
    generations = generation_of(step) + 1 + world.restored
    keys = {number: key_of(world, step, number) for number in range(generations)}
    return {
        number
        for number, key in keys.items()
        if f"{key} do" in world.effects and f"{key} undo" not in world.effects
    }


def generation_of(step: Step) -> int:
    """Return the key generation of the step, from 0."""
    return step.key.generation if step.key else 0


def key_of(world: World, step: Step, number: int) -> str:
    """Return the idempotency key of a key generation, without the shipped code."""
    return f"{world.order_id}:{step.name}{f':{number}' if number else ''}"


def names_of(steps: Iterable[Step]) -> set[str]:
    return {step.name for step in steps}


def failed_steps(order: OrderAggregate) -> list[StepIn[Any]]:
    """Return the steps that get no more attempts, to do or to undo them."""
    return [step for step in order.steps if isinstance(step.state, FAILED)]


def steps_to_try(order: OrderAggregate) -> Sequence[Step]:
    """Return the steps that wait for an attempt. None to do if the order stops (SCH-12)."""
    if order.is_undo:
        return order.in_state(UndoPending)
    return () if stops(order) else order.in_state(Startable)


def goes_back(step: Step) -> bool:
    """Whether the step is being undone, or will be."""
    return isinstance(step.state, UndoPending | Undoing)


def leaves_error(transition: Transition) -> bool:
    """Whether the order continues from `Error`."""
    was, now = transition.before.state, transition.after.state
    return isinstance(was, InError) and not isinstance(now, InError)


def has_expired(transition: Transition, before: Step) -> bool:
    """Whether a supervisor ended the step's attempt because its time was up."""
    after = transition.after.step(before.name)
    is_over = isinstance(before.state, UnderWay) and not isinstance(after.state, UnderWay)
    by_supervisor = transition.entry.actor.startswith("supervisor/")
    return by_supervisor and is_over and not isinstance(after.state, RequestCancelled)


def expiries_of(step: Step) -> int:
    """Return how often the step has expired since its last reset.

    A cooldown counts as the threshold.
    """
    return step.counts.cooldowns * step.rules.threshold + step.counts.failures


def attempts_begun(transition: Transition, step: str) -> int:
    """Return how many attempts of the step started."""
    before, after = transition.before.step(step), transition.after.step(step)
    return after.counts.attempts - before.counts.attempts


def has_begun(transition: Transition, step: Step) -> bool:
    """Whether the attempt that is running after the transition was not running before it."""
    before = transition.before.step(step.name)
    ran = before is not None and isinstance(before.state, UnderWay)
    return not (ran and before.counts.attempts == step.counts.attempts)


def earliest_begin(order: OrderAggregate, step: Step) -> datetime | None:
    """Return when a step may start: the later of its own time and the order's.

    An undo ignores the latter.
    """
    of_order = None if order.is_undo else order.submitted.not_before
    return max(filter(None, (step.not_before, of_order)), default=None)


def is_pause(order: OrderAggregate, turn: Collection[Step]) -> bool:
    """Whether the earliest time of these steps is a pause between two attempts (SCH-16)."""
    dates = [(date, step) for step in turn if (date := earliest_begin(order, step))]
    first = min((date for date, _ in dates), default=None)
    return any(
        date == first and isinstance(step.wait, BackingOff) and not step.answer_by
        for date, step in dates
    )


def is_under_way(step: Step | None, request: AgentRequest) -> bool:
    """Whether the request belongs to the running attempt."""
    runs = step is not None and isinstance(step.state, UnderWay)
    return runs and step.counts.attempts == request.attempt


def attempts_end_by(order: OrderAggregate) -> datetime | None:
    """Return when every attempt has to be over: at a deadline that is ahead and stops the order."""
    if next_check(order) is None or order.deadline.when_late is WhenLate.ALERT:
        return None
    return order.deadline.due_by


def waits_for_operator(order: OrderAggregate) -> bool:
    """Whether an operator has to act before the order can continue."""
    return isinstance(order.state, InError) and order.state.outcome is not Outcome.UNDONE
