"""A command for each action on one order."""

from typing import Any

import click

from engine.decisions.actions.arguments import arguments_of
from engine.decisions.operator_actions import ACTIONS, AnyAction
from operations.cli import formatting
from operations.cli.client import Api
from operations.cli.commands.action_help import help_of
from operations.cli.commands.arguments import body_of, options_of
from operations.cli.commands.options import signed


def _command(action: AnyAction) -> click.Command:
    arguments = arguments_of(action.asks)

    @click.command(name=action.name, help=help_of(action.name))
    @click.argument("order_id")
    @signed
    @click.pass_obj
    def act(api: Api, /, *, order_id: str, operator: str, note: str, **given: Any) -> None:
        body = {"operator": operator, "note": note, **body_of(arguments, given)}
        click.echo(formatting.acted(api.post("orders", order_id, action.name, body=body)))

    act.params += options_of(arguments)
    return act


COMMANDS = tuple(map(_command, ACTIONS))
