"""Services that answer a call later, at the callback URL of the call (ANS-6, ANS-8).

They may do so early (before the call itself has an answer), late, repeatedly, or never. A service
does not change its answer, unless it is called again.
"""

from collections.abc import Iterator

from engine.declarations.business import AgentDefinition
from engine.domain.errors import InvalidCallbackUrlError, RefusedError
from engine.domain.messages import AgentRequest
from testkit.exploration.deployment import CALL_BACK, CALL_BACK_REFUSAL
from testkit.exploration.driving import Job
from testkit.exploration.world import World

SERVICE = "service"
"""The slot in which a service answers at a callback URL."""

REFUSALS = (RefusedError, InvalidCallbackUrlError)
"""The errors that a service may get for its answer."""


def may_answer(world: World, agent: AgentDefinition, request: AgentRequest) -> bool:
    """Whether the agent's service answers this call at its callback URL. An undo has none."""
    carries_link = request.action == "do" and request.callback_url is not None
    return carries_link and world.deployed.calls_back(agent)


def with_link(world: World, agent: AgentDefinition, request: AgentRequest) -> World:
    """Return the world in which the service may answer at the callback URL of this call."""
    if not may_answer(world, agent, request):
        return world
    return linked(world, request.idempotency_key, _right_of(request))


def linked(world: World, key: str, token: str) -> World:
    """Return the world in which the service uses this callback token for the key from now on."""
    others = (link for link in world.linked if link[0] != key)
    return world.but(linked=tuple(sorted([*others, (key, token)])))


def _right_of(request: AgentRequest) -> str:
    return str(request.callback_url).rpartition("=")[2]


def _open_calls(world: World) -> dict[str, str]:
    """Return the callback token of each call that a service may answer, by key."""
    return {**dict(world.linked), **dict(_under_way(world))}


def _under_way(world: World) -> Iterator[tuple[str, str]]:
    for handler in world.handlers.values():
        if handler.pending and handler.pending.name == "call":
            request = handler.pending.args[0]
            agent = world.deployed.agent_of_kind(handler.job.kind)
            if may_answer(world, agent, request) and _is_known(world, request.idempotency_key):
                yield request.idempotency_key, _right_of(request)


def _is_known(world: World, key: str) -> bool:
    """Whether the service has not forgotten this key."""
    return all(until > world.now for known, until in world.known if known == key)


def undecided(world: World) -> list[str]:
    """Return the keys of deferred calls whose services have neither done nor refused the work."""
    return [
        key
        for key, _ in world.linked
        if key not in world.declined
        and f"{key} do" not in world.effects
        and f"{key} undo" not in world.effects
    ]


def answers(world: World) -> Iterator[tuple[str, Job]]:
    """Yield each answer that a service may give at a callback URL now, with its key.

    If the work is undecided, both an answer and a refusal are possible.
    """
    for key, token in sorted(_open_calls(world).items()):
        order_id, step = key.split(":")[:2]
        done, undone = (f"{key} {action}" in world.effects for action in ("do", "undo"))
        if done or not (undone or key in world.declined):
            yield key, Job(kind=CALL_BACK, body=order_id, step=step, token=token)
        if not done:
            yield key, Job(kind=CALL_BACK_REFUSAL, body=order_id, step=step, token=token)
