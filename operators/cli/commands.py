"""`python -m operators`: the operators' tools for those who live in a terminal.

Exit codes: 0 done; 1 refused, or not found; 2 wrong usage; 3 the app is away; 4 the key, or the
sign-in, was refused; 5 the app has failed, and its log says why.
"""

import getpass
import json
import re
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

from core.actions import ACTIONS, HOLD_AGENT, LINK, RELEASE_AGENT, REMIND, RUNS, Action
from core.agenda import ENDED_LISTS, LISTS, situation_in
from core.life import MEANINGS, Outcome, Situation
from operators.cli import formatting, terminal
from operators.cli.check import Check
from operators.cli.client import Api, ApiError, Json
from operators.cli.copies import Copier, ids_in
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
STATES = click.Choice([*LISTS, *ENDED_LISTS], case_sensitive=False)
AS_ID = re.compile(r"b\d\d(-|$)")
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


LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class Tools(click.Group):
    """The commands; an API error becomes a message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except ApiError as error:
            click.echo(f"Error: {printable(error)}", err=True)
            ctx.exit(error.exit_code)


def _safe_url(_ctx: click.Context, _option: click.Parameter, url: str) -> str:
    """Refuse an address to which the key would travel readable for all on its way."""
    address = urlsplit(url)
    if address.scheme != "https" and address.hostname not in LOOPBACK:
        raise click.BadParameter(
            "expected https://, or http:// on this machine: the key goes there"
        )
    return url


@click.group(
    cls=Tools,
    epilog=(__doc__ or "").partition("\n\n")[2],
    context_settings={"max_content_width": 120},
)
@click.option(
    "--url",
    envvar="OPERATOR_URL",
    default="http://127.0.0.1:7071",
    callback=_safe_url,
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
    """List open orders, the longest waiting first; or ended ones, the newest first."""

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


@main.command()
@click.argument("order_id")
@click.argument("step")
@click.argument("content", required=False)
@click.option("--refusal", help="Why there is no answer: the step has failed then.")
@click.option("--operator", default=getpass.getuser, show_default="you", help="Who acts.")
@click.pass_obj
def answer(
    api: Api, *, order_id: str, step: str, content: str | None, refusal: str | None, operator: str
) -> None:
    """Answer a step, for somebody outside; the answer is a JSON object.

    Without it, show what is asked.
    """
    if content is None and refusal is None:
        click.echo(formatting.question_text(api.get("orders", order_id, "answers", step)))
        return
    body = {"operator": operator, "answer": _object(content), "refusal": refusal}
    taken = api.post("orders", order_id, "answers", step, body=body)
    click.echo(f"{printable(order_id)}: {printable(step)} {taken['status']}")


def _asking(name: str, words: str) -> None:
    """Add a command that changes how an answer from outside is awaited."""

    @main.command(name, help=words)
    @click.argument("order_id")
    @click.argument("step")
    @signed
    @click.pass_obj
    def act(api: Api, *, order_id: str, step: str, operator: str, note: str) -> None:
        body = {"operator": operator, "note": note}
        taken = api.post("orders", order_id, "answers", step, name, body=body)
        click.echo(printable(taken.get("answerUrl") or formatting.acted(taken)))


_asking(REMIND.name, REMIND.effect)
_asking(LINK.name, f"{LINK.effect} It is printed.")


@main.command()
@click.argument("order_id")
@click.argument("step")
@click.argument("until", metavar="UNTIL")
@signed
@click.pass_obj
def extend(api: Api, *, order_id: str, step: str, until: str, operator: str, note: str) -> None:
    """Wait for an answer until then, e.g. 2026-01-31T10:00:00Z; at most 30 days from now."""
    body = {"operator": operator, "note": note, "until": until}
    click.echo(formatting.acted(api.post("orders", order_id, "answers", step, "extend", body=body)))


def _object(text: str | None) -> Json | None:
    """Return the JSON object in a text; raises `click.BadParameter` for anything else."""
    try:
        found = json.loads(text) if text is not None else None
    except ValueError as fault:
        raise click.BadParameter(f"no JSON: {fault}") from None
    if found is not None and not isinstance(found, dict):
        raise click.BadParameter("expected a JSON object")
    return found


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
        "stillWaiting": [],
        "refused": [],
        "changed": [],
    }
    for page in api.each_page(body):
        summary["until"] = page["until"]
        for name in ("matching", "done", "stillWaiting", "refused", "changed"):
            summary[name] += page.get(name, [])  # an older host has fewer
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
        answer = api.get("overview", fresh="true")
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
@click.argument("name", metavar="NAME", type=click.Choice(list(RUNS)))
@signed
@click.pass_obj
def run(api: Api, /, *, name: str, **body: str) -> None:
    """Run the work of a timer once: sweep, poll, relay, watch or retention."""
    ran = api.post("run", name, body=body)
    click.echo(f"{printable(ran['run'])}: done in {ran['seconds']} s")


@main.command()
@click.option(
    "--patience", default=180.0, show_default=True, help="Seconds that each thing may take."
)
@click.pass_obj
def check(api: Api, *, patience: float) -> None:
    """Try the deployment: its health; with simulated services an order, an alert, a resubmit."""
    Check(api=api, patience_seconds=patience, say=lambda line: click.echo(printable(line))).run()


# Copies

COPY = click.argument("file", type=click.Path(path_type=Path))


def _copier(api: Api, signature: dict[str, str]) -> Copier:
    """Return what copies, and tells of its progress beside the output."""
    return Copier(
        api=api, signature=signature, say=lambda line: click.echo(printable(line), err=True)
    )


@main.command()
@COPY
@signed
@click.pass_obj
def export(api: Api, /, *, file: Path, **signature: str) -> None:
    """Copy all orders, customers' keys, alerts and poison messages into a new file.

    Only its owner can read the file. It holds personal data.
    """
    click.echo(f"{printable(file)}: {_copier(api, signature).export(file)}")


@main.command()
@COPY
@click.option(
    "--erased",
    type=click.Path(path_type=Path),
    help="A file with the orders that were erased since the copy was made, one a line.",
)
@click.option("--leave-out", is_flag=True, help="End it without the lines that are refused.")
@signed
@click.pass_obj
def restore(
    api: Api, /, *, file: Path, erased: Path | None, leave_out: bool, **signature: str
) -> None:
    """Restore a copy into an empty store; if it was cut short, the same command goes on."""
    order_ids = ids_in(erased) if erased else []
    done = _copier(api, signature).restore(file, order_ids, leave_out=leave_out)
    click.echo(f"{printable(file)}: {done}")


# Personal data


@main.command()
@click.argument("order_id")
@signed
@click.pass_obj
def reveal(api: Api, *, order_id: str, operator: str, note: str) -> None:
    """Show who the customer of an order is; its history keeps that you looked."""
    body = {"operator": operator, "note": note}
    answer = api.post("orders", order_id, "reveal", body=body)
    click.echo(json.dumps(answer["payload"], indent=2, ensure_ascii=False))


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
