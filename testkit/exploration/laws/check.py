"""Checks the laws of moments that need more than one call."""

from engine.decisions.transitions import Transition
from engine.domain.messages import AgentRequest
from testkit.exploration.driving import Handler, PortCall
from testkit.exploration.laws.registry import (
    CALLING,
    COMMIT,
    END,
    NOTING,
    RECORDS,
    REPLYING,
    REQUESTING,
    STATE,
    UNRECORDED,
    WRITE,
)
from testkit.exploration.roles import decode
from testkit.exploration.world import World


def check(world: World) -> None:
    """Check a state: the laws for each order, independently of other orders."""
    for part in world.parts():
        order = part.order()
        if order is None:
            UNRECORDED.check(part)
            continue
        STATE.check(part, order)
        if not part.rows.sound:  # once for all worlds that share the rows
            RECORDS.check(part, order)
            part.rows.sound = True


def check_end(world: World) -> None:
    """Check a state in which nothing more happens without an act."""
    for part in world.parts():
        END.check(part)


def check_commit(world: World, transition: Transition) -> None:
    """Check a write when the store carries it out."""
    WRITE.check(world, transition)
    if transition.before is not None and world.order() is not None:
        COMMIT.check(world, transition)


def check_effect(world: World, handler: Handler, effect: PortCall) -> None:
    """Check the next effect of a handler."""
    match effect.name:
        case "call":
            CALLING.check(world, effect.args[0])
        case "note":
            NOTING.check(effect.args[0])
        case "send":
            for message in effect.args[0]:
                kind = world.deployed.kinds.get(message.queue)
                if kind in world.deployed.requests:
                    REQUESTING.check(world, decode(AgentRequest, message.body))
                if kind == "reply":
                    REPLYING.check(world, handler, message)
