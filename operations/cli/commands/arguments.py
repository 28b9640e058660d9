"""The options of a command, which follow from the arguments of its action."""

from collections.abc import Iterable, Mapping
from typing import Any

import click
from pydantic.alias_generators import to_camel

from engine.decisions.actions.arguments import Argument, ArgumentKind
from engine.words.catalogue import text
from engine.words.values import one_of
from operations.cli.client import Json
from operations.cli.commands.options import given_time, json_object


def options_of(arguments: Iterable[Argument]) -> list[click.Parameter]:
    """Return an option for each argument. All options are optional."""
    return [_option(argument) for argument in arguments]


def _option(argument: Argument) -> click.Option:
    shown = text(f"argument.{argument.key}.help")
    match argument.kind:
        case ArgumentKind.FLAG if argument.is_required:
            return click.Option([_name(argument), argument.name], default=None, help=shown)
        case ArgumentKind.FLAG:
            return click.Option([_name(argument)], is_flag=True, default=None, help=shown)
        case ArgumentKind.CHOICE:
            return click.Option([_name(argument)], type=click.Choice(argument.choices), help=shown)
        case ArgumentKind.TIME:
            return click.Option([_name(argument)], type=given_time, metavar="TIME", help=shown)
        case ArgumentKind.OBJECT:
            return click.Option([_name(argument)], type=json_object, metavar="JSON", help=shown)
    return click.Option([_name(argument)], help=shown)


def _name(argument: Argument) -> str:
    """Return the option for an argument. The option for `was_done` is `--done/--not-done`."""
    word = argument.key
    if argument.kind is ArgumentKind.FLAG and argument.is_required:
        word = word.removeprefix("was-").removeprefix("is-")
        return f"--{word}/--not-{word}"
    return f"--{word}"


def body_of(arguments: Iterable[Argument], given: Mapping[str, Any]) -> Json:
    """Return the given arguments in the form of the API.

    Raises `click.UsageError` if a required argument is missing.
    """
    for argument in arguments:
        if argument.is_required and given[argument.name] is None:
            raise click.UsageError(text("cli.expected", options=one_of(_name(argument).split("/"))))
    return {to_camel(name): value for name, value in given.items() if value is not None}
