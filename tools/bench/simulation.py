"""Estimates the cost of an order and the first limit reached, by a small model: `make simulation ARGS=--help`.

The model runs in virtual time. It has the functions with their processes and queues, the rules by which they write,
send and refresh, and Azure's limits. Nothing fails in it, and the agents always have capacity. The time of a hop is a
guess: at a moderate rate, counts hardly depend on it. The counts have the same names as in the line of `make bench`.
"""

import json
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil
from random import Random
from statistics import median
from typing import Any

import click
import simpy

from bench.simulated import (
    REFRESH_INTERVAL,
    Commit,
    Decide,
    Gate,
    Limits,
    Setup,
    SimulatedOrder,
    SimulatedProcess,
)
from bench.workflows import MEASURED, VARIANTS
from engine.declarations.workflow import WorkflowDefinition

Work = Generator[simpy.Event, Any, Any]

BATCH = 64
"""The messages that a scheduler function takes at a time. It takes no more until they are done."""

SUBMISSIONS = 32
"""The submissions that a process takes at a time."""

SUBMISSION_PAUSE = 0.1
"""The seconds between two polls of an empty submission queue."""

HEALTH_INTERVAL = 1.0
"""The seconds between two health reports of an agent."""

IN_A_TRANSACTION = 100
"""The most entities in a transaction."""

READ = 0.5
"""The time of a read, in hops."""

SHAPE = 8
"""The shape of the distribution of times. The greater it is, the closer are the times, and the more replies meet."""

FIRST_PAGE, PAGE = 100, 1000
"""The rows of a bucket in the first query of a refresh, and in each further one."""

LISTS_DUE = 2
"""The lists of due items in a bucket: running orders, and orders that wait for an external event."""

LONGEST = 600.0
"""A run is aborted after this many seconds of virtual time."""


class Simulation:
    """A run of the model."""

    def __init__(self, setup: Setup, seed: int = 1) -> None:
        self.setup = setup
        self.env = simpy.Environment()
        self.counts: Counter[str] = Counter()
        self.came: dict[int, float] = {}
        self._orders: dict[int, SimulatedOrder] = {}
        """The recorded orders that have not ended."""
        self._buckets: dict[int, int] = {}
        self.took: list[float] = []
        self._random = Random(seed)  # noqa: S311 - no secrets here
        self._steps = {step.name: step for step in setup.workflow.steps}
        agents = sorted({step.capability for step in setup.workflow.steps})
        self._processes = self._start_processes(
            ["submission", "wake", "poll", *self._functions_of(agents)]
        )
        self._queues = {
            name: simpy.Store(self.env) for name in ["wake", *self._functions_of(agents)]
        }
        self._submitted: deque[int] = deque()
        self._bus = Gate(rate=setup.limits.bus_credits)
        self._account = Gate(rate=setup.limits.account_requests)
        self._queue = Gate(rate=setup.limits.queue_messages)
        self._partitions = [
            Gate(rate=setup.limits.partition_entities) for _ in range(setup.buckets)
        ]
        self._all_done = self.env.event()

    @staticmethod
    def _functions_of(agents: Iterable[str]) -> list[str]:
        return [f"{agent}-{kind}" for agent in agents for kind in ("requests", "responses")]

    def _start_processes(
        self, functions: Sequence[str]
    ) -> Mapping[str, Sequence[SimulatedProcess]]:
        if self.setup.process_per_function:
            return {name: self._new_processes() for name in functions}
        return dict.fromkeys(functions, self._new_processes())

    def _new_processes(self) -> Sequence[SimulatedProcess]:
        return [SimulatedProcess() for _ in range(self.setup.instances)]

    # The run

    def run(self) -> "Simulation":
        """Submit the orders, and wait until all have ended or the time is up."""
        self.env.process(self._orders_come())
        self._timers()
        for process in self._processes["submission"]:
            self.env.process(self._submission(process))
        for name in self._queues:
            serve = self._agent if name.endswith("requests") else self._in_batches
            for process in self._processes[name]:
                self.env.process(serve(name, process))
        self.env.run(until=self._all_done | self.env.timeout(LONGEST))
        return self

    def per_order(self) -> dict[str, float]:
        """Return the counts for each order."""
        return {
            name: round(number / len(self.came), 3) for name, number in sorted(self.counts.items())
        }

    def shares(self) -> dict[str, float]:
        """Return the used share of each limit while orders are submitted. More than 1 exceeds the limit."""
        seconds = self.setup.seconds
        gates = {"bus": self._bus, "table account": self._account, "submission queue": self._queue}
        fullest = max(self._partitions, key=lambda gate: gate.passed)
        found = {
            name: gate.passed / gate.rate / seconds
            for name, gate in {**gates, "partition": fullest}.items()
        }
        return {name: round(share, 3) for name, share in found.items()}

    def _orders_come(self) -> Work:
        for number in range(round(self.setup.rate * self.setup.seconds)):
            self.came[number] = self.env.now
            self._buckets[number] = self._random.randrange(self.setup.buckets)
            self._submitted.append(number)
            self.counts["storage_queue_operations"] += 1
            yield self.env.timeout(1 / self.setup.rate)

    def _timers(self) -> None:
        setup, poller = self.setup, self._processes["poll"][0]
        self._at_times(setup.poll, lambda: self._refresh(poller, at_once=True))
        self._at_times(setup.sweep, self._sweep)
        self._at_times(
            setup.relay, lambda: self._request("table_agenda_queries", times=setup.buckets)
        )
        self._at_times(setup.watch, self._watch)

    def _at_times(self, period: float, work: Callable[[], Work]) -> None:
        def again() -> Work:
            yield self.env.timeout(period / 2)
            while True:
                yield from work()
                yield self.env.timeout(period)

        self.env.process(again())

    def _sweep(self) -> Work:
        lists = LISTS_DUE * self.setup.buckets
        yield from self._request("table_agenda_queries", times=lists)
        yield from self._request("table_writes", entities=1)

    def _watch(self) -> Work:
        """Check for waiting, overdue and held orders, agents' health, conditions, and the last sweep."""
        lists = (2 + LISTS_DUE) * self.setup.buckets
        yield from self._request("table_agenda_queries", times=lists + 2)
        yield from self._request("table_point_reads")

    # The functions

    def _submission(self, process: SimulatedProcess) -> Work:
        while True:
            if not self._submitted:
                yield self.env.timeout(SUBMISSION_PAUSE)
                continue
            found = [
                self._submitted.popleft() for _ in range(min(SUBMISSIONS, len(self._submitted)))
            ]
            self._account.wait(
                self.env.now, 2 * len(found) + 1
            )  # put and delete; what comes at once is got at once
            yield self.env.timeout(self._queue.wait(self.env.now, 2 * len(found)))
            for number in found:
                self.env.process(self._record(process, number))
            yield self.env.timeout(self._hop())

    def _record(self, process: SimulatedProcess, number: int) -> Work:
        yield from self._commit(
            process, number, SimulatedOrder(version=0), SimulatedOrder(), entities=4
        )
        yield from self._send("wake", number)

    def _in_batches(self, name: str, process: SimulatedProcess) -> Work:
        """Take the available messages, and wait until all of them are done."""
        queue, handle = self._queues[name], self._wake if name == "wake" else self._receive
        while True:
            batch = [(yield from self._received(queue))]
            while queue.items and len(batch) < BATCH:
                batch.append((yield from self._received(queue)))
            yield self.env.all_of([self.env.process(handle(process, message)) for message in batch])
            yield self.env.timeout(self._hop())

    def _received(self, queue: simpy.Store) -> Work:
        message = yield queue.get()
        self.counts["service_bus_received"] += 1
        yield self.env.timeout(self._bus.wait(self.env.now, 1))
        return message

    def _wake(self, process: SimulatedProcess, number: int) -> Work:
        yield from self._refresh(process)
        yield from self._apply(process, number, self._claimed)

    def _claimed(self, order: SimulatedOrder) -> SimulatedOrder | None:
        workflow = self.setup.workflow
        return order.go_on(workflow) if order.startable(workflow) else None

    def _receive(self, process: SimulatedProcess, message: tuple[int, str]) -> Work:
        number, step = message
        yield from self._refresh(process)

        def decide(order: SimulatedOrder) -> SimulatedOrder | None:
            if step not in order.running:
                return None
            running = {name: began for name, began in order.running.items() if name != step}
            return replace(order, done=order.done | {step}, running=running).go_on(
                self.setup.workflow
            )

        yield from self._apply(process, number, decide)

    def _agent(self, name: str, process: SimulatedProcess) -> Work:
        while True:
            message = yield from self._received(self._queues[name])
            self.env.process(self._call(name, process, message))

    def _call(self, name: str, process: SimulatedProcess, message: tuple[int, str]) -> Work:
        if self.env.now - process.reported_at.get(name, -HEALTH_INTERVAL) >= HEALTH_INTERVAL:
            process.reported_at[name] = self.env.now
            yield from self._request("table_writes", entities=2)
        self.counts["remote_calls"] += 1
        yield self.env.timeout(self._about(self.setup.call))
        yield from self._send(name.replace("requests", "responses"), message)

    # What they do

    def _refresh(self, process: SimulatedProcess, *, at_once: bool = False) -> Work:
        if not at_once and self.env.now - process.refreshed_at < REFRESH_INTERVAL:
            return
        process.refreshed_at = self.env.now
        rows = Counter(dict.fromkeys(range(self.setup.buckets), 0))
        for number, order in self._orders.items():
            rows[self._buckets[number]] += len(order.work_items(self.setup.workflow))
        queries = 1 + sum(
            1 + ceil(max(0, found - FIRST_PAGE + 1) / PAGE) for found in rows.values()
        )
        self.counts.update(looks=1, table_look_queries=queries, table_entities_read=rows.total())
        waits = [
            self._partitions[bucket].wait(self.env.now, found) for bucket, found in rows.items()
        ]
        yield self.env.timeout(max(waits))
        yield from self._request("table_agenda_queries", times=queries)

    def _apply(self, process: SimulatedProcess, number: int, decide: Decide) -> Work:
        """Change the order by `decide`, on the process's last version or on a read one. Repeat after a conflict."""
        known, after = None, None
        while not (known and after and (yield from self._change(process, number, known, after))):
            known = process.written.pop(number, None)
            after = known and decide(known)
            if after is None:
                known = yield from self._load(number)
                after = decide(known)
            if after is None:
                return
        for step in sorted(after.running.keys() - known.running.keys()):  # the same in each run
            yield from self._send(f"{self._steps[step].capability}-requests", (number, step))

    def _load(self, number: int) -> Work:
        yield from self._request("table_loads")
        self.counts["table_entities_read"] += 2
        return self._orders[number]

    def _change(
        self, process: SimulatedProcess, number: int, before: SimulatedOrder, after: SimulatedOrder
    ) -> Work:
        rows_before, rows_after = (
            order.work_items(self.setup.workflow) for order in (before, after)
        )
        listed = int(after.done == self._steps.keys())  # the row that lists an ended order
        entities = 2 + len(rows_before - rows_after) + len(rows_after) + listed
        if not (yield from self._commit(process, number, before, after, entities)):
            yield from self._request("table_point_reads")
            return False
        if after.done == self._steps.keys():
            self._ends(number)
        return True

    def _ends(self, number: int) -> None:
        self.took.append(self.env.now - self.came[number])
        del self._orders[number]
        if len(self.took) == round(self.setup.rate * self.setup.seconds):
            self._all_done.succeed()

    def _commit(
        self,
        process: SimulatedProcess,
        number: int,
        before: SimulatedOrder,
        after: SimulatedOrder,
        entities: int,
    ) -> Work:
        """Write the change together with all others for the same bucket. Return whether no other writer was first."""
        bucket, ended = self._buckets[number], self.env.event()
        commit = Commit(order=number, before=before, after=after, entities=entities, ended=ended)
        process.waiting[bucket].append(commit)
        if bucket not in process.flushing:
            process.flushing.add(bucket)
            self.env.process(self._flush_all(process, bucket))
        written = yield ended
        if written:
            process.written[number] = after
        return written

    def _flush_all(self, process: SimulatedProcess, bucket: int) -> Work:
        while waiting := process.waiting[bucket]:
            group = list(_fitting(waiting))
            del waiting[: len(group)]
            yield from self._flush(bucket, group)
        process.flushing.discard(bucket)

    def _flush(self, bucket: int, group: Sequence[Commit]) -> Work:
        """Write all changes together, then without the first conflicting one, then each alone."""
        late = yield from self._transact(bucket, group)
        if late is None:
            return
        others = [commit for commit in group if commit is not late]
        if others and (yield from self._transact(bucket, others)):
            for commit in others:
                if not commit.ended.triggered:
                    yield from self._transact(bucket, [commit])

    def _transact(self, bucket: int, group: Sequence[Commit]) -> Work:
        """Return the first conflicting change, for which nothing is written. None if all are written."""
        entities = sum(commit.entities for commit in group)
        yield self.env.timeout(self._partitions[bucket].wait(self.env.now, entities))
        yield from self._request("table_writes", entities=entities)
        versions = {
            commit.order: self._orders.get(commit.order, SimulatedOrder(version=0)).version
            for commit in group
        }
        late = next(
            (commit for commit in group if commit.before.version != versions[commit.order]), None
        )
        if late:
            late.ended.succeed(value=False)
            return late
        for commit in group:
            self._orders[commit.order] = commit.after
            commit.ended.succeed(value=True)
        return None

    def _hop(self) -> float:
        return self._about(self.setup.hop)

    def _about(self, seconds: float) -> float:
        """Return a random time around this one, mostly between half and twice as long."""
        return self._random.gammavariate(SHAPE, seconds / SHAPE)

    def _request(self, name: str, *, times: int = 1, entities: int = 0) -> Work:
        self.counts[name] += times
        self.counts["table_transactions"] += times
        self.counts["table_entities"] += entities
        hop = self._hop() if entities else READ * self._hop()
        yield self.env.timeout(self._account.wait(self.env.now, times) + hop)

    def _send(self, queue: str, message: Any) -> Work:
        self.counts["service_bus_messages"] += 1
        yield self.env.timeout(self._bus.wait(self.env.now, 1) + self._hop())
        yield self._queues[queue].put(message)


def _fitting(waiting: Iterable[Commit]) -> Iterator[Commit]:
    """Yield the first changes that fit into one transaction, in which no order may occur twice."""
    entities, orders = 0, set[int]()
    for commit in waiting:
        entities += commit.entities
        if orders and (entities > IN_A_TRANSACTION or commit.order in orders):
            return
        orders.add(commit.order)
        yield commit


def workflow_of(variant: str) -> WorkflowDefinition:
    """Return the workflow with which orders of this variant start. Raises LookupError."""
    workflow = MEASURED.workflows.latest(VARIANTS[variant])
    if workflow is None:
        raise LookupError(variant)
    return workflow


@click.command(context_settings={"max_content_width": 100, "show_default": True})
@click.option(
    "--variant",
    type=click.Choice(sorted(VARIANTS)),
    default="shop",
    help="Which steps an order has.",
)
@click.option("--rate", type=click.FloatRange(0.1), default=20.0, help="Orders per second.")
@click.option("--seconds", type=click.FloatRange(1), default=10.0, help="How long orders come.")
@click.option(
    "--each/--one",
    "process_per_function",
    default=True,
    help="Whether each function has processes of its own.",
)
@click.option(
    "--instances", type=click.IntRange(1), default=1, help="Processes of each function, or of all."
)
@click.option(
    "--buckets", type=click.IntRange(1, 100), default=8, help="Partitions of the table `orders`."
)
@click.option(
    "--hop-ms", type=click.FloatRange(0.1), default=5.0, help="A request, or the way of a message."
)
@click.option("--call-ms", type=click.FloatRange(0.1), default=5.0, help="A call of a service.")
@click.option(
    "--bus-credits",
    type=click.FloatRange(1),
    default=Limits().bus_credits,
    help="Of the bus, per second.",
)
def main(variant: str, hop_ms: float, call_ms: float, bus_credits: float, **given: Any) -> None:
    """Print what an order costs, how much of each limit that asks for, and which one is full first, as JSON."""
    setup = Setup(
        workflow=workflow_of(variant),
        hop=hop_ms / 1000,
        call=call_ms / 1000,
        limits=Limits(bus_credits=bus_credits),
        **given,
    )
    simulation = Simulation(setup).run()
    shares = simulation.shares()
    click.echo(
        json.dumps(
            {
                "variant": variant,
                "rate": given["rate"],
                "each": given["process_per_function"],
                "instances": given["instances"],
                "buckets": given["buckets"],
                "ended": len(simulation.took),
                "p50_ms": round(median(simulation.took) * 1000, 1),
                **simulation.per_order(),
                "shares": shares,
                "full_first": max(shares, key=lambda part: shares[part]),
            }
        )
    )


if __name__ == "__main__":
    main()
