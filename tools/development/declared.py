"""Writes what a deployment has to know about its agents: `make declared` compares it, `--write` writes it.

`--deploy claims.business:CLAIMS` deploys another application, and writes everything for it.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from development.business import DEPLOYED, ENTRY, entry_for, named
from development.faults import DevelopmentCode
from development.servicebus_config import AGENTS_FILE, ROOT
from engine.declarations.business import AgentDefinition, Application
from engine.declarations.credentials import Setting
from engine.domain.messages import ANSWERS, requests_queue, responses_queue
from functions_alone.faults import StackFault, text_of
from functions_alone.ports import StackError

COMMAND = "make declared ARGS=--write"
LIKE = {"lockDuration": "PT1M", "maxDeliveryCount": 2000, "defaultMessageTimeToLive": "PT1H"}
"""The properties of an agent's queues, unless the file has others."""
OF_ANSWERS = {"name": ANSWERS, **LIKE, "deadLetteringOnMessageExpiration": True}
"""The queue of external events. An event that is not read in time is not lost."""
CHOICE, APP = "tools/development/business.py", ENTRY
"""The files that name the deployed business."""
FILES = (CHOICE, APP, AGENTS_FILE)
"""The files that are written."""
WIDTH = 160


def faults(
    name: str, agents: Sequence[AgentDefinition], root: Path = ROOT, *, answers: bool = False
) -> Iterator[StackFault]:
    """Yield a fault for each file that does not fit the business with this name.

    `answers` says whether it waits for external events.
    """
    for place, text, wanted in _files(name, agents, root, answers=answers):
        if text != wanted:
            facts = {"business": name, "command": COMMAND}
            yield StackFault(DevelopmentCode.FILE_OUTDATED, place, facts)


def write(
    name: str, agents: Sequence[AgentDefinition], root: Path = ROOT, *, answers: bool = False
) -> Iterator[str]:
    """Write the files that do not fit, and yield their names."""
    for place, text, wanted in list(_files(name, agents, root, answers=answers)):
        if text != wanted:
            (root / place).write_text(wanted)
            yield place


def _files(
    name: str, agents: Sequence[AgentDefinition], root: Path, *, answers: bool
) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each file, its text, and the text that fits the business."""
    for place in FILES:
        path = root / place
        text = path.read_text() if path.exists() else ""
        yield place, text, _rewritten(place, text, name, agents, answers=answers)


def _rewritten(
    place: str, text: str, name: str, agents: Sequence[AgentDefinition], *, answers: bool
) -> str:
    if place == CHOICE:
        return re.sub(r'(?<=^DEPLOYED = ")[^"]*', name, text, flags=re.MULTILINE)
    if place == APP:
        return entry_for(name, text)
    return _as_text(declaration(agents, answers=answers, known=_queues(text)))


def _queues(text: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the queues in a file, by name. Empty if the file is not in the written form."""
    try:
        return {queue["name"]: queue for queue in json.loads(text)["queues"]}
    except (ValueError, LookupError, TypeError):
        return {}


def declaration(
    agents: Sequence[AgentDefinition],
    *,
    answers: bool = False,
    known: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> Mapping[str, Any]:
    """Return what a deployment has to know about the agents. Known queues keep their properties."""
    names = [
        name
        for agent in agents
        for name in (requests_queue(agent.name), responses_queue(agent.name))
    ]
    queues = [known.get(name, {"name": name, **LIKE}) for name in names]
    return {
        "agents": [
            {"name": agent.name, "address": agent.address, "optional": agent.optional}
            for agent in agents
        ],
        "queues": [*queues, *([known.get(ANSWERS, OF_ANSWERS)] if answers else [])],
        "settings": list(_settings(agents)),
    }


def _settings(agents: Sequence[AgentDefinition]) -> Iterator[Mapping[str, Any]]:
    """Yield each setting once. It is required if any of its agents requires it."""
    named: dict[str, Setting] = {}
    for agent in agents:
        for setting in agent.settings:
            if setting.required or setting.name not in named:
                named[setting.name] = setting
    addresses = {agent.address for agent in agents}
    for setting in named.values():
        yield {
            "name": setting.name,
            "kind": "address" if setting.name in addresses else "value",
            "required": setting.required,
            "secret": setting.secret,
        }


def _as_text(content: Mapping[str, Any]) -> str:
    return _rendered(content, "") + "\n"


def _rendered(value: Any, indent: str) -> str:
    """Return JSON with short flat objects on one line."""
    if isinstance(value, list):
        return _broken("[]", [_rendered(element, indent + "  ") for element in value], indent)
    if not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    parts = [
        f"{json.dumps(name)}: {_rendered(member, indent + '  ')}" for name, member in value.items()
    ]
    line = f"{{ {', '.join(parts)} }}"
    flat = not any(isinstance(member, dict | list) for member in value.values())
    return line if flat and len(line) < WIDTH else _broken("{}", parts, indent)


def _broken(brackets: str, parts: Sequence[str], indent: str) -> str:
    inner = ",\n".join(f"{indent}  {part}" for part in parts)
    return f"{brackets[0]}\n{inner}\n{indent}{brackets[1]}"


def to_be_deployed(name: str) -> Application:
    """Return the business for the deployment. Raises `StackError` if it cannot be deployed."""
    business = named(name)
    if not name.partition(":")[0].endswith(".business"):
        raise StackError(StackFault(DevelopmentCode.BUSINESS_MISPLACED, name))
    if name.startswith("samples."):
        raise StackError(StackFault(DevelopmentCode.EXAMPLE_NOT_DEPLOYABLE, name))
    return business


@click.command(help=__doc__)
@click.option("--write", "to_be_written", is_flag=True, help="Write the files that differ.")
@click.option(
    "--deploy", metavar="MODULE:NAME", help="Deploy this business: write all files for it."
)
def main(*, to_be_written: bool, deploy: str | None) -> None:
    name = deploy or DEPLOYED
    try:
        business = to_be_deployed(name)
        agents, answers = business.agents, business.waits_for_events
        if deploy or to_be_written:
            written = write(name, agents, answers=answers)
            click.echo("".join(f"written: {place}\n" for place in written), nl=False)
            return
        found = list(faults(name, agents, answers=answers))
    except StackError as error:
        raise click.ClickException(str(error)) from error
    sys.exit("\n".join(map(text_of, found)) or 0)


if __name__ == "__main__":
    main(prog_name="python -m development.declared")
