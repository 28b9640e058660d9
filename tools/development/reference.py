"""Writes the parts of docs/reference that follow from the code: settings, rows, calls, events, commands.

`make reference` compares them, `--write` writes them.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import click
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from bootstrap.engine import build_engine
from bootstrap.operations import Operations
from development.business import DEPLOYED, named
from development.faults import DevelopmentCode
from development.pages import with_section
from development.servicebus_config import ROOT
from development.settings import app_settings
from engine.azure.agent_settings import addresses_of
from engine.azure.channels.settings import ChannelSettings
from engine.azure.connect import connect
from engine.azure.settings import Settings
from engine.declarations.business import EndpointDefinition
from engine.domain import effects
from engine.domain.causes import Code
from engine.domain.events import ActionTaken
from engine.domain.history import TAGS
from engine.domain.states import PATTERN_STATE
from engine.domain.steps import StepRules
from engine.domain.work_index import WorkItemKind
from engine.http.external_events import callback_routes
from engine.http.openapi import REFUSALS, Route, field_texts
from engine.http.public_api.triggers import endpoint_routes
from engine.storage import (
    agent_health,
    alert_log,
    conditions,
    figures,
    notifications,
    order_rows,
    orders,
    outbox,
    poison,
    step_rows,
    sweeps,
)
from engine.storage.tables import RowMapper
from functions_alone.faults import StackFault, text_of
from functions_alone.ports import Ports
from operations.api.triggers import operator_routes
from operations.cli.main import main as operators

COMMAND = "make reference ARGS=--write"
UNITS = {
    "_SECONDS": "seconds",
    "_DAYS": "days",
    "_PER_SECOND": "number a second",
    "_PER_MINUTE": "number a minute",
    "_SCHEDULE": "NCRONTAB",
}
"""What the end of a setting's name says of its value."""
KINDS = {bool: "`true` or `false`", int: "number", float: "number", dict: "JSON", list: "JSON"}
BOUNDS = {"gt": "more than {}", "ge": "at least {}", "le": "at most {}"}
MAPPED: Mapping[str, RowMapper[Any]] = {
    "order": orders.ORDER,
    "state": order_rows.STATE,
    "history": orders.HISTORY,
    "outbox": outbox.EVENT,
    "acknowledged": alert_log.ACKNOWLEDGED,
    "conditions": conditions.FORM,
    "channels": notifications.STATE,
    "poison": poison.FORM,
    "health": agent_health.FORM,
    "sweep": sweeps.FORM,
    "figures": figures.FORM,
}
"""The rows whose columns follow from a record, by the name of the section."""
NOT_SHOWN = {"more", "unknown"}
"""The fields for what only a newer version of the app knows."""


def sections() -> Mapping[tuple[str, str], str]:
    """Return the text that stands in each page under each name."""
    calls = list(routes())
    found = {
        "settings": {"app": _settings(Settings), "channels": _settings(ChannelSettings)},
        "api": {
            "customers": _calls(route for route in calls if route.open),
            "operators": _calls(route for route in calls if not route.open),
            "refusals": table(("status", "meaning"), ((str(s), t) for s, t in REFUSALS.items())),
        },
        "events": {"history": _history(), "causes": _members("cause", Code)},
        "rows": {
            "work-index": _members("row", WorkItemKind),
            **{name: _columns(mapper) for name, mapper in MAPPED.items()},
            "steps": _keys(step_rows.StepObject),
            "states": _objects(PATTERN_STATE),
            "effects": _objects(effects.Effect.__args__),
            "key": _keys(effects.RequestKey),
            "rules": _keys(StepRules),
        },
        "cli": {"commands": "\n\n".join(_commands(operators, "operators"))},
    }
    return {
        (f"docs/reference/{page}.md", name): text
        for page, texts in found.items()
        for name, text in texts.items()
    }


def written(place: str, page: str) -> str:
    """Return the page with its sections; raises `ValueError` if it has no place for one."""
    for (where, name), text in sections().items():
        if where == place:
            page = with_section(page, COMMAND, name, text)
    return page


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; raises `ValueError` if a cell is empty."""
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row in rows:
        if not all(row):
            raise ValueError(f"nothing describes {row[0]}")
        lines.append(f"| {' | '.join(_cell(text) for text in row)} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Return the text in one line, because a second line would end the table."""
    return " ".join(text.split()).replace("|", "\\|")


# Settings


def _settings(kind: type[BaseModel]) -> str:
    """Return the settings that this class declares, and none of its bases."""
    texts = dict(field_texts(kind))
    own = {
        name: kind.model_fields[name] for name in kind.__annotations__ if name in kind.model_fields
    }
    return table(
        ("setting", "default", "value", "meaning"),
        (
            (f"`{field.alias}`", _default(field), _value(field), texts.get(name, ""))
            for name, field in own.items()
            if field.alias
        ),
    )


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True)
    if default in (None, "", (), {}) or default == []:
        return "none"
    shown = str(default).lower() if isinstance(default, bool) else f"{default}"
    return f"`{shown}`"


def _value(field: FieldInfo) -> str:
    """Return the unit or kind of a setting's value, and its bounds."""
    name, kinds = str(field.alias), list(_parts(field.annotation))
    ending = next((unit for end, unit in UNITS.items() if name.endswith(end)), None)
    kind = next((KINDS[kind] for kind in kinds if kind in KINDS), "text")
    if SecretStr in kinds:
        kind = "text, secret"
    bounds = [
        text.format(f"{getattr(rule, bound):,}".removesuffix(".0"))
        for rule in field.metadata
        for bound, text in BOUNDS.items()
        if getattr(rule, bound, None) is not None
    ]
    return ", ".join([ending or kind, *bounds])


def _parts(annotation: Any) -> Iterator[Any]:
    """Yield a type, and the types of which it is made."""
    origin = getattr(annotation, "__origin__", annotation)
    yield origin
    if origin not in KINDS:
        for part in get_args(annotation):
            yield from _parts(part)


# Rows


def _columns(mapper: RowMapper[Any]) -> str:
    return _fields_of(mapper.kind, "column", mapper.names.__getitem__)


def _keys(kind: type) -> str:
    return _fields_of(kind, "key", step_rows.key_of)


def _fields_of(kind: type, head: str, name_of: Callable[[str], str]) -> str:
    texts = dict(field_texts(kind))
    names = (field.name for field in fields(kind) if field.name not in NOT_SHOWN)
    return table((head, "meaning"), ((f"`{name_of(name)}`", texts.get(name, "")) for name in names))


def _objects(kinds: Iterable[type]) -> str:
    """Return a table of the objects that name their class, with the keys that each has."""
    return table(
        ("`Is`", "keys", "meaning"),
        (
            (
                f"`{kind.__name__}`",
                ", ".join(f"`{step_rows.key_of(field.name)}`" for field in fields(kind)) or "none",
                inspect.getdoc(kind) or "",
            )
            for kind in kinds
        ),
    )


def _members(head: str, kind: type[Enum]) -> str:
    texts = dict(field_texts(kind))
    rows = ((f"`{member.value}`", texts.get(member.name, "")) for member in kind)
    return table((head, "meaning"), rows)


# Events


def _history() -> str:
    """Return the events of the history but those of actions, which have the names of the actions."""
    return table(
        ("event", "meaning"),
        (
            (f"`{tag}`", inspect.getdoc(kind) or "")
            for kind, tag in TAGS.items()
            if not issubclass(kind, ActionTaken)
        ),
    )


# Calls


def routes() -> Iterator[Route]:
    """Yield the routes of every application, with those of a workflow that has an endpoint."""
    business = named(DEPLOYED)
    environment = app_settings(Ports(), "a-key", "a-key", business.agents)
    declared = {
        "addresses": addresses_of(business.agents, environment),
        "declared": {agent.name: agent for agent in business.agents},
    }
    settings = Settings.model_validate({**environment, **declared})
    engine = build_engine(settings, business, connect(settings))
    for is_open in (True, False):
        endpoint = EndpointDefinition(
            workflow="{workflow}", content=BaseModel, open=is_open, cancel_until=""
        )
        yield from endpoint_routes(engine.customers, [endpoint])
    yield from callback_routes(engine.callback_service)
    yield from operator_routes(Operations(engine).services)


def _calls(found: Iterable[Route]) -> str:
    return table(
        ("call", "what it does"),
        ((f"`{route.method} /{route.path}`", f"{route.summary}.") for route in found),
    )


# The command line


def _commands(
    command: click.Command,
    path: str,
    parent: click.Context | None = None,
    known: Iterable[str] = (),
) -> Iterator[str]:
    """Yield the part of a command, without the options that are known, and those of its commands.

    Options that all commands of a group have are listed once, at the group.
    """
    context = click.Context(command, info_name=path.rpartition(" ")[2], parent=parent)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    yield f"### {path}\n\n{command.help}\n\n```text\n{usage}\n```"
    members = command.commands if isinstance(command, click.Group) else {}
    shared = _shared([_options(member, context) for member in members.values()])
    options = _options(command, context) | shared
    if shared:
        yield f"Enter these options after the name of the command, as in `{path} {min(members)} OPTION`:"
    if own := [(f"`{name}`", text) for name, text in options.items() if name not in known]:
        yield table(("option", "meaning"), own)
    for name in sorted(members):
        yield from _commands(members[name], f"{path} {name}", context, shared)


def _shared(options: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the options that all of these have."""
    common = set.intersection(*map(set, options)) if options else set[str]()
    return {name: text for name, text in options[0].items() if name in common} if common else {}


def _options(command: click.Command, context: click.Context) -> dict[str, str]:
    """Return the options of a command, each with its text."""
    options = (it for it in command.get_params(context) if isinstance(it, click.Option))
    records = filter(None, (option.get_help_record(context) for option in options))
    return {names: " ".join(text.split()) for names, text in records if names != "--help"}


@click.command(help=__doc__)
@click.option("--write", "to_be_written", is_flag=True, help="Put the parts into the pages.")
def main(*, to_be_written: bool) -> None:
    """Exit with 1 if a page has other parts, unless they are to be written."""
    for place in dict.fromkeys(place for place, _ in sections()):
        file = Path(ROOT / place)
        page = file.read_text()
        wanted = written(place, page)
        if to_be_written:
            file.write_text(wanted)
        elif page != wanted:
            facts = {"business": "the code", "command": COMMAND}
            sys.exit(text_of(StackFault(DevelopmentCode.FILE_OUTDATED, place, facts)))


if __name__ == "__main__":
    main()
