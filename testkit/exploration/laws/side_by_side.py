"""Laws about orders that wait for the same agent (SCH-11, WRK-2)."""

from engine.decisions.transitions import Transition
from engine.domain.orders import OrderAggregate
from engine.domain.states import UnderWay
from engine.domain.steps import StepIn
from engine.domain.submitted_order import Priority
from engine.domain.work_index import WorkItemKind
from testkit.exploration.driving import Handler, Returned
from testkit.exploration.due import may_go_on
from testkit.exploration.laws.registry import AFTER_COMMIT, DECISION, law
from testkit.exploration.violations import demand
from testkit.exploration.world import Sent, World


@law("SCH-11", at=DECISION)
def first_order_is_claimed(world: World, handler: Handler, transition: Transition) -> None:
    """Of several orders, the first is claimed: the urgent one, then the oldest one.

    This holds for one slot, because with more slots, later orders have their own slot. Orders from
    the same span of time count as equally old. A process that has not refreshed knows only the
    orders whose wake-ups it received.
    """
    claimed = transition.before
    if not world.deployed.believing or claimed is None or transition.entry.event != "claimed":
        return
    found = _found(handler)
    for part in world.parts():
        order = part.order()
        if (
            order
            and part.order_id in found
            and _needs(order) & _needs(claimed)
            and _is_before(order, claimed)
        ):
            waits = (
                may_go_on(order, world.deployed.workflows)
                and (order.derived.not_before or world.now) <= world.now
            )
            demand(
                not waits,
                f"{claimed.order_id} is claimed before {part.order_id}, which comes first (SCH-11)",
            )


def _is_before(one: OrderAggregate, other: OrderAggregate) -> bool:
    if one.priority is not other.priority:
        return one.priority is Priority.HIGH
    return one.derived.ready_since < other.derived.ready_since


def _found(handler: Handler) -> set[str]:
    """Return the pending orders that the handler's refresh has read."""
    pages = [
        answer.value
        for answer in handler.log
        if isinstance(answer, Returned) and isinstance(answer.value, list)
    ]
    return {
        row.order_id
        for page in pages
        for row in page
        if getattr(row, "key", "").startswith(WorkItemKind.PENDING)
    }


def _needs(order: OrderAggregate) -> set[str]:
    """Return the capabilities of the steps that have not started."""
    idle = (step for step in order.steps if not isinstance(step.state, UnderWay))
    return {step.rules.capability for step in idle}


@law("WRK-2", at=AFTER_COMMIT)
def no_more_than_the_slots(after: World, transition: Transition) -> None:
    """An agent has at most as many orders as slots.

    It has this number of slots for each process that refreshes independently. An order with an
    answer or after its complete-by time is no longer at the agent, whatever its records say. A
    claim that arrives late takes a slot that others had to assume free.
    """
    if not after.deployed.believing or transition.entry.event != "claimed":
        return
    parts = [part for part in after.parts() if part.order_id not in after.landed]
    orders = [order for part in parts if (order := part.order())]
    answered = {
        order.order_id for order in orders for sent in after.queue if _answers(sent, order.order_id)
    }
    for agent in {step.agent for step in transition.after.in_state(UnderWay)}:
        running = (order for order in orders if _runs_at(order, agent, after))
        there = sum(order.order_id not in answered for order in running)
        capacity = after.deployed.agents[agent].calls_in_flight * after.deployed.schedulers
        demand(there <= capacity, f"{there} orders are at {agent}, which has fewer slots")


def _runs_at(order: OrderAggregate, agent: str, world: World) -> bool:
    return any(_is_at(step, agent, world) for step in order.in_state(UnderWay))


def _is_at(step: StepIn[UnderWay], agent: str, world: World) -> bool:
    is_there = world.now <= step.state.complete_by + world.deployed.tolerance
    return step.agent == agent and is_there


def _answers(sent: Sent, order_id: str) -> bool:
    return sent.kind == "reply" and order_id in sent.body
