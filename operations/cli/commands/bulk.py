"""The command that acts on many orders."""

import click

from engine.decisions.operator_actions import ACTIONS, BY_NAME
from engine.domain.statuses import STATUS_INFO, OrderStatus, Outcome
from operations.cli import formatting, terminal
from operations.cli.client import Api, Json
from operations.cli.commands.actions import outcome_body, outcome_options
from operations.cli.commands.options import WORKFLOW, given_time, printed, signed

OUTCOMES = click.Choice(
    [outcome.value for outcome in Outcome if STATUS_INFO[OrderStatus(outcome)].waits_for_operator]
)


@click.command()
@click.argument("action", type=click.Choice([action.name for action in ACTIONS]))
@WORKFLOW
@click.option("--step", help="Only orders of which this step failed.")
@click.option("--agent", help="Only orders of which a step failed at this agent.")
@click.option("--cause", help="Only orders with exactly this cause, as `causes` names it.")
@click.option("--outcome", type=OUTCOMES, help="Only orders with this outcome.")
@click.option(
    "--since",
    type=given_time,
    metavar="TIME",
    help="Only orders that have changed since this time.",
)
@click.option(
    "--until",
    type=given_time,
    metavar="TIME",
    help="Only orders that have not changed since this time. A dry run prints the time to use.",
)
@click.option("--go", is_flag=True, help="Act. Without it, show what would be done.")
@signed
@printed
@click.pass_obj
def bulk(
    api: Api,
    /,
    *,
    action: str,
    go: bool,
    operator: str,
    note: str,
    in_json: bool,
    done: bool | None,
    answer: str | None,
    confirm_late_effect: bool,
    **where: str | None,
) -> None:
    """Act on many orders, first as a dry run.

    It acts on the orders that are listed for the action. After an interruption, start it again with
    the same --until: it does the rest, and touches no order twice.
    """
    until = where.pop("until")
    body: Json = {
        "action": action,
        "operator": operator,
        "note": note,
        "where": {name: value for name, value in where.items() if value is not None},
        "dryRun": not go,
        "until": until,
    }
    if BY_NAME[action].of_outcome:
        body |= outcome_body(done=done, answer=answer, confirm_late_effect=confirm_late_effect)
    summary: Json = {
        "action": action,
        "until": until,
        "matching": [],
        "done": [],
        "stillWaiting": [],
        "refused": [],
        "changed": [],
    }
    for page in api.bulk_pages(body):
        summary["until"] = page["until"]
        for name in ("matching", "done", "stillWaiting", "refused", "changed"):
            summary[name] += page[name]
        click.echo(
            f"{len(summary['matching'])} orders found so far, {len(summary['done'])} done",
            err=True,
        )
    click.echo(terminal.as_json(summary) if in_json else formatting.bulk_text(summary, go=go))


bulk.params += outcome_options()

COMMANDS = (bulk,)
