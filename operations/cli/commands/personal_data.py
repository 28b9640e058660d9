"""Commands on personal data."""

from collections.abc import Iterable
from itertools import chain

import click
import simplejson

from engine.words.catalogue import text
from operations.cli import formatting
from operations.cli.client import Api, ApiError, Json
from operations.cli.commands.options import signed


@click.command(help=text("cli.command.reveal"))
@click.argument("order_id")
@signed
@click.pass_obj
def reveal(api: Api, *, order_id: str, operator: str, note: str) -> None:
    body = {"operator": operator, "note": note}
    answer = api.post("orders", order_id, "reveal", body=body)
    click.echo(simplejson.dumps(answer["payload"], indent=2, ensure_ascii=False))


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
    signature = {"operator": operator, "note": note}
    pages = list(api.orders_of(email, signature)) if email else []
    found = [*order_ids, *chain.from_iterable(page["orders"] for page in pages)]
    if go:
        not_done = _erase(api, found, signature)
    else:
        not_done = []
        click.echo("\n".join([*found, text("cli.to-erase", orders=len(found))]))
    if email:
        messages = next(api.orders_of(email, signature))["messages"]  # those that are still there
        unreadable = chain.from_iterable(page["unreadable"] for page in pages)
        left = formatting.out_of_reach(messages, unreadable)
        click.echo("\n".join([*left, text("cli.not-looked-at")]))
        if left and go:
            not_done.append(text("cli.erased.left", count=len(left)))
    if not_done:
        raise ApiError("; ".join(not_done))


def _erase(api: Api, order_ids: Iterable[str], signature: Json) -> list[str]:
    """Erase the customer's data in these orders. Return why some were refused."""
    refused: list[str] = []
    erased = 0
    try:
        for order_id in order_ids:
            try:
                done = api.post("orders", order_id, "erase", body=signature)
            except ApiError as error:
                if error.exit_code != ApiError.exit_code:
                    raise
                refused.append(f"{order_id}: {error}")
            else:
                erased += 1
                click.echo(formatting.acted(done))
    finally:  # what was erased before a failure counts too
        click.echo(text("cli.erased", orders=erased))
    return refused


COMMANDS = (
    reveal,
    erase,
)
