"""Laws about effects at the remote services, and about requests to them."""

from engine.decisions.transitions import Note
from engine.domain import orders
from engine.domain.effects import Doubt
from engine.domain.errors import AnswersLaterError
from engine.domain.events import (
    SubmissionRefused,
)
from engine.domain.messages import AgentRequest, BusMessage
from engine.domain.orders import InError, OrderAggregate
from engine.domain.states import (
    Completed,
    Skipped,
    UnderWay,
)
from engine.domain.statuses import Outcome
from engine.domain.submitted_order import OnFailure
from testkit.exploration.driving import Handler, Raised
from testkit.exploration.laws.facts import (
    generation_of,
    is_under_way,
    key_of,
    names_of,
    standing_generations,
)
from testkit.exploration.laws.registry import (
    ARRIVED,
    CALLING,
    FORGOTTEN,
    NOTING,
    PERFORMED,
    REPLYING,
    REQUESTING,
    SERVED,
    STATE,
    law,
)
from testkit.exploration.roles import decode
from testkit.exploration.turns import dependents
from testkit.exploration.violations import demand
from testkit.exploration.world import World


@law("SCH-5", "UND-5", at=STATE)
def nothing_stands_half_done(world: World, order: OrderAggregate) -> None:
    """The recorded end of an order is true at the remote services."""
    at_services = [step for step in order.steps if not step.is_external]
    counted = [step for step in at_services if not isinstance(step.state, Skipped)]
    keys = {key_of(world, step, generation_of(step)) for step in counted}
    undone = {key for key in keys if f"{key} undo" in world.effects}
    if isinstance(order.state, orders.Processed):
        done = {key for key in keys if f"{key} do" in world.effects}
        demand(done == keys, f"the order is Processed, but not done: {keys - done}")
        # An undo after the copy is unknown: docs/operations/disaster-recovery.md.
        demand(world.restored or not undone, f"the order is Processed, but undone: {undone}")
    if isinstance(order.state, InError) and order.state.outcome is Outcome.UNDONE:
        skipped = order.in_state(Skipped)
        counted += [step for step in skipped if step.rules.on_failure is OnFailure.CONTINUE]
        standing = {
            step.name: standing_generations(world, step) for step in counted if step.rules.undoable
        }
        demand(
            not any(standing.values()),
            f"the order ended as undone, but these key generations have an effect: {standing}",
        )


@law("UND-6", at=STATE)
def not_turned_back(world: World, order: OrderAggregate) -> None:
    """No order is undone after a pivot was done."""
    done = [
        step.name for step in order.steps if step.rules.pivot and standing_generations(world, step)
    ]
    demand(not (order.is_undo and done), f"the order is undone although {done} was done (UND-6)")


@law("AGT-3", at=STATE)
def one_generation_stands(world: World, order: OrderAggregate) -> None:
    """At most one key generation of a step has an effect, or may have one.

    The next generation starts only if the former one has no effect (AGT-3).
    """
    for step in order.steps:
        is_unknown = isinstance(step.effect, Doubt) or isinstance(step.state, UnderWay)
        unknown = {generation_of(step)} if is_unknown else set()
        generations = standing_generations(world, step) | unknown
        demand(
            len(generations) <= 1,
            f"key generations of {step.name} that may have an effect: {generations} (AGT-3)",
        )


@law("SCH-10", "UND-1", at=PERFORMED)
def called_in_order(world: World, request: AgentRequest) -> None:
    """Steps are done in their order, and undone in the reverse order."""
    order = world.order()
    if order is None:
        return
    workflow = world.deployed.workflows.find(order.workflow, order.workflow_version)
    if workflow is None:
        return
    completed = names_of([step for step in order.in_state(Completed) if step.is_external])
    skipped = names_of(order.in_state(Skipped)) | completed
    done, undone = _steps(world, "do"), _steps(world, "undo")
    if world.restored and not is_under_way(order.step(request.step), request):
        return  # it was sent before the order was restored, and what had led to it is not known
    if request.action == "do":
        definition = workflow.definition(request.step)
        before = set(definition.after if definition else ())
        demand(done | skipped >= before, f"{request.step} starts before {before - done} (SCH-10)")
    else:
        to_undo = {step.name for step in workflow.steps if step.compensation is not None}
        standing = (done - undone - skipped) & dependents(workflow, request.step) & to_undo
        demand(not standing, f"{request.step} is undone before {standing} (UND-1)")


@law("ANS-8", at=ARRIVED)
def not_called_again_before_the_callback(handler: Handler, request: AgentRequest) -> None:
    """In an attempt whose service answers at its callback URL, no further call follows."""
    later = [
        entry
        for entry in handler.log
        if isinstance(entry, Raised) and entry.kind is AnswersLaterError
    ]
    demand(
        not later,
        f"{request.step} is called again although its service uses the callback URL (ANS-8)",
    )


@law("AGT-3", at=SERVED)
def served_by_one_provider(world: World, request: AgentRequest, provider: str) -> None:
    """No provider does or undoes a step that another provider may have done.

    It does not know the other provider's keys.
    """
    others = {name for key, name in world.served if key == request.idempotency_key} - {provider}
    demand(not others, f"{request.step} is sent to {provider}, but {others} has served it (AGT-3)")


@law("AGT-12", at=FORGOTTEN)
def not_repeated_under_a_forgotten_key(world: World, request: AgentRequest) -> None:
    """No step is done twice because its key was forgotten."""
    done = request.action == "do" and f"{request.idempotency_key} do" in world.effects
    demand(not done, f"{request.step} is done a second time under a forgotten key (AGT-12)")


def _steps(world: World, action: str) -> set[str]:
    found = (effect.split(" ") for effect in world.effects)
    return {key.split(":")[1] for key, done in found if done == action}


@law("AGT-5", "AGT-3", at=CALLING)
def called_in_time(world: World, request: AgentRequest) -> None:
    """An agent calls before the complete-by time, with the key of a generation of the step."""
    demand(
        world.now < request.complete_by, "the service was called after the complete-by time (AGT-5)"
    )
    part = world.about(request.order_id)
    step = part.order().step(request.step) if part.order() else None
    if step is None:
        return
    # A late duplicate may be of a round before; of the current attempt there is one key only.
    first = generation_of(step) if is_under_way(step, request) else 0
    keys = [key_of(part, step, number) for number in range(first, generation_of(step) + 1)]
    demand(
        request.idempotency_key in keys,
        f"the idempotency key is {request.idempotency_key}: expected one of {keys} (AGT-3)",
    )


@law("SUB-3", at=NOTING)
def submitted_as_recorded(note: Note) -> None:
    """No submission is refused as other content, because each is repeated unchanged here."""
    refused = any(isinstance(event, SubmissionRefused) for event in note.entry.events)
    demand(not refused, "a repeated submission is refused as other content (SUB-3)")


@law("AGT-4", at=REPLYING)
def replied_in_time(world: World, agent: Handler, reply: BusMessage) -> None:
    """An agent replies before the complete-by time, and no reply lives longer."""
    request = decode(AgentRequest, agent.job.body)
    demand(world.now < request.complete_by, "an agent replied after the complete-by time (AGT-4)")
    left = request.complete_by - world.deployed.clock_of(agent.slot, world.now)
    demand(
        reply.time_to_live and reply.time_to_live <= left,
        "a reply outlives the complete-by time (AGT-4)",
    )


@law("SCH-3", at=REQUESTING)
def recorded_first(world: World, request: AgentRequest) -> None:
    """A request is sent only after its attempt was recorded."""
    order = world.about(request.order_id).order()
    step = order.step(request.step) if order else None
    demand(
        step and step.counts.attempts >= request.attempt,
        "a request is sent that is not recorded as running (SCH-3)",
    )
