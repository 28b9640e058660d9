"""What a deployment needs to know of its business: `make declared` compares it, `--write` writes it.

`--deploy claims.business:CLAIMS` deploys another business, and writes everything for that one.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from development.business import DEPLOYED, ENTRY, entry_for, named
from development.faults import DevelopmentCode
from development.servicebus_config import ROOT
from development.settings import simulated
from engine.declarations.business import AgentDefinition, Application
from engine.declarations.credentials import Setting
from engine.domain.messages import ANSWERS, SCHEDULER_REQUESTS, requests_queue, responses_queue
from functions_alone.faults import StackFault, text_of
from functions_alone.ports import StackError

COMMAND = "make declared ARGS=--write"
LIKE = {"lockDuration": "PT1M", "maxDeliveryCount": 2000, "defaultMessageTimeToLive": "PT1H"}
"""The properties of an agent's queues."""
OF_ANSWERS = {"name": ANSWERS, **LIKE, "deadLetteringOnMessageExpiration": True}
"""The queue of answers from outside: none that nobody has read in time is lost."""
OF_AN_AGENT = re.compile(r".+-(requests|responses)")
BEGIN, END = f"# begin: written by {COMMAND}", "# end: written"
BLOCK = re.compile(rf"(?<={BEGIN}\n).*?(?=^ *{END}$)", re.MULTILINE | re.DOTALL)
"""The lines of a YAML file that are written from the declaration."""
SECRETS = ("OPERATOR_WEBHOOKS", "TEAMS_WEBHOOK_URL", "SLACK_WEBHOOK_URL", "SMTP_URL")
"""Variables of the template that are handed on as secrets: with such an address alone, anybody can post or send mail."""
WIDTH = 160


def faults(
    name: str, agents: Sequence[AgentDefinition], root: Path = ROOT, *, answers: bool = False
) -> Iterator[StackFault]:
    """Yield a fault for each file that does not fit the business of this name; raises `StackError`.

    `answers` says whether it waits for answers from outside.
    """
    for place, text, wanted in _files(name, agents, root, answers=answers):
        if text != wanted:
            facts = {"business": name, "command": COMMAND}
            yield StackFault(DevelopmentCode.FILE_OUTDATED, place, facts)


def write(
    name: str, agents: Sequence[AgentDefinition], root: Path = ROOT, *, answers: bool = False
) -> Iterator[str]:
    """Write what does not fit, and yield the names of those files; raises `StackError`."""
    for place, text, wanted in list(_files(name, agents, root, answers=answers)):
        if text != wanted:
            (root / place).write_text(wanted)
            yield place


def _files(
    name: str, agents: Sequence[AgentDefinition], root: Path, *, answers: bool
) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each file, its text, and the text that fits the business."""
    for place in (CHOICE, APP, *FILES):
        path = root / place
        text = path.read_text() if path.exists() else ""
        try:
            wanted = _rewritten(place, text, name, agents)
            yield place, text, _answers(wanted, answers=answers) if place == QUEUES else wanted
        except (ValueError, LookupError) as error:
            reason = {"reason": str(error)}
            raise StackError(StackFault(DevelopmentCode.FILE_UNREADABLE, place, reason)) from error


def _rewritten(place: str, text: str, name: str, agents: Sequence[AgentDefinition]) -> str:
    if place == CHOICE:
        return re.sub(r'(?<=^DEPLOYED = ")[^"]*', name, text, flags=re.MULTILINE)
    if place == APP:
        return entry_for(name, text)
    return FILES[place](text, agents)


def _queues(text: str, agents: Sequence[AgentDefinition]) -> str:
    """Put the agents' queues where the first of them was, or after the scheduler's."""
    content = json.loads(text)
    before: list[Mapping[str, Any]] = content["serviceBusQueues"]
    kept = [queue for queue in before if not _is_of_an_agent(queue["name"])]
    known = {queue["name"]: queue for queue in before}
    names = [name for agent in agents for name in _queues_of(agent)]
    place = [queue["name"] for queue in kept].index(SCHEDULER_REQUESTS) + 1
    of_agents = [known.get(name, {"name": name, **LIKE}) for name in names]
    content["serviceBusQueues"] = [*kept[:place], *of_agents, *kept[place:]]
    return _as_text(content)


def _answers(text: str, *, answers: bool) -> str:
    """Put the queue of answers last, or leave it out."""
    content = json.loads(text)
    before: list[Mapping[str, Any]] = content["serviceBusQueues"]
    kept = [queue for queue in before if queue["name"] != ANSWERS]
    known = next((queue for queue in before if queue["name"] == ANSWERS), OF_ANSWERS)
    content["serviceBusQueues"] = [*kept, *([known] if answers else [])]
    return _as_text(content)


def _is_of_an_agent(queue: str) -> bool:
    return queue != SCHEDULER_REQUESTS and bool(OF_AN_AGENT.fullmatch(queue))


def _queues_of(agent: AgentDefinition) -> Sequence[str]:
    return requests_queue(agent.name), responses_queue(agent.name)


def _parameters(text: str, agents: Sequence[AgentDefinition]) -> str:
    """Let azd hand on each setting by its name."""
    content = json.loads(text)
    handed_on = {setting.name: f"${{{setting.name}=}}" for setting in _settings(agents)}
    content["parameters"]["serviceSettings"] = {"value": handed_on}
    return _as_text(content)


def _simulated(_: str, agents: Sequence[AgentDefinition]) -> str:
    """Return the settings of simulated services, in which Bicep puts the address of the app."""
    return _as_text(simulated(agents, "https://{host}", with_optional=True))


def _required_by_hooks(_: str, agents: Sequence[AgentDefinition]) -> str:
    """Return the settings that the hook checks before anything is deployed."""
    addresses = {agent.address for agent in agents}
    settings = [
        {
            "name": setting.name,
            "kind": "address" if setting.name in addresses else "value",
            "required": setting.required,
        }
        for setting in _settings(agents)
        if setting.name in addresses or setting.required
    ]
    return _as_text({"settings": settings})


def _template(text: str, agents: Sequence[AgentDefinition]) -> str:
    """Put the settings of simulated services between those two of the app."""
    content = json.loads(text)
    values = list(content["Values"].items())
    names = [name for name, _ in values]
    start, end = names.index("SIMULATOR_ENABLED") + 1, names.index("STEP_TIMEOUT_SECONDS")
    of_agents = simulated(agents, f"http://127.0.0.1:{content['Host']['LocalHttpPort']}")
    content["Values"] = dict([*values[:start], *of_agents.items(), *values[end:]])
    return _as_text(content)


def _pipeline(text: str, agents: Sequence[AgentDefinition]) -> str:
    """List the variables, and then the secrets, that azd hands on to the workflow."""
    plain = [setting.name for setting in _settings(agents) if not setting.secret]
    secret = [*SECRETS, *(setting.name for setting in _settings(agents) if setting.secret)]
    lines = [[f"    - {name}\n" for name in names] for names in (plain, secret)]
    return _with_block(text, [*lines[0], "  secrets:\n", *lines[1]])


def _workflow(text: str, agents: Sequence[AgentDefinition]) -> str:
    """List the variables and secrets that the workflow hands on to azd."""
    lines = [
        f"      {setting.name}: ${{{{ {'secrets' if setting.secret else 'vars'}.{setting.name} }}}}\n"
        for setting in _settings(agents)
    ]
    return _with_block(text, lines)


def _with_block(text: str, lines: Sequence[str]) -> str:
    if len(BLOCK.findall(text)) != 1:
        raise ValueError(f"expected a line '{BEGIN}', and a line '{END}' below it")
    return BLOCK.sub(lambda _: "".join(lines), text)


def _settings(agents: Sequence[AgentDefinition]) -> Sequence[Setting]:
    """Return all settings, each once: two agents may share one, which either may require."""
    named: dict[str, Setting] = {}
    for agent in agents:
        for setting in agent.settings:
            if setting.required or setting.name not in named:
                named[setting.name] = setting
    return list(named.values())


def _as_text(content: Mapping[str, Any]) -> str:
    return _rendered(content, "") + "\n"


def _rendered(value: Any, indent: str) -> str:
    """Return JSON in which an object of texts and numbers is one line, if it is not too long."""
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


QUEUES = "infra/queues.json"
CHOICE, APP = "tools/development/business.py", ENTRY
"""What names the business that is deployed."""
FILES: Mapping[str, Callable[[str, Sequence[AgentDefinition]], str]] = {
    QUEUES: _queues,
    "infra/main.parameters.json": _parameters,
    "infra/simulated.json": _simulated,
    "infra/hooks/services.json": _required_by_hooks,
    "local.settings.template.json": _template,
    "azure.yaml": _pipeline,
    ".github/workflows/azure-dev.yml": _workflow,
}
"""By file, what makes its text fit the agents; what is written by hand in it stays as it is."""


def to_be_deployed(name: str) -> Application:
    """Return the business that is to be deployed; raises `StackError` where that cannot be."""
    business = named(name)
    if not name.partition(":")[0].endswith(".business"):
        raise StackError(StackFault(DevelopmentCode.BUSINESS_MISPLACED, name))
    if name.startswith("samples."):
        raise StackError(StackFault(DevelopmentCode.EXAMPLE_NOT_DEPLOYABLE, name))
    return business


@click.command(help=__doc__)
@click.option("--write", "to_be_written", is_flag=True, help="Write the files that do not fit.")
@click.option(
    "--deploy", metavar="MODULE:NAME", help="Deploy this business: write all files for it."
)
def main(*, to_be_written: bool, deploy: str | None) -> None:
    """Compare or write; the exit code is 1 where a file does not fit."""
    name = deploy or DEPLOYED
    try:
        business = to_be_deployed(name)
        agents, answers = business.agents, business.waits_for_answers
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
