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
    """Return the world in which there is a copy of the order in its present state."""
    return world.but(copied=(world.now, world.rows))


def restored(world: World) -> World:
    """Return the world with the copied order, restored by the operators' service.

    Effects at services and messages on the bus stay. Health rows, the lease and late writes are
    lost with the store.
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
