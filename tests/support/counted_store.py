"""A store of its own, with an app in this process whose operations on it are counted."""

from dataclasses import replace
from datetime import timedelta

from engine.azure.clock import new_id, order_ids, utc_now
from engine.azure.connect import connect
from engine.azure.connections import Connections
from engine.concurrency import run_all
from engine.decisions.transitions import HistoryEntry, OperatorEvent, Transition
from engine.domain.keys import bucket_of
from engine.storage.orders import columns_of_record, of_transition
from engine.storage.tables import Insert
from shop.business import SHOP
from tests.support.answering import Answering
from tests.support.apps import bootstrap, functions
from tests.support.builders import orders, some, transition
from tests.support.transports import Recorder

LONG_AGO = utc_now() - timedelta(hours=1)

new_order_id = order_ids(8)


class Store:
    """A store, with an app whose operations on it are counted, and somebody else who changes what stands in it."""

    def __init__(self, settings):
        self.passed = timedelta()
        self.recorder = Recorder()
        self._parts = connect(settings, Connections(settings, transport=lambda: self.recorder))
        self._other = bootstrap(settings, SHOP, connect(settings))
        app = bootstrap(settings, SHOP, replace(self._parts, clock=lambda: utc_now() + self.passed))
        self.answers = Answering(functions(app))

    async def close(self):
        await self._parts.close()
        await self._other.engine.adapters.close()

    async def begin(self):
        """Have one more order under way."""
        order = orders.new(order_id=new_order_id(), **now())
        await self._commit(Transition(before=None, after=order, entry=entry("submitted")))
        return order.order_id

    async def fail(self):
        """Have one more order in Error, and its alert."""
        order = orders.in_error(order_id=new_order_id(), **now())
        await self._commit(Transition(before=None, after=order, entry=entry("failed")))
        about = {
            "subject": f"orders/{order.order_id}",
            "data": {"step": "payment", "reason": "declined"},
        }
        alert = OperatorEvent(
            event_id=new_id(), type="OrderProcessing.OrderFailed", at=utc_now(), **about
        )
        await self._other.operations.alert_log.record(alert)

    async def fill(self, processed, failed):
        """Have so many more, many to a transaction."""
        long_ago = {"ready_since": LONG_AGO, "updated_at": LONG_AGO}
        ended = [orders.processed(order_id=new_order_id(), **now()) for _ in range(processed)]
        ended += [orders.in_error(order_id=new_order_id(), **long_ago) for _ in range(failed)]
        await run_all((self._submit(order) for order in ended), at_most=200)

    async def _submit(self, order):
        _, rows = of_transition(Transition(before=None, after=order, entry=entry("ended")))
        rows = [Insert(row.key, columns_of_record(row.row)) for row in rows]
        await self._other.engine.store.table.submit(bucket_of(order.order_id), rows)

    async def _commit(self, change):
        await self._other.engine.store.commit(change)

    async def take_up(self, order_id):
        """Let an order in Error go on."""
        order = await self._other.engine.store.load(order_id)
        await self._commit(transition(order, orders.pending(order), entry("resubmitted")))

    async def change(self, order_id):
        """Have something happen to this order, and one more that fails."""
        await self.fail()
        order = await self._other.engine.store.load(order_id)
        again = orders.having(order, failures=order.failures + 1)
        await self._commit(transition(order, again, entry("recovered")))


def now():
    return {"ready_since": utc_now(), "updated_at": utc_now()}


def entry(event):
    return HistoryEntry(at=utc_now(), actor="somebody/1", events=some(event), change_id=new_id())
