"""Compute the cost of orders, and of a day and a month without orders (`make prices`).

The tables of docs/operations/cost.md are printed, and `--write` writes them there. They are computed from
the prices in prices.json, the operations of an order in measured/, and those of an HTTP call in
measured/concurrency.
"""

# ruff: noqa: RUF001 - a product is written with its sign

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from bench.concurrency import chosen
from bench.counted import columns, count_rows, measured, number, row

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs/operations/cost.md"
LIST: Mapping[str, Any] = json.loads((HERE / "prices.json").read_text())
PRICES: Mapping[str, Mapping[str, Any]] = LIST["prices"]
PRICING = "https://azure.microsoft.com/pricing/details/"
COUNTED_AT_A_RATE = "latency_", "latency_client_cpu_ms"
"""The prefix of the figures of orders at a fixed rate, and the name of their CPU time."""
BEGIN, END = "<!-- begin: make prices ARGS=--write, {} -->\n", "<!-- end: {} -->\n"

HOURS = 730
"""The hours of a month, as Azure counts."""
SECONDS = HOURS * 3600
MINUTES = SECONDS / 60
DAYS = HOURS / 24
MILLION = 1_000_000
ALL_USED = float("inf")
"""Stands for an idle month that uses up a free quota."""
PEEK_SECONDS = 10
"""How often the platform checks whether a queue has a message (Azure/azure-functions-host, issue 2679)."""
LEAST_SECONDS = 1
"""The least time of a working instance that is billed."""
RUN_KB, LINE_KB, ACCESS_KB = 2, 0.5, 1
"""Estimated log sizes of a run, a line, and a request to the tables."""
LINES_OF_ORDER, LINES_OF_RUN = 9, 2
STATUS_REQUESTS = 5
"""How often a customer's page reads an order."""
STORED_KB = 7
"""The size that an order leaves in the tables."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Deployed:
    """The default deployment. A test compares it with the templates and the app."""

    memory_gb: float = 2
    buckets: int = 8
    sweeps: int = 4
    """Runs per minute, as are the others."""
    relays: int = 2
    polls: int = 2
    watches: int = 1
    notifies: int = 2
    locks: int = 6
    """The timers, each with its own lock of the host."""
    lock_seconds: float = 15
    bus_triggers: int = 10
    queue_triggers: int = 4
    metric_rules: int = 7
    log_rules: int = 9
    places: int = 3
    test_seconds: int = 900

    @property
    def timers(self) -> int:
        """The timer runs per minute."""
        return self.sweeps + self.relays + self.polls + self.watches + self.notifies

    @property
    def requests_of_run(self) -> Mapping[str, int]:
        """The requests to tables of a run of each timer that finds nothing to do. A test counts them."""
        return {
            "sweeps": 2 * self.buckets + 1,
            "relays": self.buckets,
            "polls": self.buckets + 1,
            "watches": 4 * self.buckets + 3,
            "notifies": 1,
        }

    @property
    def requests(self) -> int:
        """The requests to tables per minute."""
        return sum(getattr(self, timer) * each for timer, each in self.requests_of_run.items())


@dataclass(frozen=True, slots=True)
class BillLine:
    """A line of the bill: the number of units and their price."""

    what: str
    usage: str
    price: str
    units: float
    used: float = 0
    """The free units that the month has already used."""

    @property
    def dollars(self) -> float:
        """The cost beyond the free quota."""
        price = PRICES[self.price]
        free = max(0, price.get("free", 0) - self.used)
        return float(max(0, self.units - free) * price["price"] / price["per"])

    @property
    def cells(self) -> Sequence[str]:
        """The item, the amount, its price, and the cost."""
        price = PRICES[self.price]
        unit = f"${_plain(price['price'])} / {price['unit']}"
        return [self.what, self.usage, unit, _dollars(self.dollars)]

    @property
    def day(self) -> Sequence[str]:
        """The units of a day, and their cost."""
        units, is_rule = self.units / DAYS, PRICES[self.price]["unit"] == "rule"
        many = f"{units:,.0f}" if units >= 10 else f"{units:.2f}"
        return ["" if is_rule else many, _dollars(self.dollars / DAYS)]


def _dollars(cost: float) -> str:
    return f"${cost:,.2f}" if cost >= 0.005 else ""


def _plain(price: float) -> str:
    return f"{price:.2f}" if round(price, 2) == price else f"{price:f}".rstrip("0")


def _millions(count: float) -> str:
    return f"{count / MILLION:.1f} million".replace(".0 ", " ")


def idle(deployed: Deployed) -> Sequence[BillLine]:
    """Return the cost of a month without orders."""
    return [*_namespace(deployed), *_timers(deployed), *_alerts(deployed), _idle_log(deployed)]


def _namespace(deployed: Deployed) -> Sequence[BillLine]:
    """Return the base charge, and the cost of the platform's checks whether to start an instance."""
    bus, queues = deployed.bus_triggers, deployed.queue_triggers
    peeks = SECONDS / PEEK_SECONDS
    at_bus = (
        f"{bus} queues every {PEEK_SECONDS} s, also when nothing runs: {_millions(bus * peeks)}"
    )
    return [
        BillLine("Service Bus Standard", f"base charge, {HOURS} hours", "service_bus_hour", HOURS),
        BillLine(
            "peeks", f"{at_bus}, of 13 million included", "service_bus_operation", bus * peeks
        ),
        BillLine(
            "peeks at Storage Queues",
            f"{queues} queues: {_millions(queues * peeks)}",
            "queue_operation",
            queues * peeks,
        ),
    ]


def _timers(deployed: Deployed) -> Sequence[BillLine]:
    # To get and to renew a lease is neither a write nor a read, but an "other" operation:
    # https://learn.microsoft.com/azure/storage/blobs/map-rest-apis-transaction-categories
    runs, sweeps = deployed.timers * MINUTES, deployed.sweeps * MINUTES
    requests, gb_s = deployed.requests * MINUTES, runs * LEAST_SECONDS * deployed.memory_gb
    usage = f"sweeps, relay, polls, stall detector, notify: {deployed.timers} a minute = {runs:,.0f}; 250,000 free"
    time = f"at least {LEAST_SECONDS} s × {deployed.memory_gb:g} GB each = {gb_s:,.0f} GB-s; 100,000 free"
    reads = f"{deployed.buckets} buckets: {deployed.requests} a minute = {_millions(requests)}"
    return [
        BillLine("timers' executions", usage, "execution", runs),
        BillLine("timers' time", time, "gigabyte_second", gb_s),
        BillLine("requests to tables", reads, "table_transaction", requests),
        BillLine("lease", f"{deployed.sweeps} a minute = {sweeps:,.0f}", "blob_other", sweeps),
        _locks(deployed),
    ]


def _locks(deployed: Deployed) -> BillLine:
    """Return the cost of the timers' locks, each of which is renewed at half its time."""
    pause = deployed.lock_seconds / 2
    renewals = deployed.locks * SECONDS / pause
    counted = f"{deployed.locks}, each renewed every {pause:g} s: {_millions(renewals)}"
    return BillLine("timers' locks", counted, "blob_other", renewals)


def _alerts(deployed: Deployed) -> Sequence[BillLine]:
    rules, tests = deployed.log_rules, deployed.places * SECONDS / deployed.test_seconds
    usage = f"{deployed.places} places every {deployed.test_seconds // 60} minutes = {tests:,.0f}"
    of_metrics = deployed.metric_rules
    return [
        BillLine("alert rules on metrics", f"{of_metrics}", "metric_rule", of_metrics),
        BillLine("alert rules on the log", f"{rules}, every 5 minutes", "log_rule", rules),
        BillLine("availability test", usage, "web_test", tests),
    ]


def _idle_log(deployed: Deployed) -> BillLine:
    runs, sweeps = deployed.timers * MINUTES, deployed.sweeps * MINUTES
    log = (runs * RUN_KB + sweeps * LINE_KB) / MILLION
    access = deployed.requests * MINUTES * ACCESS_KB / MILLION
    own = f"{runs:,.0f} runs × {RUN_KB} KB, and a line for each sweep = {log:.1f} GB"
    usage = f"{own}; access log, a KB for each request = {access:.1f} GB; 5 GB free"
    return BillLine("log", usage, "log_gigabyte", log + access)


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderUsage:
    """The usage of an order, counted by the benchmark in a process for each function, as on Azure."""

    bus_messages: float
    bus_received: float
    bus_settled: float
    table_transactions: float
    cpu_ms: float
    http_cpu_ms: float

    @property
    def http_calls(self) -> float:
        """The calls that place and follow an order."""
        return 1 + STATUS_REQUESTS

    @property
    def bus_operations(self) -> float:
        """The operations: sent, received, settled."""
        return self.bus_messages + self.bus_received + self.bus_settled

    @property
    def executions(self) -> float:
        """One for each message, although several may share one, and one for each HTTP call."""
        return 1 + self.bus_received + self.http_calls

    @classmethod
    def of(cls, counted: Mapping[str, Any], prefix: str, cpu: str) -> "OrderUsage":
        """Read the usage from the results of the benchmark with this prefix."""
        return cls(
            bus_messages=counted[f"{prefix}service_bus_messages"],
            bus_received=counted[f"{prefix}service_bus_received"],
            bus_settled=counted[f"{prefix}host_service_bus_settlements"],
            table_transactions=counted[f"{prefix}table_transactions"],
            cpu_ms=counted[cpu],
            http_cpu_ms=_http_cpu_ms(),
        )


def _http_cpu_ms() -> float:
    """Return the CPU time of a call at the concurrency of an instance."""
    text = (HERE / "measured/concurrency/one-core.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    at_once = chosen(lines)
    return next(float(line["cpu_ms"]) for line in lines if line["at_once"] == at_once)


def orders(order: OrderUsage, deployed: Deployed) -> Sequence[BillLine]:
    """Return the additional cost of a million orders in a month, without computing."""
    bus, rows = order.bus_operations * MILLION, order.table_transactions * MILLION
    peeked = deployed.bus_triggers * SECONDS / PEEK_SECONDS
    runs, access = order.executions * MILLION, rows * ACCESS_KB / MILLION
    lines = (LINES_OF_ORDER + LINES_OF_RUN * order.executions) * MILLION
    log, stored = (runs * RUN_KB + lines * LINE_KB) / MILLION, STORED_KB
    sent = f"{number(order.bus_messages)} messages × (send, receive, settle) = {_millions(bus)}"
    ran = f"{number(order.executions)} runs of functions, {order.http_calls:g} of them HTTP calls = {_millions(runs)}"
    logged = f"{_millions(runs)} runs × {RUN_KB} KB, unsampled, and {_millions(lines)} lines"
    return [
        BillLine(
            "Service Bus", f"{sent}, of 13 million included", "service_bus_operation", bus, peeked
        ),
        BillLine("executions", ran, "execution", runs, ALL_USED),
        BillLine(
            "table", f"{_millions(rows)}, looks and polls included", "table_transaction", rows
        ),
        BillLine("queue", "put, get, delete = 3 million", "queue_operation", 3 * MILLION),
        BillLine("log", f"{logged} = {log:.0f} GB", "log_gigabyte", log, ALL_USED),
        BillLine(
            "access log", f"a KB for each = {access:.0f} GB", "log_gigabyte", access, ALL_USED
        ),
        BillLine("stored state", f"{stored} GB, a month", "stored_gigabyte", stored),
    ]


def at_once(order: OrderUsage, deployed: Deployed) -> BillLine:
    """Return the cost of computing if many executions share an instance."""
    cpu_ms = order.cpu_ms + order.http_calls * order.http_cpu_ms
    seconds = cpu_ms * MILLION / 1000
    usage = f"{cpu_ms:.0f} ms of CPU each = {seconds:,.0f} s × {deployed.memory_gb:g} GB"
    units = seconds * deployed.memory_gb
    return BillLine("computing, at once", usage, "gigabyte_second", units, ALL_USED)


def one_by_one(order: OrderUsage, deployed: Deployed) -> BillLine:
    """Return the cost of computing if no two executions ever share an instance."""
    runs = order.executions * MILLION
    usage = f"or {_millions(runs)} × {LEAST_SECONDS} s × {deployed.memory_gb:g} GB"
    units = runs * LEAST_SECONDS * deployed.memory_gb
    return BillLine("computing, one by one", usage, "gigabyte_second", units, ALL_USED)


def of_an_order(counted: Mapping[str, Any], prefix: str, cpu: str) -> Mapping[str, float]:
    """Return the cost of an order in dollars, beyond the cost of an idle month.

    It uses the benchmark's counts with this prefix. There are two results: `usd_at_once` if many executions share an
    instance, and `usd_one_by_one` if each execution has an instance of its own.
    """
    order, deployed = OrderUsage.of(counted, prefix, cpu), Deployed()
    besides = sum(line.dollars for line in orders(order, deployed))
    return {
        name: round((besides + computing(order, deployed).dollars) / MILLION, 7)
        for name, computing in (("usd_at_once", at_once), ("usd_one_by_one", one_by_one))
    }


def tables() -> Mapping[str, str]:
    """Return the tables of the page, by name."""
    deployed = Deployed()
    rows = {
        "order": _order(),
        "idle": _idle(idle(deployed)),
        "orders": _orders(deployed),
        "prices": _prices(),
    }
    return {name: "\n".join([*lines, ""]) for name, lines in rows.items()}


def _order() -> Sequence[str]:
    """Return what an order takes and costs, in each shape."""
    figures = [measured(*column) for column in columns()]
    usages = [OrderUsage.of(counted, *COUNTED_AT_A_RATE) for counted in figures]
    dollars = [list(of_an_order(counted, *COUNTED_AT_A_RATE).values()) for counted in figures]
    calls = f"CPU of {usages[0].http_calls:g} HTTP calls, ms"
    return [
        *count_rows(),
        row(calls, (number(usage.http_calls * usage.http_cpu_ms) for usage in usages)),
        row("price", (f"${least:.5f} to ${most:.5f}" for least, most in dollars)),
        row("price of a million", (_from_to(*(MILLION * price for price in of)) for of in dollars)),
    ]


def _from_to(least: float, most: float) -> str:
    return f"${least:,.0f} to ${most:,.0f}"


def _idle(lines: Sequence[BillLine]) -> Sequence[str]:
    """Return what a month and a day without orders take and cost."""
    total = sum(line.dollars for line in lines)
    together = ["", "", f"**about ${total:,.0f}**", "", f"**about ${total / DAYS:.2f}**"]
    return [
        row("", ["how much in a month", "price", "cost of a month", "a day", "cost of a day"]),
        "|---|---|---|---|---|---|",
        *(row(line.cells[0], [*line.cells[1:], *line.day]) for line in lines),
        row("**together**", together),
    ]


def _orders(deployed: Deployed) -> Sequence[str]:
    """Return the cost of a million orders of the shop on Azure, where each function has its own processes."""
    order = OrderUsage.of(measured("shop", "each"), *COUNTED_AT_A_RATE)
    lines = orders(order, deployed)
    computing = [at_once(order, deployed), one_by_one(order, deployed)]
    besides = sum(line.dollars for line in lines)
    total = _from_to(*(besides + line.dollars for line in computing))
    return [
        row("", ["how much", "price", "a million orders"]),
        "|---|---|---|---|",
        *(row(line.cells[0], line.cells[1:]) for line in [*lines, *computing]),
        row("**together**", ["", "", f"**{total}**"]),
    ]


def _prices() -> Sequence[str]:
    return [
        f"{LIST['region']}, {LIST['currency']}, as published in {published()}:",
        "",
        row("price of", ["price", "free in a month", "source"]),
        "|---|---|---|---|",
        *(_price(price) for price in PRICES.values()),
    ]


def _price(price: Mapping[str, Any]) -> str:
    unit, free = f"${_plain(price['price'])} / {price['unit']}", price.get("free")
    page = price["source"].removeprefix(PRICING).strip("/")
    return row(price["what"], [unit, f"{free:,}" if free else "", f"[{page}]({price['source']})"])


def published() -> str:
    """Return the month of the price list in words."""
    return f"{datetime.strptime(LIST['published'], '%Y-%m'):%B %Y}"  # noqa: DTZ007 - a month has no zone


def written(text: str) -> str:
    """Return the page with these tables. Raises `ValueError` if it has no place for one."""
    for name, table in tables().items():
        begin, end = BEGIN.format(name), END.format(name)
        start, stop = text.index(begin) + len(begin), text.index(end)
        text = text[:start] + "\n" + table + "\n" + text[stop:]
    return text


@click.command(help=__doc__)
@click.option(
    "--write", "to_be_written", is_flag=True, help="Put the tables into docs/operations/cost.md."
)
def main(*, to_be_written: bool) -> None:
    if to_be_written:
        PAGE.write_text(written(PAGE.read_text()))
        return
    click.echo("\n".join(tables().values()))


if __name__ == "__main__":
    main()
