"""The commands that act on many orders, one for each action."""

from collections.abc import Callable
from typing import Any

import click

from engine.decisions.actions.arguments import ArgumentKind, arguments_of, concerns_named_step
from engine.decisions.operator_actions import ACTIONS, AnyAction
from engine.domain.statuses import STATUS_INFO, OrderStatus, Outcome
from engine.words.catalogue import text
from operations.cli import formatting, terminal
from operations.cli.client import Api, ApiError, Json
from operations.cli.commands.action_help import help_of
from operations.cli.commands.arguments import body_of, options_of
from operations.cli.commands.options import WORKFLOW, given_time, printed, signed

OUTCOMES = click.Choice(
    [outcome.value for outcome in Outcome if STATUS_INFO[OrderStatus(outcome)].waits_for_operator]
)
FILTERS = (
    click.option("--agent", help=text("cli.option.agent")),
    click.option("--cause", help=text("cli.option.cause.bulk")),
    click.option("--outcome", type=OUTCOMES, help=text("cli.option.outcome")),
    click.option(
        "--since",
        type=given_time,
        metavar="TIME",
        help=text("cli.option.since"),
    ),
)
"""The options that select orders."""
WHERE = ("workflow", "step", "agent", "cause", "outcome", "since")
LISTS = ("matching", "done", "stillWaiting", "refused", "changed")
"""The lists of orders in a page."""


@click.group(help=text("cli.command.bulk"))
def bulk() -> None:
    """Act on many orders, as a dry run unless --go is given."""


def _filtered(action: AnyAction) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what adds the options that select orders to a command for this action."""
    key = "cli.option.step.needed" if concerns_named_step(action.asks) else "cli.option.step"
    options = (WORKFLOW, click.option("--step", help=text(key)), *FILTERS)

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def _command(action: AnyAction) -> click.Command:
    arguments = [
        argument for argument in arguments_of(action.asks) if argument.kind is not ArgumentKind.STEP
    ]

    @click.command(name=action.name, help=help_of(action.name))
    @_filtered(action)
    @click.option(
        "--until",
        type=given_time,
        metavar="TIME",
        help=text("cli.option.until.bulk"),
    )
    @click.option("--go", is_flag=True, help=text("cli.option.go"))
    @signed
    @printed
    @click.pass_obj
    def act(api: Api, /, *, go: bool, in_json: bool, **given: Any) -> None:
        where = {name: given.pop(name) for name in WHERE}
        body: Json = {
            "action": action.name,
            "where": {name: value for name, value in where.items() if value is not None},
            "dryRun": not go,
            **{name: given.pop(name) for name in ("operator", "note", "until")},
        }
        body["arguments"] = body_of(arguments, given)
        summary, stopped = _carried_out(api, body)
        if stopped and not (go and summary["matching"]):
            raise stopped
        click.echo(terminal.as_json(summary) if in_json else formatting.bulk_text(summary, go=go))
        if stopped:
            raise stopped
        if summary["refused"]:
            raise ApiError(text("cli.bulk.not-all", orders=len(summary["refused"])))

    act.params += options_of(arguments)
    return act


def _carried_out(api: Api, body: Json) -> tuple[Json, ApiError | None]:
    """Send the request page by page, and report the progress.

    Returns everything that was done, and the error that ended it before the last page.
    """
    summary: Json = {
        "action": body["action"],
        "until": body["until"],
        "complete": False,
        **{name: [] for name in LISTS},
    }
    try:
        for page in api.bulk_pages(body):
            summary["until"] = page["until"]
            for name in LISTS:
                summary[name] += page[name]
            found, done = len(summary["matching"]), len(summary["done"])
            click.echo(text("cli.bulk.so-far", found=found, done=done), err=True)
    except ApiError as error:
        return summary, error
    return summary | {"complete": True}, None


for _action in ACTIONS:
    bulk.add_command(_command(_action))

COMMANDS = (bulk,)
