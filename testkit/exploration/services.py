"""The outcomes of a call to a service: those that its agent declares, and every fault."""

from collections.abc import Iterator
from datetime import timedelta

from engine.azure.answers import LONGEST_PAUSE
from engine.declarations.business import AgentDefinition
from engine.domain.errors import (
    AnswersLaterError,
    CallTimeoutError,
    DeferredError,
    GatewayError,
    RejectedError,
    TransientError,
)
from engine.domain.messages import AgentRequest
from testkit.exploration import callbacks
from testkit.exploration.driving import Answer, Handler, Raised, Returned
from testkit.exploration.laws.registry import ARRIVED, FORGOTTEN, PERFORMED, SERVED
from testkit.exploration.ports import ASK_AGAIN
from testkit.exploration.world import World

Outcome = tuple[str, World, Answer, bool]
"""The label, the new world, the answer for the handler, and whether it is a fault."""


def outcomes_of_call(
    world: World, handler: Handler, request: AgentRequest, timeout: timedelta
) -> Iterator[Outcome]:
    """Yield every outcome of a call."""
    agent = world.deployed.agent_of_kind(handler.job.kind)
    world = _remembering(world, agent, request.idempotency_key)
    known_until = dict(world.known).get(request.idempotency_key)
    if known_until and known_until <= world.now:
        yield from _call_with_a_forgotten_key(world, request)
        return
    ARRIVED.check(handler, request)
    happened = _served(world, handler, request)
    happened = happened.but(
        effects=with_effect(world, request.idempotency_key, request.action),
        declined=world.declined - {request.idempotency_key},
    )
    rejected = Raised(RejectedError, agent.refusal)
    undone = f"{request.idempotency_key} undo" in world.effects
    if request.action == "do" and undone and not _late_effect_window(world, request):
        yield "the service refuses what was undone", world, rejected, False
        return
    PERFORMED.check(world.about(request.order_id), request)
    if world.now >= handler.since + timeout:
        yield from _unanswered(world, happened, request, agent)
    elif request.idempotency_key in world.refused and request.action == "do":
        yield "the service repeats its refusal", world, rejected, False
    elif _does_it_later(world, agent, request):
        yield from _accepted(world, happened, request, agent)
    else:
        yield from _answered(world, happened, request, agent)


def _unanswered(
    world: World, happened: World, request: AgentRequest, agent: AgentDefinition
) -> Iterator[Outcome]:
    world, happened = (callbacks.with_link(state, agent, request) for state in (world, happened))
    what, timed_out = "the service has not answered in time", Raised(CallTimeoutError)
    yield what, _hanging(world, request), timed_out, False
    yield f"{what}, though it did its work", happened, timed_out, False


def _does_it_later(world: World, agent: AgentDefinition, request: AgentRequest) -> bool:
    """Whether the service defers the call with 202: the first call, not its repeats."""
    may = agent.answer_within or callbacks.may_answer(world, agent, request)
    return bool(may) and _call_of(request) not in world.accepted


def _accepted(
    world: World, happened: World, request: AgentRequest, agent: AgentDefinition
) -> Iterator[Outcome]:
    accepted, later = world.accepted | {_call_of(request)}, _until_later(agent)
    ways = {"accepts it, to do it later": world}
    if request.idempotency_key not in world.declined:
        ways["accepts it, and does it"] = happened
    for what, after in ways.items():
        waiting = callbacks.with_link(after, agent, request).but(accepted=accepted)
        yield f"the service {what}", waiting, later, False


def _until_later(agent: AgentDefinition) -> Raised:
    """Return the error of a call that the service has deferred."""
    if agent.answer_within is None:
        return Raised(AnswersLaterError, "it answers over its link")
    usual = agent.answer_within if agent.calls_back else ASK_AGAIN
    pause = min(usual, agent.answer_within, LONGEST_PAUSE)
    return Raised(DeferredError, "queued", (("retry_after", pause),))


def _answered(
    world: World, happened: World, request: AgentRequest, agent: AgentDefinition
) -> Iterator[Outcome]:
    done, transient = Returned(world.deployed.answer_of(request.step)), Raised(TransientError)
    yield "the service does its work", happened, done, False
    late = happened.at(max(world.now, request.complete_by))
    yield "the service does its work, which the agent hears too late", late, done, True
    yield "the service does its work, but its answer is lost", happened, transient, True
    yield "the service stumbles", world, transient, True
    if world.deployed.behind_gateway:
        margin = world.deployed.margin
        shut = world.at(max(world.now, request.complete_by - margin))
        turned_away = Raised(GatewayError, "404")
        yield "a gateway turns it away until its time is up", shut, turned_away, True
    knows_its_work = agent.remembers_refusals or _call_of(request) in world.accepted
    if not (knows_its_work and _call_of(request) in world.effects):  # it refuses nothing it did
        rejected = Raised(RejectedError, agent.refusal)
        yield "the service rejects the order", _refusing(world, agent, request), rejected, True


def _remembering(world: World, agent: AgentDefinition, key: str) -> World:
    """Return the world in which the service has received this key, and knows it for a while."""
    if agent.keys_last is None or key in dict(world.known):
        return world
    return world.but(known=tuple(sorted([*world.known, (key, world.now + agent.keys_last)])))


def _call_with_a_forgotten_key(world: World, request: AgentRequest) -> Iterator[Outcome]:
    """Yield the outcome: the service does the work again.

    It undoes only what its own answer names.
    """
    FORGOTTEN.check(world, request)
    undo = request.action == "undo" and not request.content["result"]
    effects = world.effects if undo else world.effects | {_call_of(request)}
    happened = world.but(effects=effects)
    done = Returned(world.deployed.answer_of(request.step))
    yield "the service does what it has forgotten", happened, done, False


def _call_of(request: AgentRequest) -> str:
    return f"{request.idempotency_key} {request.action}"


def _refusing(world: World, agent: AgentDefinition, request: AgentRequest) -> World:
    """Return the world in which the service has refused this call, and may remember this."""
    if not agent.remembers_refusals or request.action == "undo":
        return world
    return world.but(refused=world.refused | {request.idempotency_key})


def _served(world: World, handler: Handler, request: AgentRequest) -> World:
    """Return the world in which this provider has served the request.

    It is recorded only if there are several providers.
    """
    if not world.deployed.has_strangers:
        return world
    provider = world.deployed.providers[world.deployed.requests[handler.job.kind]]
    SERVED.check(world, request, provider)
    return world.but(served=world.served | {(request.idempotency_key, provider)})


def with_effect(world: World, key: str, action: str) -> frozenset[str]:
    """Return the effects after this one."""
    # A service that does not refuse an undone key does the undone work again.
    again = {f"{key} undo"} if action == "do" else set()
    return (world.effects | {f"{key} {action}"}) - again


def _late_effect_window(world: World, request: AgentRequest) -> timedelta:
    """Return how long after its time-out a call may take effect.

    It is zero for a service that refuses undone keys (UND-2).
    """
    order = world.about(request.order_id).order()
    step = order.step(request.step) if order else None
    return step.rules.late_effect_window if step else timedelta()


def _hanging(world: World, request: AgentRequest) -> World:
    """Return the world in which nobody waits for this call, although it may still take effect."""
    window = _late_effect_window(world, request)
    if request.action == "undo" or not window:
        return world
    call = (request.idempotency_key, request.complete_by + window)
    return world.but(late=tuple(sorted({*world.late, call})))
