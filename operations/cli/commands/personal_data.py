"""Commands on personal data."""

import json
from itertools import chain

import click

from engine.words.catalogue import text
from operations.cli import formatting
from operations.cli.client import Api, ApiError, Json
from operations.cli.commands.options import signed


@click.command(help=text("cli.command.reveal"))
@click.argument("order_id")
@signed
@click.pass_obj
def reveal(api: Api, *, order_id: str, operator: str, note: str) -> None:
    """Show the personal data of an order."""
    body = {"operator": operator, "note": note}
    answer = api.post("orders", order_id, "reveal", body=body)
    click.echo(json.dumps(answer["payload"], indent=2, ensure_ascii=False))


@click.command(help=text("cli.command.erase"))
@click.option(
    "--order",
    "order_ids",
    multiple=True,
    help=text("cli.option.order"),
)
@click.option("--email", help=text("cli.option.email"))
@click.option("--go", is_flag=True, help=text("cli.option.go.personal-data"))
@signed
@click.pass_obj
def erase(
    api: Api, *, order_ids: tuple[str, ...], email: str | None, go: bool, operator: str, note: str
) -> None:
    """Erase the personal data of a customer."""
    signature = {"operator": operator, "note": note}
    pages = list(api.orders_of(email, signature)) if email else []
    found = [*order_ids, *chain.from_iterable(page["orders"] for page in pages)]
    outcomes = [_erase(api, order_id, signature, go=go) for order_id in found]
    refused = [why for why in outcomes if why]
    click.echo(text("cli.erased" if go else "cli.to-erase", orders=len(found)))
    if email:
        messages = next(api.orders_of(email, signature))["messages"]  # those that are still there
        unreadable = chain.from_iterable(page["unreadable"] for page in pages)
        click.echo(formatting.out_of_reach(messages, unreadable))
    if refused:
        raise ApiError("; ".join(refused))


def _erase(api: Api, order_id: str, signature: Json, *, go: bool) -> str:
    """Erase the customer's data of one order; return why it was refused, or an empty text."""
    if not go:
        click.echo(order_id)
        return ""
    try:
        click.echo(formatting.acted(api.post("orders", order_id, "erase", body=signature)))
    except ApiError as error:
        if error.exit_code != ApiError.exit_code:
            raise
        return f"{order_id}: {error}"
    return ""


COMMANDS = (
    reveal,
    erase,
)
