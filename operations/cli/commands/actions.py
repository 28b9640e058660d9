"""A command for each action on one order."""

from typing import Any

import click

from engine.decisions.operator_actions import ACTIONS, OperatorAction
from operations.cli import formatting
from operations.cli.client import Api, Json
from operations.cli.commands.action_help import help_of
from operations.cli.commands.options import json_object, signed


def _action_command(action: OperatorAction) -> click.Command:
    """Return the command for an action on one order."""

    @click.argument("order_id")
    @signed
    @click.pass_obj
    def act(
        api: Api,
        /,
        *,
        order_id: str,
        operator: str,
        note: str,
        step: str | None = None,
        **outcome: Any,
    ) -> None:
        body: Json = {"operator": operator, "note": note, **({"step": step} if step else {})}
        body |= outcome_body(**outcome) if action.of_outcome else {}
        click.echo(formatting.acted(api.post("orders", order_id, action.name, body=body)))

    command = click.command(name=action.name, help=help_of(action))(act)
    if action.of_step:
        of_step = "The step. Leave it out if there is only one."
        command.params.insert(1, click.Option(["--step"], help=of_step))
    if action.of_outcome:
        command.params += outcome_options()
    return command


def outcome_options() -> list[click.Parameter]:
    """Return the options that say whether a step in doubt was done."""
    return [
        click.Option(["--done/--not-done"], default=None, help="Whether the step was done."),
        click.Option(["--answer"], help="The answer of a step that was done: a JSON object."),
        click.Option(
            ["--confirm-late-effect"],
            is_flag=True,
            help="Settle it as not done, although a call may still take effect.",
        ),
    ]


def outcome_body(*, done: bool | None, answer: str | None, confirm_late_effect: bool) -> Json:
    """Return what the options say of a step; raises `click.UsageError` without an outcome."""
    if done is None:
        raise click.UsageError("expected --done or --not-done")
    body: Json = {"wasDone": done}
    if answer is not None:
        body["answer"] = json_object(answer)
    return body | ({"confirmLateEffect": True} if confirm_late_effect else {})


COMMANDS = tuple(map(_action_command, ACTIONS))
