"""The command line `python -m bench`."""

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from bench import phases
from bench.beside import NoFiguresError, alternating
from bench.counted import counts_of, number
from bench.driver import Driver, running
from bench.legend import LEGEND
from bench.phases import Result
from bench.prices import LIST, of_an_order
from bench.workflows import VARIANTS
from functions_alone.proxies import bypass_proxies

PHASES = ("throughput", "latency", "crash")

SHAPES = {"one": ("one",), "each": ("each",), "both": ("one", "each")}
"""The processes of the functions: one for all, or one for each, as on Azure."""

FIGURES = ("orders_per_s", "p50_ms", "p99_ms", "lost", "duplicate_calls", "recovery_s", "order_usd")
"""The figures in every line, even if they were not measured."""

AS_DEPLOYED = {
    "STEP_TIMEOUT_SECONDS": "60",
    "REMOTE_CALL_TIMEOUT_SECONDS": "10",
    "REPLY_MARGIN_SECONDS": "1",
}
"""The default time limits of a deployment. The embedded stack has shorter ones for people who watch it.

The limits of open requests at an agent follow from them.
"""

QUICK = {
    "STEP_TIMEOUT_SECONDS": "2",
    "CLOCK_TOLERANCE_SECONDS": "0.5",
    "REPLY_MARGIN_SECONDS": "0.3",
    "REMOTE_CALL_TIMEOUT_SECONDS": "0.8",
    "SUPERVISOR_SCHEDULE": "* * * * * *",
    "SCHEDULER_POLL_SCHEDULE": "* * * * * *",
    "LOCAL_SHUTDOWN_SECONDS": "2",
    "LOCAL_QUEUE_LOCK_SECONDS": "2",
    "LOCAL_TIMER_LOCK_SECONDS": "2",
}
"""Short time limits for the crash phase, so that a recovery takes seconds. The same as in `tests/system`."""


BUSY_CORES = 0.5
"""The most cores that other processes may use on average. Above this, a throughput is not valid."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """The options of a measurement."""

    workflow: str
    hosts: int
    orders: int
    rate: float
    seconds: float
    crash_orders: int
    max_s: float
    phases: Sequence[str]
    settings: Mapping[str, str]


def _print_legend(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:  # noqa: FBT001
    if wanted:
        click.echo("\n".join(f"{name:30} {what}" for name, what in LEGEND.items()))
        ctx.exit()


@click.command(context_settings={"max_content_width": 100, "show_default": True})
@click.option(
    "--variant",
    type=click.Choice(sorted(VARIANTS)),
    default="1-step",
    help="Which steps an order has.",
)
@click.option(
    "--shape",
    type=click.Choice(list(SHAPES)),
    default="both",
    help="A process for each function, or one.",
)
@click.option(
    "--hosts", type=click.IntRange(1, 8), default=1, help="Functions hosts that share the work."
)
@click.option(
    "--orders", type=click.IntRange(1), default=1000, help="Orders of the throughput phase."
)
@click.option(
    "--rate",
    type=click.FloatRange(0.1),
    default=20.0,
    help="Orders per second of the latency phase.",
)
@click.option(
    "--seconds", type=click.FloatRange(1), default=10.0, help="How long the latency phase submits."
)
@click.option(
    "--crash-orders", type=click.IntRange(10), default=300, help="Orders of the crash phase."
)
@click.option("--max-s", type=click.FloatRange(1), default=60.0, help="When a phase is given up.")
@click.option("--phases", "chosen", default=",".join(PHASES), help="Which phases to run.")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Replace a setting of the app."
)
@click.option(
    "--beside",
    metavar="COMMAND",
    help="Run this too, in turns: it prints such a line. The output is what we have of its figures.",
)
@click.option(
    "--pairs", type=click.IntRange(1), default=7, help="How often, beside another command."
)
@click.option(
    "--legend",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_legend,
    help="Say what the figures mean, and end.",
)
def main(
    variant: str,
    shape: str,
    chosen: str,
    settings: tuple[str, ...],
    **given: Any,
) -> None:
    """Run orders through the embedded stack; print one JSON line with the results.

    throughput: all orders at once, and what each of them costs, in operations and in dollars. latency: at a fixed rate, from when an order was due
    until `Processed` is durable, and what each costs then. crash: SIGKILL of a host once 30 % are processed, a new one
    0.5 s later.

    At the top stand the results with one process for all functions, in `each` those with a process for each.
    """
    wanted = [name.strip() for name in chosen.split(",")]
    if unknown := set(wanted) - set(PHASES):
        raise click.BadParameter(
            f"there is no phase {', '.join(sorted(unknown))}", param_hint="--phases"
        )
    own = dict(_setting(text) for text in settings)
    bypass_proxies()
    beside, pairs = given.pop("beside"), given.pop("pairs")
    if beside is not None:
        _beside(beside, pairs)
        return
    options = Options(workflow=VARIANTS[variant], phases=wanted, settings=own, **given)
    measured = asyncio.run(_measure_all(options, SHAPES[shape]))
    result: Result = {
        "peer": "scheduler-agent-supervisor",
        "variant": variant,
        "orders": options.orders,
        **dict.fromkeys(FIGURES),
        "store": "Azurite 3 (in memory) + local Service Bus broker",
        "hosts": options.hosts,
        **measured.get("one", {}),
        "each": measured.get("each"),
    }
    click.echo(json.dumps(result))
    say("what the figures mean: make bench ARGS=--legend")


def _beside(command: str, pairs: int) -> None:
    """Print the ratios between a run with these options and another command."""
    own = [sys.executable, "-m", "bench", *_without(sys.argv[1:], "--beside", "--pairs")]
    try:
        click.echo(json.dumps(alternating(own, command, pairs, say)))
    except NoFiguresError as error:
        raise click.ClickException(str(error)) from error


def _without(arguments: Sequence[str], *options: str) -> Iterator[str]:
    """Yield the arguments without these options and their values."""
    rest = iter(arguments)
    for argument in rest:
        name, equals, _ = argument.partition("=")
        if name not in options:
            yield argument
        elif not equals:
            next(rest, None)


async def _measure_all(options: Options, shapes: Sequence[str]) -> dict[str, Result]:
    return {shape: await _measure(options, shape) for shape in shapes}


async def _measure(options: Options, shape: str) -> Result:
    """Run the chosen phases with the functions in processes of this shape."""
    settings = {"LOCAL_FUNCTION_PROCESSES": shape, **options.settings}
    result: Result = {}
    if {"throughput", "latency"} & set(options.phases):
        async with _warm(options, AS_DEPLOYED | settings) as driver:
            result |= await _undisturbed(driver, options, shape)
    if "crash" in options.phases:
        async with _warm(options, QUICK | settings) as driver:
            say(f"{shape}, crash: {options.crash_orders} orders")
            result |= await phases.crash(driver, options.crash_orders, options.max_s)
            say(
                f"{shape}, crash: {result['lost']} lost, {result['unfinished']} unfinished,"
                f" recovery {result['recovery_s']} s"
            )
    return result


async def _undisturbed(driver: Driver, options: Options, shape: str) -> Result:
    result: Result = {}
    if "latency" in options.phases:
        say(f"{shape}, latency: {options.rate:g} orders/s for {options.seconds:g} s")
        result |= await phases.latency(driver, options.rate, options.seconds)
        result["latency_order_usd"] = of_an_order(result, "latency_", "latency_client_cpu_ms")
        say(f"{shape}, latency: p50 {result['p50_ms']} ms, p99 {result['p99_ms']} ms")
        say(_counts_text(result, "latency_"))
    if "throughput" in options.phases:
        say(f"{shape}, throughput: {options.orders} orders")
        result |= await phases.throughput(driver, options.orders, options.max_s)
        result["order_usd"] = of_an_order(result, "", "client_cpu_ms")
        say(
            f"{shape}, throughput: {result['orders_per_s']} orders/s, {result['done']} of {options.orders} processed"
        )
        say(_counts_text(result, ""))
        say(f"{shape}, throughput: {_cost_text(result['order_usd'])}")
        for fault in _why_not_valid(result):
            say(f"{shape}, not valid: {fault}")
    return result


def _why_not_valid(result: Result) -> Iterator[str]:
    """Yield the reasons why a throughput says nothing about the system."""
    others = result["cores"]["others_on_machine"]
    if others > BUSY_CORES:
        yield f"the machine was busy (others took {others} cores)"
    if unfinished := result["orders"] - result["done"]:
        yield f"{unfinished} orders were unfinished when the time was up (--max-s)"


@asynccontextmanager
async def _warm(options: Options, settings: Mapping[str, str]) -> AsyncIterator[Driver]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        async with running(Path(folder), options.hosts, options.workflow, settings) as driver:
            say(f"stack is ready, hosts {[host.pid for host in driver.stack.hosts]}")
            await phases.warm_up(driver)
            yield driver


def _counts_text(result: Result, prefix: str) -> str:
    """Describe what an order took, by the figures with this prefix."""
    counts = counts_of(result, prefix).items()
    return "\n".join(f"  {number(count):>7} {what}" for what, count in counts)


def _cost_text(order_usd: Mapping[str, float]) -> str:
    least, most = (dollars * 1_000_000 for dollars in order_usd.values())
    return f"a million such orders cost ${least:,.0f} to ${most:,.0f} by the prices of {LIST['published']}"


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text}: expected NAME=VALUE", param_hint="--set")
    return name, value


def say(text: str) -> None:
    """Report the progress to a person."""
    click.echo(text, file=sys.stderr)


if __name__ == "__main__":
    main()
