"""Commands for external events."""

import click

from engine.words.catalogue import text
from operations.cli import formatting
from operations.cli.client import Api
from operations.cli.commands.action_help import help_of
from operations.cli.commands.options import IN_UTC_OPTION, OPERATOR, given_time, json_object, signed
from operations.cli.terminal import printable


@click.command(help=text("cli.command.answer"))
@click.argument("order_id")
@click.argument("step")
@click.argument("content", required=False)
@click.option("--refusal", help=text("cli.option.refusal"))
@OPERATOR
@IN_UTC_OPTION
@click.pass_obj
def answer(
    api: Api, *, order_id: str, step: str, content: str | None, refusal: str | None, operator: str
) -> None:
    if content is None and refusal is None:
        click.echo(formatting.question_text(api.get("orders", order_id, "answers", step)))
        return
    body = {"operator": operator, "answer": json_object(content), "refusal": refusal}
    taken = api.post("orders", order_id, "answers", step, body=body)
    click.echo(f"{printable(order_id)}: {printable(step)} {taken['status']}")


def _asking(action: str) -> click.Command:
    @click.command(action, help=help_of(action))
    @click.argument("order_id")
    @click.argument("step")
    @signed
    @click.pass_obj
    def act(api: Api, *, order_id: str, step: str, operator: str, note: str) -> None:
        body = {"operator": operator, "note": note}
        taken = api.post("orders", order_id, "answers", step, action, body=body)
        click.echo(printable(taken.get("callbackUrl") or formatting.acted(taken)))

    return act


@click.command(help=text("cli.command.extend"))
@click.argument("order_id")
@click.argument("step")
@click.argument("until", metavar="UNTIL", type=given_time)
@signed
@IN_UTC_OPTION
@click.pass_obj
def extend(api: Api, *, order_id: str, step: str, until: str, operator: str, note: str) -> None:
    body = {"operator": operator, "note": note, "until": until}
    click.echo(formatting.acted(api.post("orders", order_id, "answers", step, "extend", body=body)))


COMMANDS = (
    answer,
    extend,
    _asking("remind"),
    _asking("link"),
)
