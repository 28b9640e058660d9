"""`python -m development run`: the whole system on this machine, without Docker and without Azure."""

import asyncio
import json
import os
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click
from azure.core.exceptions import AzureError

from development.business import DEPLOYED, named
from development.faults import DevelopmentCode
from development.pace import Pace
from development.settings import SLOWDOWN_FILE, TIMES, WATCHED, app_settings
from development.stack import AppStack, AppStackConfig
from development.submit import submit
from engine.declarations.business import Application
from functions_alone.faults import StackFault
from functions_alone.host.connection import RefusedConnections
from functions_alone.ports import Ports, StackError
from functions_alone.proxies import bypass_proxies
from functions_alone.supervise import until_signal
from functions_alone.terminal import Terminal

HELP = """Start Azurite, a Service Bus broker, the functions host, and stand-ins for Event Grid, a mail server and two chats.

\b
Environment:
  HTTP_PORT 7071, BLOB_PORT 10000, QUEUE_PORT 10001, TABLE_PORT 10002, AMQP_PORT 5672,
  BROKER_HEALTH_PORT 5300, EVENTGRID_PORT 7080, CHANNELS_PORT 7081, SMTP_PORT 7025   where the parts listen
  DATA_DIR .data            where the data lies; it survives a restart
  BUSINESS shop.business:SHOP   whose app runs: samples.claims.business:CLAIMS, or one of your own
  HOSTS 1                   how many functions hosts share the work
  HOST_FUNCTIONS            names of the functions to run, comma-separated (default: all)
  LOCAL_FUNCTION_PROCESSES one
                            each: a process for the HTTP functions and one for every other, as in Flex Consumption
  LOCAL_DEBUG_PORT          lets a debugger attach to the functions on this port; needs one host, and debugpy
                            (pip install debugpy)
  OPERATOR_KEY              the operators' key (default: local-operator)
  Host__CORS                origins of other sites' pages that may call, such as http://localhost:5173, comma-separated
Any setting of the app, such as STEP_TIMEOUT_SECONDS=8, replaces the embedded default; only the connections to the parts
above are always the stack's own. Steps and calls get more time while the machine is busy, unless STEP_TIMEOUT_SECONDS
or REMOTE_CALL_TIMEOUT_SECONDS is set.
"""


OWN_SETTINGS = {
    *("StateStorage", "AzureWebJobsStorage", "ServiceBus", "EVENT_GRID_ENDPOINT"),
    *("SMTP_URL", "TEAMS_WEBHOOK_URL", "SLACK_WEBHOOK_URL"),
    "LOCAL_FUNCTION_KEY",
}
"""Settings that are not taken from the environment, so that nobody works on a real account unawares.

`LOCAL_FUNCTION_KEY` is left out because `OPERATOR_KEY` sets it.
"""

MOST_HOSTS = 20


def config_from_environment() -> AppStackConfig:
    """Read the configuration from the environment. Raises `StackError` with all faults."""
    hosts, ports, faults = os.environ.get("HOSTS", "1"), Ports(), list[StackFault]()
    name, business = DEPLOYED, named(DEPLOYED)
    try:
        ports = Ports.from_environment()
    except StackError as error:
        faults += error.faults
    try:
        name = os.environ.get("BUSINESS", DEPLOYED)
        business = named(name)
    except StackError as error:
        faults += error.faults
    if not (hosts.isdecimal() and 1 <= int(hosts) <= MOST_HOSTS):
        facts = {"value": hosts, "most": MOST_HOSTS}
        faults.append(StackFault(DevelopmentCode.HOSTS_INVALID, "HOSTS", facts))
    if not os.environ.get("OPERATOR_KEY", "local-operator"):
        faults.append(StackFault(DevelopmentCode.OPERATOR_KEY_EMPTY, "OPERATOR_KEY"))
    if faults:
        raise StackError(*faults)
    replaceable = app_settings(ports, "", "", business.agents).keys() - OWN_SETTINGS
    return AppStackConfig(
        ports=ports,
        data=Path(os.environ.get("DATA_DIR", ".data")).resolve(),
        hosts=int(hosts),
        operator_key=os.environ.get("OPERATOR_KEY", "local-operator"),
        functions=os.environ.get("HOST_FUNCTIONS", ""),
        business=name,
        agents=business.agents,
        settings={name: os.environ[name] for name in replaceable if name in os.environ},
    )


def for_a_person(config: AppStackConfig, slowdown_file: Path) -> AppStackConfig:
    """Return the stack for a person. Its time limits follow the slowdown file, unless the person has set them."""
    own = dict(WATCHED)
    if not TIMES & config.settings.keys():
        own[SLOWDOWN_FILE] = str(slowdown_file)
    return replace(config, settings={**own, **config.settings})


def describe(stack: AppStack, seconds: float) -> str:
    """Describe the stack for a person when it is ready. The business says what to do first."""
    business = named(os.environ.get("BUSINESS", DEPLOYED))
    return f"""
Ready after {seconds:.0f} s.

  Start page     {stack.http_url}/
  Console        {stack.http_url}/console   (operators' key: {stack.operator_key})
  Operators' API {stack.http_url}/api/operator/orders   (header x-functions-key: {stack.operator_key})
  Simulator      {stack.http_url}/simulator/{stack.agents[0].name}/ledger   (same key)
  Messages       {stack.channels_url}/messages   (what was sent by mail, to Teams and to Slack)
  Storage        {stack.storage_connection_string}
  Service Bus    {stack.service_bus_connection_string}
  Logs           {stack.config.data / "logs"}

{business.greeting.replace("{url}", stack.http_url) or _to_order(business, stack.http_url)}

Ctrl-C stops everything; the data stays in {stack.config.data}.
"""


def _to_order(business: Application, url: str) -> str:
    """Describe how to place an order of a business: its sample, at its open endpoint or over the queue."""
    payload = shlex.quote(json.dumps(business.sample.payload) if business.sample else "{...}")
    for endpoint in business.endpoints:
        if endpoint.open:
            address = f"{url}/api/workflows/{endpoint.workflow}/orders"
            return f"Place an order:\n\n  curl -s {address} -d {payload}"
    return f"Submit an order:\n\n  make submit ORDER={payload.replace('$', '$$')}"


async def run_until_signal(show: Callable[[str], None]) -> None:
    """Run the stack until Ctrl-C or SIGTERM. Raises `StackError` if it cannot start or continue."""
    asyncio.get_running_loop().set_exception_handler(RefusedConnections())
    began = time.monotonic()

    def say(line: str) -> None:
        show(f"[stack] {line}")

    config = config_from_environment()
    pace = Pace(file=config.data / "slowdown", say=say)
    stack = AppStack(for_a_person(config, pace.file), say=say, show=show)
    measuring: list[asyncio.Task[None]] = []

    def ready() -> None:
        show(describe(stack, time.monotonic() - began))
        measuring.append(asyncio.create_task(pace.keep()))  # not before: the start is no busy time

    try:
        await until_signal(
            stack,
            ready=ready,
            stopping=lambda: say(
                "stopping: the hosts finish what they are doing, then the rest ends"
            ),
        )
    finally:
        for task in measuring:
            task.cancel()
    show("[stack] stopped")


@click.group()
def main() -> None:
    """Run the embedded stack."""
    bypass_proxies()


@main.command(help=HELP)
def run() -> None:
    try:
        with Terminal() as terminal:
            asyncio.run(run_until_signal(terminal.show))
    except StackError as error:
        click.echo(f"The stack cannot start: {error}", err=True)
        sys.exit(1)


@main.command(name="submit")
@click.argument("payload")
@click.option(
    "--workflow", help="The workflow of the order (default: the workflow of the business)."
)
def submit_order(payload: str, workflow: str | None) -> None:
    """Put an order on the submission queue of the running stack, and print the order's id.

    PAYLOAD is the content of the order, a JSON object.
    """
    try:
        click.echo(asyncio.run(submit(Ports.from_environment(), json.loads(payload), workflow)))
    except (StackError, TypeError, ValueError, AzureError) as error:
        click.echo(f"The order cannot be submitted: {str(error).splitlines()[0]}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
