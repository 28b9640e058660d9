"""Commands on personal data."""

import json
from itertools import chain

import click

from operations.cli import formatting
from operations.cli.client import Api, ApiError, Json
from operations.cli.commands.options import signed


@click.command()
@click.argument("order_id")
@signed
@click.pass_obj
def reveal(api: Api, *, order_id: str, operator: str, note: str) -> None:
    """Show the personal data of an order.

    The order's history keeps that you looked, and why.
    """
    body = {"operator": operator, "note": note}
    answer = api.post("orders", order_id, "reveal", body=body)
    click.echo(json.dumps(answer["payload"], indent=2, ensure_ascii=False))


@click.command()
@click.option(
    "--order",
    "order_ids",
    multiple=True,
    help="The id of an order of the customer. It can be repeated.",
)
@click.option("--email", help="All orders of this customer. It reads every order.")
@click.option("--go", is_flag=True, help="Erase. Without it, show the orders.")
@signed
@click.pass_obj
def erase(
    api: Api, *, order_ids: tuple[str, ...], email: str | None, go: bool, operator: str, note: str
) -> None:
    """Erase the personal data of a customer.

    The orders and their history stay.
    """
    signature = {"operator": operator, "note": note}
    pages = list(api.orders_of(email, signature)) if email else []
    found = [*order_ids, *chain.from_iterable(page["orders"] for page in pages)]
    outcomes = [_erase(api, order_id, signature, go=go) for order_id in found]
    refused = [why for why in outcomes if why]
    click.echo(f"{len(found)} orders" + ("" if go else "; to erase who the customer is: --go"))
    if email:
        messages = api.every("poison", "messages", first_only=False)["messages"]
        unreadable = chain.from_iterable(page["unreadable"] for page in pages)
        click.echo(formatting.out_of_reach(email, messages, unreadable))
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
