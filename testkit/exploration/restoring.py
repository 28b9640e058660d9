"""The store is lost, and the order is restored from a copy (OPR-11)."""

from engine.decisions.restore import Copied
from engine.domain.keys import bucket_of
from operations.api import copies
from operations.api.requests import OperatorRequest
from testkit.exploration.driving import settled
from testkit.exploration.world import Rows, World
from testkit.memory import MemoryStateStore

REQUEST = OperatorRequest(operator="grace", note="the tables are gone")


def copied(world: World) -> World:
    """Return the world in which somebody has a copy of the order as it is now."""
    return world.but(copied=(world.now, world.rows))


def restored(world: World) -> World:
    """Return the world with the order as it was copied, by the change of the operators' service.

    What the services did stays, and so does what is on the bus. Health rows, lease and late writes
    are gone with the store.
    """
    at, rows = world.copied or (world.now, world.rows)
    deployed = world.deployed
    copy = Copied(at=at, agents=deployed.business.agents, clock_tolerance=deployed.tolerance)
    transition = copies.restored(rows.order, REQUEST, copy, world.now)
    bucket, store = bucket_of(world.order_id), MemoryStateStore()
    store.rows = {bucket: {key: row for key, row in rows.items() if "|history|" in key}}
    settled(store.commit(transition.identified(f"~{world.ids + 1}~")))
    return world.but(
        rows=Rows(store.rows[bucket]),
        copied=None,
        restored=True,
        lease=None,
        begun=(),
        faults=frozenset(),
        landing=(),
        ids=world.ids + 1,
    )
