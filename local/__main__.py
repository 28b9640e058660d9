"""`python -m local run`: the whole system on this machine, without Docker and without Azure."""

import asyncio
import json
import os
import shlex
import signal
import sys
import time
from pathlib import Path

import click
from azure.core.exceptions import AzureError

from core.business import Business
from local.business import DEPLOYED, TRIED, named
from local.ports import Ports, StackError
from local.settings import app_settings
from local.stack import Stack, StackConfig
from local.submit import submit

HELP = """Start Azurite, a Service Bus broker, an Event Grid stand-in and the functions host.

\b
Environment:
  HTTP_PORT 7071, BLOB_PORT 10000, QUEUE_PORT 10001, TABLE_PORT 10002, AMQP_PORT 5672,
  BROKER_HEALTH_PORT 5300, EVENTGRID_PORT 7080   where the parts listen
  DATA_DIR .data            where the data lies; it survives a restart
  BUSINESS shop.business:SHOP   whose app runs: examples.claims.business:CLAIMS, or one of your own
  HOSTS 1                   how many functions hosts share the work
  HOST_FUNCTIONS            names of the functions to run, comma-separated (default: all)
  LOCAL_FUNCTION_PROCESSES one
                            each: a process for the HTTP functions and one for every other, as in Flex Consumption
  OPERATOR_KEY              the operators' key (default: local-operator)
  Host__CORS                origins of other sites' pages that may call, such as http://localhost:5173, comma-separated
Any setting of the app, such as STEP_TIMEOUT_SECONDS=8, replaces the embedded default; only the connections to the parts
above are always the stack's own.
"""


OWN_SETTINGS = {"StateStorage", "AzureWebJobsStorage", "ServiceBus", "EVENT_GRID_ENDPOINT"}
"""Not taken from the environment: whoever has a real account's connection there must not work on it unawares."""


def config_from_environment() -> StackConfig:
    """Read what a person has set; raises `StackError` that names every fault."""
    hosts, ports, faults = os.environ.get("HOSTS", "1"), Ports(), []
    business, app = named(DEPLOYED)
    try:
        ports = Ports.from_environment()
    except StackError as error:
        faults.append(str(error))
    try:
        business, app = named(os.environ.get("BUSINESS", DEPLOYED))
    except StackError as error:
        faults.append(str(error))
    if not (hosts.isdecimal() and 1 <= int(hosts) <= 20):
        faults.append(f"HOSTS={hosts}: expected a number from 1 to 20")
    if not os.environ.get("OPERATOR_KEY", "local-operator"):
        faults.append("OPERATOR_KEY is empty: leave it out, or give the operators a key")
    if faults:
        raise StackError("\n".join(faults))
    replaceable = app_settings(ports, "", "", business.agents).keys() - OWN_SETTINGS
    return StackConfig(
        ports=ports,
        data=Path(os.environ.get("DATA_DIR", ".data")).resolve(),
        hosts=int(hosts),
        operator_key=os.environ.get("OPERATOR_KEY", "local-operator"),
        functions=os.environ.get("HOST_FUNCTIONS", ""),
        app=app,
        agents=business.agents,
        settings={name: os.environ[name] for name in replaceable if name in os.environ},
    )


def describe(stack: Stack, seconds: float) -> str:
    """Return what a person needs to know once the stack is ready."""
    name = os.environ.get("BUSINESS", DEPLOYED)
    is_shop = name == TRIED
    return f"""
Ready after {seconds:.0f} s.

{f"  Shop           {stack.http_url}/shop" if is_shop else ""}
  Console        {stack.http_url}/console   (operators' key: {stack.operator_key})
  Operators' API {stack.http_url}/api/operator/orders   (header x-functions-key: {stack.operator_key})
  Simulator      {stack.http_url}/simulator/{stack.config.agents[0].name}/ledger   (same key)
  Storage        {stack.storage_connection_string}
  Service Bus    {stack.service_bus_connection_string}
  Logs           {stack.config.data / "logs"}

{PLACE.format(url=stack.http_url) if is_shop else _to_order(named(name)[0], stack.http_url)}

Ctrl-C stops everything; the data stays in {stack.config.data}.
"""


PLACE = """Look at what the shop sells at {url}/api/products, and place an order:

  curl -s {url}/api/orders -H 'Content-Type: application/json' \\
    -d '{{"customer":{{"name":"Ada","email":"ada@example.com"}},"items":[{{"sku":"TEA-SENCHA","quantity":2}}]}}'"""


def _to_order(business: Business, url: str) -> str:
    """Return how to place an order of a business: its sample, at its open door or over the queue."""
    payload = shlex.quote(json.dumps(business.sample.payload) if business.sample else "{...}")
    for door in business.doors:
        if door.open:
            address = f"{url}/api/workflows/{door.workflow}/orders"
            return f"Place an order:\n\n  curl -s {address} -d {payload}"
    return f"Submit an order:\n\n  .venv/bin/python -m local submit {payload}"


def show(line: str) -> None:
    """Show a line in the terminal; the stack goes on when nobody reads any more."""
    try:
        click.echo(line)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def run_until_signal() -> None:
    """Run the stack until Ctrl-C or SIGTERM."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    began = time.monotonic()
    stack = Stack(config_from_environment(), say=lambda line: show(f"[stack] {line}"), show=show)
    starting = asyncio.create_task(stack.start())
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([starting, stopped], return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            show(describe(stack, time.monotonic() - began))
            await stopped
        show("[stack] stopping: the hosts finish what they are doing, then the rest ends")
    finally:
        starting.cancel()
        stopped.cancel()
        await asyncio.wait([starting, stopped])
        await stack.stop()
    show("[stack] stopped")


@click.group()
def main() -> None:
    """Run the embedded stack."""


@main.command(help=HELP)
def run() -> None:
    """Start the stack and stay until told to stop."""
    try:
        asyncio.run(run_until_signal())
    except StackError as error:
        click.echo(f"The stack cannot start: {error}", err=True)
        sys.exit(1)


@main.command(name="submit")
@click.argument("payload")
@click.option(
    "--workflow", help="What is to be done for the order (default: what its business says)."
)
def submit_order(payload: str, workflow: str | None) -> None:
    """Put an order with this PAYLOAD, a JSON object, onto the queue order-submissions of the running stack.

    Prints its id.
    """
    try:
        click.echo(asyncio.run(submit(Ports.from_environment(), json.loads(payload), workflow)))
    except (StackError, TypeError, ValueError, AzureError) as error:
        click.echo(f"The order cannot be submitted: {str(error).splitlines()[0]}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
