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
AS_ID = re.compile(r"b[0-9]{2}(-[0-9A-HJKMNP-TV-Z]{0,26})?", re.IGNORECASE)
"""The beginning of an order's id, in any case. A business key may look the same."""
WAITING = next(name for name in LISTS if STATUS_INFO[status_in(name)].waits_for_operator)
"""The default list: the orders that wait for an operator."""


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
    """Find orders by the beginning of their id or key.

    A text that may be either is searched as both.
    """

    def draw() -> tuple[Json, str]:
        by_key = api.every("orders", "orders", first_only=not everything, key=beginning)
        shown = formatting.with_more(formatting.orders_table(by_key["orders"]), by_key)
        typed = beginning.strip()
        if not AS_ID.fullmatch(typed):
            return by_key, shown
        by_id = api.get("search", id=f"b{typed[1:].upper()}")
        if by_id["orders"] or by_id["unreadable"]:
            shown = "\n\n".join([_by_id(by_id), *([shown] if by_key["orders"] else [])])
        known = {order["orderId"] for order in by_id["orders"]}
        others = [order for order in by_key["orders"] if order["orderId"] not in known]
        return {**by_key, **by_id, "orders": [*by_id["orders"], *others]}, shown

    show(draw, in_json=in_json, every=None)


def _by_id(answer: Json) -> str:
    rows = [_found_row(order) for order in answer["orders"]]
    for order_id in answer["unreadable"]:
        rows += [(order_id, text("cli.unreadable"), None, None, text("cli.see-explain"))]
    more = f"\n{text('cli.more-of-id')}" if answer["more"] else ""
    return table(headers("order", "state", "outcome", "since", "reason"), rows) + more


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
