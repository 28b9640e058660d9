"""`make func`: the app on Azure Functions Core Tools, with Azurite and Microsoft's Service Bus emulator in Docker."""

import asyncio
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from development.business import DEPLOYED, named
from development.faults import DevelopmentCode
from development.provision import provision
from development.servicebus_config import AGENTS_FILE, ROOT, agents_file, emulator_config
from development.settings import simulated_address
from development.stack import ALERTS
from engine.declarations.business import AgentDefinition
from engine.domain.messages import bus_queues
from functions_alone.connections import storage_connection_string
from functions_alone.faults import StackFault, text_of
from functions_alone.ports import HOST, Ports, StackError
from functions_alone.proxies import bypass_proxies

TEMPLATE = ROOT / "local.settings.template.json"
SETTINGS = ROOT / "local.settings.json"
COMPOSE = ("docker", "compose", "-f", str(ROOT / "tools/development/compose.yaml"))
DOCKER_SECONDS = 30
MAX_CONNECTIONS = 10
"""The fixed limit of Microsoft's Service Bus emulator."""


def connections(agents: Sequence[AgentDefinition]) -> int:
    """Return how many connections the app opens: one for each queue that it sends to, and two more.

    All triggers of the host share one, and the health check has one. The queues of optional agents are left out,
    because the settings template has no address for them.
    """
    return len(bus_queues([agent.name for agent in agents if not agent.optional])) + 2


def missing(environ: Mapping[str, str], agents: Sequence[AgentDefinition]) -> Iterator[StackFault]:
    """Yield everything that is missing, and how to get it."""
    if (needed := connections(agents)) > MAX_CONNECTIONS:
        facts = {"needed": needed, "allowed": MAX_CONNECTIONS}
        yield StackFault(DevelopmentCode.TOO_MANY_CONNECTIONS, DEPLOYED, facts)
    if not shutil.which("func", path=environ.get("PATH")):
        yield FUNC
    if not shutil.which("docker", path=environ.get("PATH")):
        yield DOCKER
    else:
        yield from (fault for command, fault in OF_DOCKER.items() if not _works(command, environ))
    if environ.get("ACCEPT_EULA") != "Y":
        yield StackFault(DevelopmentCode.EULA_NOT_ACCEPTED, "ACCEPT_EULA")


def _program(name: str, product: str, url: str) -> StackFault:
    return StackFault(DevelopmentCode.PROGRAM_MISSING, name, {"product": product, "url": url})


FUNC = _program(
    "func",
    "Azure Functions Core Tools 4",
    "https://learn.microsoft.com/azure/azure-functions/functions-run-local",
)
DOCKER = _program(
    "docker", "Docker with Compose 2", "https://docs.docker.com/get-started/get-docker"
)
OF_DOCKER = {
    ("docker", "compose", "version"): _program(
        "docker compose", "Compose 2", "https://docs.docker.com/compose/install"
    ),
    ("docker", "info"): StackFault(DevelopmentCode.DOCKER_NOT_RUNNING, "docker info"),
}


def _works(command: tuple[str, ...], environ: Mapping[str, str]) -> bool:
    try:
        ran = subprocess.run(  # noqa: S603
            command, env=environ, capture_output=True, check=False, timeout=DOCKER_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ran.returncode == 0


def own_settings() -> Mapping[str, str]:
    """Return the values of local.settings.json, which is created if it does not exist, and never overwritten.

    It contains the values of the template and the addresses of the simulated services.
    """
    if not SETTINGS.exists():
        SETTINGS.write_text(json.dumps(first_settings(), indent=2) + "\n")
        click.echo(f"[func] made {SETTINGS.name} from {TEMPLATE.name} and {AGENTS_FILE}")
    values: dict[str, str] = json.loads(SETTINGS.read_text("utf-8-sig"))["Values"]
    return values


def first_settings() -> dict[str, Any]:
    """Return the content of a new local.settings.json."""
    content: dict[str, Any] = json.loads(TEMPLATE.read_text())
    app = f"http://{HOST}:{content['Host']['LocalHttpPort']}"
    content["Values"] |= {
        agent["address"]: simulated_address(app, agent["name"])
        for agent in agents_file()["agents"]
        if agent["address"] and not agent["optional"]
    }
    return content


def write_config(folder: Path) -> Path:
    """Write the emulator's Config.json from the queues in infra/."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "Config.json"
    path.write_text(json.dumps(emulator_config(), indent=2))
    return path


def start_all(environ: dict[str, str], data: Path) -> int:
    """Start the emulators, the stand-ins and Core Tools. Return the exit code of Core Tools when it ends."""
    settings = own_settings()
    environ |= {
        "MSSQL_SA_PASSWORD": f"Aa1-{secrets.token_urlsafe(16)}",
        "SERVICEBUS_CONFIG": str(write_config(data)),
    }
    with ExitStack() as at_exit:
        at_exit.callback(_run, *COMPOSE, "down", "--volumes", environ=environ)
        click.echo(
            "[func] starting the emulators (the first time Docker gets their images, about 2 GB)"
        )
        if code := _run(*COMPOSE, "up", "--detach", "--wait", environ=environ):
            return code
        asyncio.run(provision(storage_connection_string(Ports())))
        topic = {"TOPIC_KEY": settings["EVENT_GRID_KEY"], "TOPIC_STORAGE": settings["StateStorage"]}
        for stand_in in _stand_ins(Ports()):
            started = subprocess.Popen(stand_in, cwd=ROOT, env=environ | topic)  # noqa: S603
            at_exit.enter_context(started)
            at_exit.callback(started.terminate)
        return _run("func", "start", environ=environ)


def _stand_ins(ports: Ports) -> Iterator[Sequence[str]]:
    """Yield the commands of the stand-ins for Event Grid and for the channels to people."""
    module = (sys.executable, "-m")
    yield (
        *module,
        "functions_alone.eventgrid",
        f"--port={ports.eventgrid_port}",
        f"--queue={ALERTS}",
    )
    places = (f"--port={ports.channels_port}", f"--smtp-port={ports.smtp_port}")
    yield *module, "functions_alone.channels", *places


def _run(*command: str, environ: Mapping[str, str]) -> int:
    return subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode  # noqa: S603


@click.command(help=__doc__)
def main() -> None:
    bypass_proxies()
    try:
        agents = named(DEPLOYED).agents
    except StackError as error:
        raise click.ClickException(str(error)) from error
    if faults := list(missing(os.environ, agents)):
        lines = ["Missing for make func:", *(f"- {text_of(fault)}" for fault in faults)]
        click.echo("\n".join(lines), err=True)
        sys.exit(1)
    try:
        sys.exit(
            start_all(
                dict(os.environ), Path(os.environ.get("DATA_DIR", ".data")).resolve() / "func"
            )
        )
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
