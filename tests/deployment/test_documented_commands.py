"""Every command for Azure runs as it is written, with stand-ins for what reaches Azure.

Those are the commands of the pages for deployment and of the runbooks, and the blocks of the guides that need Azure.
"""

import json
import os
import re
import shutil
import subprocess
import sys

import click
import pytest

from development.servicebus_config import ROOT
from operations.cli.main import main as operators
from shop.business import SHOP
from tests.support import guides
from tests.support.guides import PAGES as GUIDES

PAGES = [ROOT / f"docs/operations/{name}.md" for name in ("deploy", "parameters", "runbooks")]
BLOCK = re.compile(r"^(#+ [^\n]+)$|^ *```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
OF_AZD = {
    "auth login", "env new", "env set", "env get-value", "up", "provision", "package", "deploy", "down",
}  # fmt: skip
"""The commands of azd that the page may use: learn.microsoft.com/azure/developer/azure-developer-cli/reference."""
OF_EARLIER_BLOCKS = {
    "URL": "https://app", "KEY": "a-key", "CLIENT": "an-id", "GROUP": "a-group", "APP": "an-app",
}  # fmt: skip
"""Variables that an earlier block of the page has set."""
STAND_IN = """#!{python} -S
import json, os, sys
with open({log!r}, "a") as log:
    log.write(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]) + "\\n")
print("https://a-value")
"""


def blocks():
    """Yield each block of commands, under the heading of its section."""
    for page in PAGES:
        heading = ""
        for number, (title, commands) in enumerate(BLOCK.findall(page.read_text())):
            heading = title or heading
            if commands:
                yield pytest.param(commands, (), id=f"{page.stem} {heading.strip('# ')} {number}")
    for page in GUIDES:
        parts = list(guides.blocks(page))
        own = {name for part in parts for name in guides.settings_in(part)}
        for number, part in enumerate(parts):
            if part.needs_azure:
                yield pytest.param(part.text, own, id=f"{page.stem} {number}")


@pytest.fixture
def run(tmp_path):
    """Run commands in a folder where only stand-ins reach anything; return the calls of these."""
    log, place = tmp_path / "calls", tmp_path / "bin"
    place.mkdir()
    for name in ("az", "azd", "curl", "git", "make", "python", "python3", ".venv/bin/operators"):
        path = (tmp_path if "/" in name else place) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(STAND_IN.format(python=sys.executable, log=str(log)))
        path.chmod(0o755)
    (tmp_path / "key.txt").touch()

    def run_with(commands):
        environment = {
            "PATH": f"{place}{os.pathsep}/usr/bin{os.pathsep}/bin",
            "HOME": str(tmp_path),
        }
        subprocess.run(
            [shutil.which("sh"), "-euc", commands],
            cwd=tmp_path,
            env=environment | OF_EARLIER_BLOCKS,
            capture_output=True,
            check=True,
            timeout=60,
        )
        return [json.loads(line) for line in log.read_text().splitlines()]

    return run_with


def check_operators(arguments):
    """Raise for a command that operators do not have, or for an argument that it does not take."""
    context, command = None, operators
    name, rest = "operators", list(arguments)
    while isinstance(command, click.Group):
        context = command.make_context(name, rest, parent=context)
        rest = [*context._protected_args, *context.args]
        name, command, rest = command.resolve_command(context, rest)
    command.make_context(name, rest, parent=context)


def check_make(arguments):
    """Fail for a target that there is not."""
    known = re.findall(r"^([\w ]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert arguments[0] in " ".join(known).split()


@pytest.mark.parametrize(("commands", "own_settings"), list(blocks()))
def test_a_block_of_commands_runs_as_it_is_written(run, functions, commands, own_settings):
    """It calls commands that there are, sets variables that something reads, and names files that exist."""
    parameters = (ROOT / "infra/main.parameters.json").read_text()
    of_the_shop = {agent.address for agent in SHOP.agents}
    read = {
        *re.findall(r"\$\{(\w+)", parameters),
        *of_the_shop,
        *own_settings,
        "MONTHLY_BUDGET",
        "SOME_KEY",
    }
    calls = run(commands)
    assert calls
    switched = re.findall(r"AzureWebJobs\.(\w+)\.Disabled", commands)
    assert set(switched) <= set(functions)
    for program, *arguments in calls:
        if program == "azd":
            names = [argument for argument in arguments if not argument.startswith("-")]
            assert names[0] in OF_AZD or " ".join(names[:2]) in OF_AZD
        if (program, arguments[:2]) == ("azd", ["env", "set"]):
            assert arguments[2] in read
        if program == "operators":
            check_operators(arguments)
        if program == "make":
            check_make(arguments)
        if program.startswith("python") and arguments[0] != "-m":
            assert (ROOT / arguments[0]).is_file()
