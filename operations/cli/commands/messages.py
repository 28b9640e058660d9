"""Commands for messages that could not be read."""

import click

from engine.words.catalogue import text
from operations.cli import formatting
from operations.cli.client import Api, Json
from operations.cli.commands.options import EVERYTHING, WATCH, printed, signed
from operations.cli.terminal import printable, show


@click.group(help=text("cli.command.poison"))
def poison() -> None:
    """List, put back or drop unreadable messages."""


@poison.command(name="list", help=text("cli.command.poison.list"))
@EVERYTHING
@printed
@WATCH
@click.pass_obj
def list_poison(api: Api, *, everything: bool, in_json: bool, watch: float | None) -> None:
    def draw() -> tuple[Json, str]:
        answer = api.every("poison", "messages", first_only=not everything)
        return answer, formatting.with_more(formatting.poison_table(answer["messages"]), answer)

    show(draw, in_json=in_json, every=watch)


@poison.command(help=text("cli.command.poison.redrive"))
@click.argument("queue")
@click.argument("message_id")
@signed
@click.pass_obj
def redrive(api: Api, *, queue: str, message_id: str, operator: str, note: str) -> None:
    _act(api, queue, message_id, "redrive", {"operator": operator, "note": note})


@poison.command(help=text("cli.command.poison.drop"))
@click.argument("queue")
@click.argument("message_id")
@signed
@click.pass_obj
def drop(api: Api, *, queue: str, message_id: str, operator: str, note: str) -> None:
    _act(api, queue, message_id, "drop", {"operator": operator, "note": note})


def _act(api: Api, queue: str, message_id: str, action: str, signature: Json) -> None:
    answer = api.post("poison", queue, message_id, action, body=signature)
    click.echo(f"{printable(answer['id'])}: {answer['status']}")


COMMANDS = (poison,)
