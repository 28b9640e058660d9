"""`python -m operators`: the operators' tools for those who live in a terminal.

Exit codes: 0 done; 1 refused, or not found; 2 wrong usage; 3 the app is away; 4 the key, or the
sign-in, was refused; 5 the app has failed, and its log says why.
"""

import getpass
import re
from collections.abc import Callable
from itertools import chain
from typing import Any, TypeVar

import click

from core.actions import ACTIONS, HOLD_AGENT, RELEASE_AGENT, Action
from core.agenda import LISTS, situation_in
from core.life import MEANINGS, Outcome, Situation
from operators.cli import formatting, terminal
from operators.cli.check import Check
from operators.cli.client import Api, ApiError, Json
from operators.cli.terminal import printable, show, table

Command = TypeVar("Command", bound=Callable[..., Any])

EVERYTHING = click.option(
    "--all", "everything", is_flag=True, help="Every page, not only the first."
)
IN_JSON = click.option("--json", "in_json", is_flag=True, help="Print what the API answers.")
WORKFLOW = click.option("--workflow", help="Orders on this workflow.")
WATCH = click.option(
    "--watch", type=click.FloatRange(min=0.1), metavar="SECONDS", help="Show it again and again."
)
STATES = click.Choice(list(LISTS), case_sensitive=False)
AS_ID = re.compile(r"b\d\d-")
"""How the id of an order begins; what begins otherwise is a key."""
OUTCOMES = click.Choice(
    [each.value for each in Outcome if MEANINGS[Situation(each)].waits_for_operator]
)
WAITING = next(name for name in LISTS if MEANINGS[situation_in(name)].waits_for_operator)
"""The list that is shown first: that of the orders that wait for an operator."""


def signed(command: Command) -> Command:
    """Give a command the options that say who acts, and why."""
    command = click.option(
        "--note", "-m", required=True, help="Why; it is kept with what is done."
    )(command)
    return click.option(
        "--operator", default=getpass.getuser, show_default="you", help="Who acts."
    )(command)


class Tools(click.Group):
    """The commands; an API error becomes a message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except ApiError as error:
            click.echo(f"Error: {printable(error)}", err=True)
            ctx.exit(error.exit_code)


@click.group(
    cls=Tools,
    epilog=(__doc__ or "").partition("\n\n")[2],
    context_settings={"max_content_width": 120},
)
@click.option(
    "--url",
    envvar="OPERATOR_URL",
    default="http://127.0.0.1:7071",
    show_default=True,
    show_envvar=True,
)
@click.option(
    "--key", envvar="OPERATOR_KEY", required=True, show_envvar=True, help="The operators' key."
)
@click.option(
    "--token",
    envvar="OPERATOR_TOKEN",
    show_envvar=True,
    help="Where operators sign in: their token.",
)
@click.pass_context
def main(ctx: click.Context, url: str, key: str, token: str | None) -> None:
    """Find out why an order is where it is, and put it right."""
    ctx.obj = Api(url, key, token)


# Orders


@main.command(name="list")
@click.option("--state", type=STATES, default=WAITING, show_default=True)
@WORKFLOW
@click.option("--limit", default=50, show_default=True, help="How many orders a page has.")
@EVERYTHING
@IN_JSON
@WATCH
@click.pass_obj
def list_orders(
    api: Api, /, *, everything: bool, in_json: bool, watch: float | None, **asked: str | int | None
) -> None:
    """List the open orders of a state, the longest waiting first."""

    def draw() -> tuple[Json, str]:
        answer = api.every("orders", "orders", first_only=not everything, **asked)
        return answer, formatting.with_more(formatting.orders_table(answer["orders"]), answer)

    show(draw, in_json=in_json, every=watch)


@main.command()
@click.argument("beginning")
@EVERYTHING
@IN_JSON
@click.pass_obj
def search(api: Api, *, beginning: str, everything: bool, in_json: bool) -> None:
    """Find orders, in any state, by the beginning of their ids, or of a key of the business."""

    def by_key() -> tuple[Json, str]:
        answer = api.every("orders", "orders", first_only=not everything, key=beginning)
        return answer, formatting.with_more(formatting.orders_table(answer["orders"]), answer)

    def by_id() -> tuple[Json, str]:
        answer = api.get("search", id=beginning)
        rows = [_found_row(order) for order in answer["orders"]]
        for order_id in answer["unreadable"]:
            rows += [(order_id, "unreadable", None, None, "see: explain")]
        more = "\n(there are more: give more of the id)" if answer["more"] else ""
        header = ("ORDER", "STATE", "OUTCOME", "SINCE", "REASON")
        return answer, table(header, rows) + more

    show(by_id if AS_ID.match(beginning) else by_key, in_json=in_json, every=None)


def _found_row(order: Json) -> tuple[object, ...]:
    names = ("orderId", "processState", "outcome", "updatedAt", "reason")
    return tuple(order[name] for name in names)


@main.command(name="show")
@click.argument("order_id")
@IN_JSON
@WATCH
@click.pass_obj
def show_order(api: Api, *, order_id: str, in_json: bool, watch: float | None) -> None:
    """Show an order: its state, what was ordered, its steps, and its whole history."""

    def draw() -> tuple[Json, str]:
        order = api.get("orders", order_id)
        return order, formatting.order_text(order)

    show(draw, in_json=in_json, every=watch)


@main.command()
@click.argument("order_id")
@IN_JSON
@WATCH
@click.pass_obj
def explain(api: Api, *, order_id: str, in_json: bool, watch: float | None) -> None:
    """Say why an order is where it is, who acts next and when, and what happens otherwise."""

    def draw() -> tuple[Json, str]:
        answer = api.get("orders", order_id, "explain")
        otherwise = f"If nothing happens: {printable(answer['ifNothingHappens'])}"
        return answer, f"{printable(answer['summary'])}\n{otherwise}"

    show(draw, in_json=in_json, every=watch)


def _action_command(action: Action) -> click.Command:
    """Return the command for an action on one order."""

    @click.argument("order_id")
    @signed
    @click.pass_obj
    def act(api: Api, *, order_id: str, operator: str, note: str, step: str | None = None) -> None:
        body = {"operator": operator, "note": note, **({"step": step} if step else {})}
        click.echo(formatting.acted(api.post("orders", order_id, action.name, body=body)))

    command = click.command(name=action.name, help=action.effect)(act)
    if action.of_step:
        of_step = "Which of the failed steps; may be left out if there is only one."
        command.params.insert(1, click.Option(["--step"], help=of_step))
    return command


for _action in ACTIONS:
    main.add_command(_action_command(_action))


# Many orders


@main.command()
@click.argument("action", type=click.Choice([action.name for action in ACTIONS]))
@WORKFLOW
@click.option("--step", help="Orders of which this step failed.")
@click.option("--reason", help="Orders with this reason, to the letter.")
@click.option("--outcome", type=OUTCOMES, help="Orders that ended so.")
@click.option(
    "--since",
    metavar="TIME",
    help="Orders that are as they are since then, e.g. 2026-01-31T10:00:00Z.",
)
@click.option(
    "--until",
    metavar="TIME",
    help="Orders that are as they are since before then. As a dry run says.",
)
@click.option("--go", is_flag=True, help="Act. Without it, only show what would be done.")
@signed
@IN_JSON
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
    **where: str | None,
) -> None:
    """Act on many orders, first as a dry run.

    They are the orders of the lists of the action. After an
    interruption, start it again with the same --until: it does the rest, and touches no order
    twice.
    """
    until = where.pop("until")
    body = {
        "action": action,
        "operator": operator,
        "note": note,
        "where": {name: value for name, value in where.items() if value is not None},
        "dryRun": not go,
        "until": until,
    }
    summary: Json = {
        "action": action,
        "until": until,
        "matching": [],
        "done": [],
        "refused": [],
        "changed": [],
    }
    for page in api.each_page(body):
        summary["until"] = page["until"]
        for name in ("matching", "done", "refused", "changed"):
            summary[name] += page[name]
        click.echo(
            f"{len(summary['matching'])} orders are meant until now, {len(summary['done'])} done",
            err=True,
        )
    click.echo(terminal.as_json(summary) if in_json else formatting.bulk_text(summary, go=go))


# Alerts


@main.command()
@click.option("--limit", default=50, show_default=True)
@EVERYTHING
@IN_JSON
@WATCH
@click.pass_obj
def alerts(api: Api, *, limit: int, everything: bool, in_json: bool, watch: float | None) -> None:
    """List the alerts, newest first."""

    def draw() -> tuple[Json, str]:
        answer = api.every("alerts", "alerts", limit=limit, first_only=not everything)
        return answer, formatting.with_more(formatting.alerts_table(answer["alerts"]), answer)

    show(draw, in_json=in_json, every=watch)


@main.command()
@IN_JSON
@WATCH
@click.pass_obj
def causes(api: Api, *, in_json: bool, watch: float | None) -> None:
    """Group the newest alerts by their cause."""

    def draw() -> tuple[Json, str]:
        answer = api.get("alerts", "causes")
        return answer, formatting.causes_table(answer["causes"])

    show(draw, in_json=in_json, every=watch)


@main.command()
@click.argument("keys", nargs=-1)
@click.option("--cause", help="All alerts with this reason, to the letter.")
@signed
@click.pass_obj
def acknowledge(
    api: Api, *, keys: tuple[str, ...], cause: str | None, operator: str, note: str
) -> None:
    """Take alerts upon yourself, by their keys or by their cause."""
    found = api.get("alerts", "causes")["causes"] if cause is not None else []
    named = list(keys)
    for each in found:
        if each["reason"] == cause:
            named += each["unacknowledged"]
    if not named:
        raise ApiError("no alert is meant by that")
    answer = api.post(
        "alerts", "acknowledge", body={"operator": operator, "note": note, "alerts": named}
    )
    click.echo(f"{len(answer['acknowledged'])} acknowledged")
    if answer["unknown"]:
        raise ApiError(f"unknown: {', '.join(answer['unknown'])}")


# The whole system


@main.command()
@IN_JSON
@WATCH
@click.pass_obj
def overview(api: Api, *, in_json: bool, watch: float | None) -> None:
    """Show how the system is doing."""

    def draw() -> tuple[Json, str]:
        answer = api.get("overview")
        return answer, formatting.overview_text(answer)

    show(draw, in_json=in_json, every=watch)


@main.command(name=HOLD_AGENT.name, help=HOLD_AGENT.effect)
@click.argument("agent")
@click.option(
    "--until", required=True, metavar="TIME", help="Until when, e.g. 2026-01-31T04:00:00Z."
)
@signed
@click.pass_obj
def hold_agent(api: Api, /, *, agent: str, **body: str) -> None:
    """Hold an agent."""
    held = api.post("agents", agent, "hold", body=body)
    click.echo(f"{printable(held['agent'])}: held until {printable(held['until'])}")


@main.command(name=RELEASE_AGENT.name, help=RELEASE_AGENT.effect)
@click.argument("agent")
@signed
@click.pass_obj
def release_agent(api: Api, /, *, agent: str, **body: str) -> None:
    """Release an agent."""
    answer = api.post("agents", agent, "release", body=body)
    click.echo(f"{printable(answer['agent'])}: released")


@main.command()
@click.option(
    "--patience", default=180.0, show_default=True, help="Seconds that each thing may take."
)
@click.pass_obj
def check(api: Api, *, patience: float) -> None:
    """Try the deployment: its health; with simulated services an order, an alert, a resubmit."""
    Check(api=api, patience_seconds=patience, say=lambda line: click.echo(printable(line))).run()


# Personal data


@main.command()
@click.option(
    "--order",
    "order_ids",
    multiple=True,
    help="An order of the customer; may be given several times.",
)
@click.option("--email", help="All orders of this customer: every order is looked at.")
@click.option("--go", is_flag=True, help="Erase. Without it, only show which orders are meant.")
@signed
@click.pass_obj
def erase(
    api: Api, *, order_ids: tuple[str, ...], email: str | None, go: bool, operator: str, note: str
) -> None:
    """Forget who a customer is; the orders and their history stay."""
    signature = {"operator": operator, "note": note}
    pages = list(api.orders_of(email, signature)) if email else []
    found = [*order_ids, *chain.from_iterable(page["orders"] for page in pages)]
    outcomes = [_erase(api, order_id, signature, go=go) for order_id in found]
    refused = [why for why in outcomes if why]
    click.echo(f"{len(found)} orders" + ("" if go else "; to erase who the customer is: --go"))
    if email:
        messages = api.every("poison", "messages", first_only=False)["messages"]
        unreadable = chain.from_iterable(page.get("unreadable", ()) for page in pages)
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


# Poison messages


@main.group()
def poison() -> None:
    """Look at messages that nobody could read; put them back, or drop them."""


@poison.command(name="list")
@EVERYTHING
@IN_JSON
@WATCH
@click.pass_obj
def list_poison(api: Api, *, everything: bool, in_json: bool, watch: float | None) -> None:
    """List what is kept, with the reasons, oldest first."""

    def draw() -> tuple[Json, str]:
        answer = api.every("poison", "messages", first_only=not everything)
        return answer, formatting.with_more(formatting.poison_table(answer["messages"]), answer)

    show(draw, in_json=in_json, every=watch)


@poison.command()
@click.argument("queue")
@click.argument("message_id")
@signed
@click.pass_obj
def redrive(api: Api, *, queue: str, message_id: str, operator: str, note: str) -> None:
    """Put a message back on its queue."""
    answer = api.post(
        "poison", queue, message_id, "redrive", body={"operator": operator, "note": note}
    )
    click.echo(f"{printable(answer['id'])}: {answer['status']}")


@poison.command()
@click.argument("queue")
@click.argument("message_id")
@signed
@click.pass_obj
def drop(api: Api, *, queue: str, message_id: str, operator: str, note: str) -> None:
    """Remove a message for good."""
    answer = api.post(
        "poison", queue, message_id, "drop", body={"operator": operator, "note": note}
    )
    click.echo(f"{printable(answer['id'])}: {answer['status']}")
