"""The package as it is deployed: built by .funcignore, with requirements.txt and nothing else, every function runs."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pathspec
import pytest
from client import QUICK, Client, eventually
from deploying import everything, send_unreadable

from local.ports import Ports
from local.process import Process
from local.servicebus_config import ROOT
from local.stack import Stack, StackConfig

TOOLS = ("click", "cronsim")
"""What the embedded host needs besides the app's own packages, as Core Tools bring their own."""
AZURE_PYTHON = re.search(r"version: '(3\.\d+)'", (ROOT / "infra/modules/app.bicep").read_text()).group(1)  # type: ignore[union-attr]
NEVER = [
    ".env", ".venv/bin/python", ".git/config", ".azure/test/.env", ".github/workflows/checks.yml", ".data/broker/state",
    "local.settings.json", "tests/unit/test_x.py", "local/stack.py", "local/node_modules/x.js",
    "bench/driver.py", "docs/deploy.md", "README.md", "adapters/__pycache__/x.pyc", "infra/main.bicep",
]  # fmt: skip


def ignored():
    return pathspec.GitIgnoreSpec.from_lines((ROOT / ".funcignore").read_text().splitlines())


def build(folder: Path) -> Path:
    """Copy what is deployed, as azd does: the working tree, without what .funcignore names."""
    spec = ignored()

    def skip(parent, names):
        inside = Path(parent).relative_to(ROOT)
        return [
            name for name in names
            if spec.match_file(str(inside / name) + ("/" if (Path(parent) / name).is_dir() else ""))
        ]  # fmt: skip

    shutil.copytree(ROOT, folder, ignore=skip)
    return folder


def clean_environment(folder: Path, python: str, *more: str) -> Path:
    """Make an environment of what requirements.txt names, and no more; return its Python."""
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    own = folder / "bin/python"
    install("--python", own)("-r", ROOT / "requirements.txt", *more)
    return own


def install(*options):
    """Return what installs packages with these options of pip."""
    pip = [sys.executable, "-m", "pip", *options, "install", "-q", "--no-compile", "--disable-pip-version-check"]
    return lambda *packages: subprocess.run([*pip, *packages], check=True)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The folder that is deployed."""
    return build(tmp_path_factory.mktemp("built") / "package")


def azure_python() -> str | None:
    """A Python of the version that runs in Azure, if this machine has one."""
    names = [sys.executable] if sys.version_info[:2] == tuple(map(int, AZURE_PYTHON.split("."))) else []
    for name in [*names, f"python{AZURE_PYTHON}"]:
        found = shutil.which(name)
        if (
            found
            and not subprocess.run([found, "-c", "import venv, ensurepip"], check=False, capture_output=True).returncode
        ):
            return found
    return None


class DeployedStack(Stack):
    """A stack whose hosts run the package, in its clean environment, from its folder."""

    def __init__(self, config: StackConfig, python: Path, tools: Path) -> None:
        super().__init__(config)
        self._clean, self._tools = python, tools

    def _host(self, name, fd, *arguments):
        folder = str(self.config.app)
        arguments = ("--log-level", "DEBUG", "--app-dir", folder, *arguments)
        command = self._command(name, str(self._clean), "-m", "local.host", *arguments)
        env = {**command.env, "PYTHONPATH": str(self._tools)}
        return Process(replace(command, fds=(fd,), cwd=self._tools, env=env))


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """A Python with the requirements, and a folder with the embedded host and its own."""
    tools = tmp_path_factory.mktemp("tools")
    install()("--target", tools, "--no-deps", *TOOLS)
    shutil.copytree(ROOT / "local", tools / "local", ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
    return clean_environment(tmp_path_factory.mktemp("clean"), sys.executable), tools


@pytest.fixture(scope="module")
async def run(package, clean, tmp_path_factory):
    """The package at work: its stack, a client of it, and how to find out which functions have run."""
    data = tmp_path_factory.mktemp("data")
    ports = Ports.free()
    settings = QUICK | everything(ports) | {"WATCH_SCHEDULE": "* * * * * *"}
    config = StackConfig.for_tests(data, ports=ports, settings=settings, app=package)
    async with DeployedStack(config, *clean) as stack:
        client = Client(stack)
        yield (
            stack,
            client,
            lambda: set(re.findall(r"function (\w+) succeeded", (data / "logs/host-1.log").read_text())),
        )
        await client.close()


def test_what_must_never_be_deployed():
    """Settings, secrets, histories, tests and tools stay here, wherever they lie."""
    spec = ignored()
    assert [path for path in NEVER if not spec.match_file(path)] == []


def test_the_package_holds_the_app_and_nothing_else(package):
    """At its top lie the files that Azure wants, packages that the app imports, and folders without any code."""
    imported = subprocess.run(
        [sys.executable, "-c", "import sys, function_app; print(*{name.partition('.')[0] for name in sys.modules})"],
        cwd=package, env=os.environ | SETTINGS, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    found = {path.name for path in package.iterdir()}
    code = {path.name for path in package.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    files = {"function_app.py", "host.json", "requirements.txt"}
    assert {name for name in found if (package / name).is_file()} == files
    assert code <= set(imported)
    assert not [path for path in package.rglob("*") if path.name == "__pycache__" and path.parent != package]


SETTINGS = {
    "StateStorage": "UseDevelopmentStorage=true", "ServiceBus": "Endpoint=sb://x/;UseDevelopmentEmulator=true",
    "EVENT_GRID_ENDPOINT": "https://x", "PAYMENT_URL": "https://x", "INVENTORY_URL": "https://x",
    "SHIPPING_URL": "https://x", "SUPERVISOR_SCHEDULE": "0:0:1", "SCHEDULER_POLL_SCHEDULE": "0:0:1",
    "OUTBOX_SCHEDULE": "0:0:1", "WATCH_SCHEDULE": "0:0:1", "SIMULATOR_ENABLED": "true", "PYTHONDONTWRITEBYTECODE": "1",
}  # fmt: skip


async def test_every_function_runs_from_the_package(run, functions):
    """With nothing installed but requirements.txt, orders end as they should, and each function has worked.

    All but timers whose schedule is no setting: they would not come in time.
    """
    stack, client, ran = run
    await client.until(await client.place(), "Processed")
    await client.fault("reject")
    failed = await client.place()
    await client.until(failed, "Error")
    await eventually(lambda: client.alerts(failed))
    await send_unreadable(stack)
    for name, trigger in functions.items():
        if trigger["type"] == "httpTrigger":
            path = "/" + re.sub(r"\{\w+\}", "none", trigger["route"])
            status, _ = await client.request((trigger.get("methods") or ["GET"])[0], path, data=b"{}")
            assert status < 500, name

    hourly = {
        name for name, each in functions.items() if each["type"] == "timerTrigger" and "%" not in each["schedule"]
    }

    async def all_ran():
        return set(functions) - hourly <= ran()

    await eventually(all_ran)


ANNOTATIONS = """
import inspect, types
from function_app import app
for each in app.get_functions():
    for parameter in inspect.signature(each.get_user_function()).parameters.values():
        if isinstance(parameter.annotation, types.GenericAlias):
            print(each.get_function_name(), parameter)
"""


def test_annotations_are_of_the_kind_that_azure_takes(package):
    """Azure's library refuses to load a function with list[...]; said here too, where it cannot be asked."""
    command = [sys.executable, "-c", ANNOTATIONS]
    ran = subprocess.run(command, cwd=package, env=os.environ | SETTINGS, capture_output=True, text=True, check=True)
    assert ran.stdout == ""


@pytest.mark.skipif(azure_python() is None, reason=f"there is no Python {AZURE_PYTHON} here")
async def test_every_function_runs_as_in_azure(package, functions, tmp_path):
    """The library that runs functions in Azure indexes the package, and carries out each of its functions."""
    python = await asyncio.to_thread(clean_environment, tmp_path / "clean", azure_python(), "azure-functions-runtime")
    async with Stack(StackConfig.for_tests(tmp_path / "stack", hosts=0, settings=QUICK)) as stack:
        environment = os.environ | stack.app_environment() | everything(stack.ports)
        command = [python, ROOT / "tests/support/azure_worker.py", package]
        ran = await asyncio.to_thread(
            subprocess.run, command, cwd=package, env=environment, capture_output=True, text=True, timeout=120
        )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1]) == dict.fromkeys(functions, "")


def test_one_python_everywhere():
    """The version in Azure is one that the app supports, that is tested, and that the documents name."""
    project = (ROOT / "pyproject.toml").read_text()
    [lowest, highest] = re.search(r'requires-python = ">=3\.(\d+),<3\.(\d+)"', project).groups()  # type: ignore[union-attr]
    assert int(lowest) <= int(AZURE_PYTHON.split(".")[1]) < int(highest)
    assert f"Python {AZURE_PYTHON}" in (ROOT / "docs/deploy.md").read_text()
    assert AZURE_PYTHON in (ROOT / ".github/workflows/checks.yml").read_text()
