"""Orders side by side in one bucket: all roles at work on them, second by second, and when what was seen of them."""

from collections import defaultdict
from dataclasses import replace
from datetime import timedelta

from agents.health import MOST_BEGUN
from engine.concurrency import run_all
from engine.decisions.transitions import HistoryEntry, Transition
from engine.declarations.workflow import WorkflowDefinition
from engine.domain.errors import UnavailableError
from engine.domain.keys import bucket_of
from engine.domain.messages import SCHEDULER_REQUESTS, OrderReady, decode, decode_reply
from engine.domain.statuses import ProcessState
from engine.domain.work_index import WorkItemKind, all_of
from engine.runtime.functions import skip_overlapping_runs
from engine.storage.poison import Arrival
from operations.api.views import listed as listed_as
from tests.support.builders import (
    NOW,
    SOMEWHERE,
    TIMEOUT,
    answer,
    answer_to,
    orders,
    seconds,
    some,
    steps,
    under_way,
)
from tests.support.scheduling import Scheduling, only, step

BUCKET = "b01"


def batched(items, size):
    """As `itertools.batched` of Python 3.12."""
    return [items[first : first + size] for first in range(0, len(items), size)]


BATCH = 64
"""Messages of one invocation; the next batch comes when the one before has ended."""

LASTS = 12
"""Seconds in which all that is to happen has happened; also a time-out, and what follows from it."""

TOO_LARGE = 300_000

RATE = 2500
"""Requests that the agent begins each second: as many as it is given."""


def with_request(name, request):
    return WorkflowDefinition(
        name=name, version=1, steps=(replace(step("payment"), request=request),)
    )


ODD = (
    with_request("broken", lambda order, results: {"claim": results["claim"]}),
    with_request("large", lambda order, results: {"text": "x" * TOO_LARGE}),
    replace(only("payment"), name="retired", version=2),
)
"""Workflows that their authors should look at again."""


class Street(Scheduling):
    """All roles on one store. Neighbours stand before the other orders in everything that is read in order."""

    def __init__(self):
        super().__init__(*ODD, most=5000, buckets=3)
        self.neighbours, self.others, self.begun = [], {}, ()
        self.orders_ready, self.replies = [], []
        self.seen, self.failures = {}, []
        self.busy_until = defaultdict(lambda: NOW)
        there = self.app(
            instance_id="one",
            notice_tries=3,
            retention_days=30,
            pending_alert_seconds=100,
            sweep_alert_seconds=86_400,
        )
        self.one, self.inbox, self.operators = (
            there.engine.scheduler,
            there.engine.inbox,
            there.operations.orders,
        )
        self.timers = (self.one.poll, there.engine.supervisor.sweep, there.operations.relay.relay)
        self.seldom = (
            there.operations.stall_detector.check,
            there.operations.services.retention.sweep,
        )

    # Who lives there

    async def is_polled(self, ago, workflow="payment", bucket=BUCKET, **state):
        """An order that nobody has claimed, and whose wake-up was lost."""
        return await self.record(workflow, bucket, since=self.now - seconds(ago), **state)

    async def waits(self, *what, **more):
        """An order that nobody has claimed; its wake-up comes with the others."""
        order_id = await self.is_polled(*what, **more)
        self.orders_ready.append(OrderReady(order_id=order_id))
        return order_id

    async def runs(self, ago, workflow="payment", bucket=BUCKET):
        """An order that was claimed so long ago."""
        order_id = await self.record(workflow, bucket)
        order = await self.load(order_id)
        change = self.one.rules.claim(order, self.now, SOMEWHERE)
        (running,) = change.after.steps
        due = running.complete_by - seconds(ago)
        after = orders.with_steps(change.after, steps.running(running, complete_by=due))
        await self.store.commit(replace(change, after=after))
        self.begun += under_way(after)
        return order_id

    async def is_overdue(self, ago, **more):
        """An order that ran, and whose time is over."""
        return await self.runs(ago + 2 * TIMEOUT.total_seconds(), **more)

    async def is_answered(self, *what, **more):
        """An order that runs, and whose reply comes with the others."""
        order_id = await self.runs(*what, **more)
        step = (await self.load(order_id)).steps[0]
        self.replies.append(
            answer(step.name, order_id=order_id, complete_by=step.complete_by, result={})
        )
        return order_id

    async def failed(self, ago):
        """An order in Error, of which no operator has heard yet."""
        at = self.now - seconds(ago)
        order = self.made("payment", BUCKET, to=orders.in_error, updated_at=at)
        entry = HistoryEntry(at=at, actor="t", events=some("failed"))
        await self.store.commit(Transition(before=None, after=order, entry=entry))
        return order.order_id

    async def is_notified(self, ago, queue="status-other"):
        """An order whose sender is to hear that it was received."""
        ended = {"to": orders.processed, "reply_to": queue}
        return await self.record("payment", BUCKET, at=self.now - seconds(ago), **ended)

    async def is_over(self, ago):
        """An order that is to be removed."""
        at = self.now - timedelta(days=60) - seconds(ago)
        return await self.record("payment", BUCKET, to=orders.processed, updated_at=at)

    # What is wrong with one

    def rows(self, order_id):
        """All rows of its bucket, as the table holds them."""
        return self.store.table.partitions[bucket_of(order_id)]

    def key(self, order_id, kind):
        """The row of this kind of an order, its own or one of the work index."""
        rows = self.rows(order_id)
        (key,) = (key for key in rows if order_id in key and kind in key)
        return key

    def spoil(self, order_id, kind, *without, **columns):
        """Let a row of the order be as no version of the app writes it."""
        rows, key = self.rows(order_id), self.key(order_id, kind)
        count, row = rows[key]
        rows[key] = (
            count,
            {name: value for name, value in {**row, **columns}.items() if name not in without},
        )

    # What happens

    async def live(self):
        """Let all of them have their turn each second; return when what was to become of the others was seen."""
        for second in range(LASTS):
            await self._deliver("scheduler_order_ready", self.orders_ready, self._wake)
            await self._deliver("responses", self.replies, self._receive)
            for timer in (*self.timers, *self.seldom) if second % 6 == 0 else self.timers:
                await self._in_turn(timer)
            self._post()
            await self.tell("payment", rate=RATE)
            for number, begun in enumerate(batched(self.begun, MOST_BEGUN)):
                await self.tell("payment", f"another {number}", begun=begun)
            await self._see(second)
            self.now += seconds(1)
        return self.seen

    async def _in_turn(self, timer):
        """An outage ends a run early; whatever else ends one is a failure, and the timer comes again too."""
        try:
            await skip_overlapping_runs("a timer", timer, monotonic=self.now.timestamp)
        except Exception as failure:  # noqa: BLE001
            self.failures.append(failure)

    async def _deliver(self, function, messages, handle):
        while messages and self.busy_until[function] <= self.now:
            batch = messages[:BATCH]
            del messages[:BATCH]
            await run_all(map(handle, batch))

    async def _wake(self, order_ready):
        await self.inbox.on_order_ready(
            "scheduler_order_ready",
            order_ready.to_json().encode(),
            order_ready.order_id,
            Arrival(at=self.now),
        )

    async def _receive(self, reply):
        agent = reply.step  # here steps have the names of the agents that do them
        await self.inbox.receive(
            "responses", agent, reply.to_json().encode(), reply.request_id, Arrival(at=self.now)
        )

    async def retry_while_unavailable(self, function, work, patience_seconds=45.0):
        """Stands in for the one of `engine.runtime`, and keeps its function busy for as long without waiting."""
        try:
            return await work()
        except UnavailableError:
            self.busy_until[function] = self.now + seconds(patience_seconds)
            raise

    def _post(self):
        """Bring what was sent to where it is to go: agents answer everything within a second."""
        self.replies += [
            answer_to(request, result={}, complete_by=request.complete_by)
            for request in self.requests("payment")
        ]
        sent, self.parts.bus.sent = self.parts.bus.sent, []
        for message in sent:
            if message.queue == SCHEDULER_REQUESTS:
                self.orders_ready.append(decode(OrderReady, message.body))
            elif message.queue.endswith("-responses"):
                self.replies.append(decode_reply(message.body))
            else:
                self.parts.bus.sent.append(message)

    async def _see(self, second):
        store, parts = self.store, self.parts
        subjects = {event.subject for event in parts.events.published}
        notified = {message.correlation_id for message in parts.bus.sent}
        rows = await store.work_items(BUCKET, *all_of(WorkItemKind.ERROR), 5000)
        listed = {listed_as(row, ProcessState.ERROR).order_id for row in rows}
        for name, order_id in self.others.items():
            order = await store.load(order_id)
            processed = order and order.process_state is ProcessState.PROCESSED
            happened = {
                "processed": processed,
                "alert": f"orders/{order_id}" in subjects,
                "notice": order_id in notified,
                "listed": order_id in listed,
                "removed": order is None,
            }
            for what, has in happened.items():
                if has:
                    self.seen.setdefault(f"{name}: {what}", second)


KINDS = {
    "waits": 300,
    "is_polled": 300,
    "runs": 2,
    "is_overdue": 2,
    "is_answered": 2,
    "failed": 2,
    "is_notified": 2,
    "is_over": 2,
}
"""The kinds of orders, and how many seconds ago what they wait for began for the neighbours, to stand before others."""


async def street(beside=None, count=0, spoil=None, **state):
    """A street with so many neighbours of a kind, each of which something is wrong with, and one other of each kind."""
    there = Street()
    there.neighbours = [await getattr(there, beside)(KINDS[beside], **state) for _ in range(count)]
    for order_id in there.neighbours if spoil else ():
        await spoil(there, order_id)
    there.others = {kind: await getattr(there, kind)(1) for kind in KINDS}
    there.others["is late"] = await there.is_polled(120, workflow_version=99)
    return there
