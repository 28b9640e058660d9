"""Commands that find and show orders."""

import re

import click

from engine.decisions.lists import ENDED_LISTS, LISTS, status_in
from engine.domain.statuses import STATUS_INFO
from engine.words.catalogue import text
from operations.cli import formatting
from operations.cli.client import Api, Json
from operations.cli.commands.options import EVERYTHING, WATCH, WORKFLOW, printed
from operations.cli.terminal import headers, show, table, verbatim

STATES = click.Choice([*LISTS, *ENDED_LISTS], case_sensitive=False)
AS_ID = re.compile(r"b\d\d(-|$)")
"""How the id of an order begins; what begins otherwise is a key."""
WAITING = next(name for name in LISTS if STATUS_INFO[status_in(name)].waits_for_operator)
"""The list that is shown first: that of the orders that wait for an operator."""


@click.command(name="list", help=text("cli.command.list"))
@click.option(
    "--state", type=STATES, default=WAITING, show_default=True, help=text("cli.option.state")
)
@WORKFLOW
@click.option("--limit", default=50, show_default=True, help=text("cli.option.limit.orders"))
@EVERYTHING
@printed
@WATCH
@click.pass_obj
def list_orders(
    api: Api,
    /,
    *,
    everything: bool,
    in_json: bool,
    watch: float | None,
    **filters: str | int | None,
) -> None:
    """List the orders that failed, or those of another state."""

    def draw() -> tuple[Json, str]:
        answer = api.every("orders", "orders", first_only=not everything, **filters)
        return answer, formatting.with_more(formatting.orders_table(answer["orders"]), answer)

    show(draw, in_json=in_json, every=watch)


@click.command(help=text("cli.command.search"))
@click.argument("beginning")
@EVERYTHING
@printed
@click.pass_obj
def search(api: Api, *, beginning: str, everything: bool, in_json: bool) -> None:
    """Find orders by the beginning of their id or key."""

    def by_key() -> tuple[Json, str]:
        answer = api.every("orders", "orders", first_only=not everything, key=beginning)
        return answer, formatting.with_more(formatting.orders_table(answer["orders"]), answer)

    def by_id() -> tuple[Json, str]:
        answer = api.get("search", id=beginning)
        rows = [_found_row(order) for order in answer["orders"]]
        for order_id in answer["unreadable"]:
            rows += [(order_id, text("cli.unreadable"), None, None, text("cli.see-explain"))]
        more = f"\n{text('cli.more-of-id')}" if answer["more"] else ""
        header = headers("order", "state", "outcome", "since", "reason")
        return answer, table(header, rows) + more

    show(by_id if AS_ID.match(beginning) else by_key, in_json=in_json, every=None)


def _found_row(order: Json) -> tuple[object, ...]:
    names = ("orderId", "processState", "outcome", "updatedAt", "reason")
    *found, reason = (order[name] for name in names)
    return (*found, verbatim(reason))


@click.command(name="show", help=text("cli.command.show"))
@click.argument("order_id")
@printed
@WATCH
@click.pass_obj
def show_order(api: Api, *, order_id: str, in_json: bool, watch: float | None) -> None:
    """Show an order with its content, steps and history."""

    def draw() -> tuple[Json, str]:
        order = api.get("orders", order_id)
        return order, formatting.order_text(order)

    show(draw, in_json=in_json, every=watch)


@click.command(help=text("cli.command.explain"))
@click.argument("order_id")
@printed
@WATCH
@click.pass_obj
def explain(api: Api, *, order_id: str, in_json: bool, watch: float | None) -> None:
    """Explain why an order is where it is."""

    def draw() -> tuple[Json, str]:
        answer = api.get("orders", order_id, "explain")
        return answer, formatting.explanation_text(answer)

    show(draw, in_json=in_json, every=watch)


COMMANDS = (
    list_orders,
    search,
    show_order,
    explain,
)
