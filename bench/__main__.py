"""Command line: `python -m bench`."""

import asyncio
import json
import sys
import tempfile
from pathlib import Path

import click

from bench import phases
from bench.driver import running
from bench.phases import Result

WORKFLOWS = {"1-step": "payment-only", "3-step": "in-sequence"}
"""The workflow of each variant."""

PHASES = ("throughput", "latency", "crash")

QUICK = {
    "STEP_TIMEOUT_SECONDS": "2",
    "CLOCK_TOLERANCE_SECONDS": "0.5",
    "AGENT_MARGIN_SECONDS": "0.3",
    "REMOTE_CALL_TIMEOUT_SECONDS": "0.8",
    "SUPERVISOR_SCHEDULE": "* * * * * *",
    "SCHEDULER_POLL_SCHEDULE": "* * * * * *",
    "LOCAL_SHUTDOWN_SECONDS": "2",
    "LOCAL_QUEUE_LOCK_SECONDS": "2",
    "LOCAL_TIMER_LOCK_SECONDS": "2",
}
"""For the crash phase: short times, so that a recovery takes seconds. The same as in `tests/system`."""


@click.command(context_settings={"max_content_width": 100, "show_default": True})
@click.option("--variant", type=click.Choice(sorted(WORKFLOWS)), default="1-step", help="How many steps an order has.")
@click.option("--hosts", type=click.IntRange(1, 8), default=1, help="Functions hosts that share the work.")
@click.option("--orders", type=click.IntRange(1), default=1000, help="Orders of the throughput phase.")
@click.option("--rate", type=click.FloatRange(0.1), default=20.0, help="Orders per second of the latency phase.")
@click.option("--seconds", type=click.FloatRange(1), default=10.0, help="How long the latency phase submits.")
@click.option("--crash-orders", type=click.IntRange(10), default=300, help="Orders of the crash phase.")
@click.option("--max-s", type=click.FloatRange(1), default=60.0, help="When a phase is given up.")
@click.option("--phases", "chosen", default=",".join(PHASES), help="Which phases to run.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Replace a setting of the app.")
def main(  # noqa: PLR0913, PLR0917 - one for each option
    variant: str,
    hosts: int,
    orders: int,
    rate: float,
    seconds: float,
    crash_orders: int,
    max_s: float,
    chosen: str,
    settings: tuple[str, ...],
) -> None:
    """Run orders through the embedded stack; print one JSON line with the results.

    throughput: all orders at once, and what each of them costs. latency: at a fixed rate, from when an order was due
    until `Processed` is durable. crash: SIGKILL of a host once 30 % are processed, a new one 0.5 s later.
    """
    wanted = [name.strip() for name in chosen.split(",")]
    if unknown := set(wanted) - set(PHASES):
        raise click.BadParameter(f"there is no phase {', '.join(sorted(unknown))}", param_hint="--phases")
    own = dict(_setting(text) for text in settings)
    result: Result = {
        "peer": "scheduler-agent-supervisor",
        "variant": variant,
        "orders": orders,
        **dict.fromkeys(("orders_per_s", "p50_ms", "p99_ms", "lost", "duplicate_calls", "recovery_s")),
        "store": "Azurite 3 (in memory) + local Service Bus broker",
        "hosts": hosts,
    }

    async def run() -> None:
        workflow = WORKFLOWS[variant]
        if "throughput" in wanted or "latency" in wanted:
            with tempfile.TemporaryDirectory(prefix="bench-") as folder:
                async with running(Path(folder), hosts, workflow, own) as driver:
                    say(f"stack is ready, hosts {[host.pid for host in driver.stack.hosts]}")
                    await phases.warm_up(driver)
                    if "latency" in wanted:
                        say(f"latency: {rate:g} orders/s for {seconds:g} s")
                        result.update(await phases.latency(driver, rate, seconds))
                        say(f"latency: p50 {result['p50_ms']} ms, p99 {result['p99_ms']} ms")
                    if "throughput" in wanted:
                        say(f"throughput: {orders} orders")
                        result.update(await phases.throughput(driver, orders, max_s))
                        say(f"throughput: {result['orders_per_s']} orders/s, {result['done']} of {orders} processed")
        if "crash" in wanted:
            with tempfile.TemporaryDirectory(prefix="bench-") as folder:
                async with running(Path(folder), hosts, workflow, QUICK | own) as driver:
                    await phases.warm_up(driver)
                    say(f"crash: {crash_orders} orders")
                    result.update(await phases.crash(driver, crash_orders, max_s))
                    say(f"crash: {result['lost']} lost, recovery {result['recovery_s']} s")

    asyncio.run(run())
    click.echo(json.dumps(result))


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text}: expected NAME=VALUE", param_hint="--set")
    return name, value


def say(text: str) -> None:
    """Tell a person how far it is."""
    click.echo(text, file=sys.stderr)


if __name__ == "__main__":
    main()
