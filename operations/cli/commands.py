"""`operators`: the operators' tools for those who live in a terminal."""

import getpass
import json
import os
import re
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

from engine.decisions.lists import ENDED_LISTS, LISTS, status_in
from engine.decisions.operator_actions import (
    ACTIONS,
    BY_NAME,
    LINK,
    PAUSE_AGENT,
    REMIND,
    RESUME_AGENT,
    RUNS,
    OperatorAction,
    Words,
)
from engine.domain.statuses import STATUS_INFO, OrderStatus, Outcome
from operations.cli import formatting, terminal
from operations.cli.check import Check
from operations.cli.client import Api, ApiError, Json
from operations.cli.copies import Copier, ids_in
from operations.cli.terminal import IN_UTC, in_zone, printable, show, table, verbatim, zone

Command = TypeVar("Command", bound=Callable[..., Any])

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
EPILOG = """Times are in this machine's time zone, or in UTC with --utc. You can give a time as
10:00 (today), as "2026-01-31 10:00", or with its zone, as 2026-01-31T10:00:00Z.

Exit codes: 0 done; 1 refused, or not found; 2 wrong usage; 3 the app is away; 4 the key, or the
sign-in, was refused; 5 the app has failed, and its log says why.

\b
Completion with the Tab key, in bash, zsh and fish:
  eval "$(_OPERATORS_COMPLETE=bash_source operators)"
  eval "$(_OPERATORS_COMPLETE=zsh_source operators)"
  _OPERATORS_COMPLETE=fish_source operators | source
"""
LOCAL_KEY = "local-operator"
"""The key of `make run`."""


def _wants_utc(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - of click
    ctx.meta[IN_UTC] = wanted


IN_UTC_OPTION = click.option(
    "--utc",
    is_flag=True,
    is_eager=True,  # before a time is read
    expose_value=False,
    callback=_wants_utc,
    help="Show and read times in UTC, instead of this machine's zone.",
)
IN_JSON_OPTION = click.option(
    "--json", "in_json", is_flag=True, help="Print the API's answer; its times are in UTC."
)


def printed(command: Command) -> Command:
    """Give a command the options that say how its answer is printed."""
    return IN_JSON_OPTION(IN_UTC_OPTION(command))


OPERATOR = click.option(
    "--operator", default=getpass.getuser, show_default="you", help="The operator's name."
)
EVERYTHING = click.option("--all", "everything", is_flag=True, help="Show all pages.")
WORKFLOW = click.option("--workflow", help="Only orders on this workflow.")
WATCH = click.option(
    "--watch",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="Repeat it every so many seconds, also while the app is away.",
)
STATES = click.Choice([*LISTS, *ENDED_LISTS], case_sensitive=False)
AS_ID = re.compile(r"b\d\d(-|$)")
"""How the id of an order begins; what begins otherwise is a key."""
OUTCOMES = click.Choice(
    [outcome.value for outcome in Outcome if STATUS_INFO[OrderStatus(outcome)].waits_for_operator]
)
WAITING = next(name for name in LISTS if STATUS_INFO[status_in(name)].waits_for_operator)
"""The list that is shown first: that of the orders that wait for an operator."""


def signed(command: Command) -> Command:
    """Give a command the options that say who acts, and why."""
    command = click.option(
        "--note", "-m", required=True, help="The reason, for the history and the log."
    )(command)
    return OPERATOR(command)


LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def given_time(text: str) -> str:
    """Return a time with its zone: if it names none, that in which times are shown.

    A text that is no time is left to the API, which refuses it.
    """
    try:
        time = datetime.fromisoformat(_with_date(text))
    except ValueError:
        return text
    if time.tzinfo:
        return text if len(text) > len("10:00:00Z") else time.isoformat()
    here = time.replace(tzinfo=UTC) if zone() else time.astimezone()
    return here.astimezone(UTC).isoformat()


def _with_date(text: str) -> str:
    """Return the text, with the date of today if it is only a time of day."""
    time_of_day = re.fullmatch(r"\d\d:\d\d(:\d\d)?(Z?)", text)
    if not time_of_day:
        return text
    today = datetime.now(UTC if time_of_day[2] else zone())
    return f"{today:%Y-%m-%d}T{text}"


class Tools(click.Group):
    """The commands; an API error becomes a message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except ApiError as error:
            click.echo(f"Error: {printable(error)}", err=True)
            ctx.exit(error.exit_code)


def _local_url() -> str:
    """Return the address of `make run`, which the same variable moves."""
    return f"http://127.0.0.1:{os.environ.get('HTTP_PORT') or 7071}"


def _safe_url(_ctx: click.Context, _option: click.Parameter, url: str) -> str:
    """Refuse an address to which the key would travel readable for all on its way."""
    try:
        address = urlsplit(url)
        _ = address.port
    except ValueError as fault:
        raise click.BadParameter(str(fault)) from None
    if address.scheme != "https" and address.hostname not in LOOPBACK:
        raise click.BadParameter(
            "expected https://, or http:// on this machine: the key goes there"
        )
    return url


def _print_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - of click
    if wanted and not ctx.resilient_parsing:
        project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
        click.echo(f"operators {project['version']}")
        ctx.exit()


@click.group(
    cls=Tools,
    epilog=EPILOG,
    context_settings={"max_content_width": 100},
)
@click.option(
    "--url",
    envvar="OPERATOR_URL",
    default=_local_url,
    callback=_safe_url,
    show_default="http://127.0.0.1:7071, or the port HTTP_PORT",
    show_envvar=True,
    help="The app's address.",
)
@click.option(
    "--key",
    envvar="OPERATOR_KEY",
    show_default=f"{LOCAL_KEY} on this machine",
    show_envvar=True,
    help="The operators' key.",
)
@click.option(
    "--token",
    envvar="OPERATOR_TOKEN",
    show_envvar=True,
    help="Your token, where operators sign in.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
@click.pass_context
def main(ctx: click.Context, url: str, key: str | None, token: str | None) -> None:
    """Find out why an order is where it is, and put it right."""
    if key is None and urlsplit(url).hostname not in LOOPBACK:
        (option,) = (param for param in main.params if param.name == "key")
        raise click.MissingParameter(ctx=ctx, param=option)
    ctx.obj = api = Api(url, LOCAL_KEY if key is None else key, token)
    ctx.call_on_close(api.close)


# Orders


@main.command(name="list")
@click.option("--state", type=STATES, default=WAITING, show_default=True, help="The list to show.")
@WORKFLOW
@click.option("--limit", default=50, show_default=True, help="The number of orders on a page.")
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
    """List the orders that failed, or those of another state.

    Open orders come the longest waiting first, ended ones the newest first.
    """

    def draw() -> tuple[Json, str]:
        answer = api.every("orders", "orders", first_only=not everything, **filters)
        return answer, formatting.with_more(formatting.orders_table(answer["orders"]), answer)

    show(draw, in_json=in_json, every=watch)


@main.command()
@click.argument("beginning")
@EVERYTHING
@printed
@click.pass_obj
def search(api: Api, *, beginning: str, everything: bool, in_json: bool) -> None:
    """Find orders by the beginning of their id or key.

    They may be in any state. A key is what the business names an order by, such as a claim number.
    """

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
    *found, reason = (order[name] for name in names)
    return (*found, verbatim(reason))


@main.command(name="show")
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


@main.command()
@click.argument("order_id")
@printed
@WATCH
@click.pass_obj
def explain(api: Api, *, order_id: str, in_json: bool, watch: float | None) -> None:
    """Explain why an order is where it is.

    It also says who acts next and when, and what happens otherwise.
    """

    def draw() -> tuple[Json, str]:
        answer = api.get("orders", order_id, "explain")
        return answer, formatting.explanation_text(answer)

    show(draw, in_json=in_json, every=watch)


SUMMARIES = {
    "resubmit": "Start the failed steps of an order again.",
    "skip": "Continue an order without a failed step.",
    "retry-with-new-key": "Start a failed step again under a new key.",
    "settle": "Say whether a step in doubt was done.",
    "cancel": "Undo an order.",
    "hold": "Hold an order, so that none of its steps start.",
    "release": "Release an order that is on hold.",
    "expedite": "Raise the priority of an order, and end its cooldown.",
    PAUSE_AGENT.name: "Send no requests to an agent until a time.",
    RESUME_AGENT.name: "Send requests to an agent again.",
    REMIND.name: "Send the request for an answer again.",
    LINK.name: "Print a new link for an answer.",
}
"""By action what its command does, in a few words; an action without an entry shows its title."""


def _help(action: Words) -> str:
    return f"{SUMMARIES.get(action.name, f'{action.title}.')}\n\n{action.effect}"


def _action_command(action: OperatorAction) -> click.Command:
    """Return the command for an action on one order."""

    @click.argument("order_id")
    @signed
    @click.pass_obj
    def act(
        api: Api,
        /,
        *,
        order_id: str,
        operator: str,
        note: str,
        step: str | None = None,
        **outcome: Any,
    ) -> None:
        body: Json = {"operator": operator, "note": note, **({"step": step} if step else {})}
        body |= _outcome_body(**outcome) if action.of_outcome else {}
        click.echo(formatting.acted(api.post("orders", order_id, action.name, body=body)))

    command = click.command(name=action.name, help=_help(action))(act)
    if action.of_step:
        of_step = "The step. Leave it out if there is only one."
        command.params.insert(1, click.Option(["--step"], help=of_step))
    if action.of_outcome:
        command.params += _outcome_options()
    return command


def _outcome_options() -> list[click.Parameter]:
    """Return the options that say whether a step in doubt was done."""
    return [
        click.Option(["--done/--not-done"], default=None, help="Whether the step was done."),
        click.Option(["--answer"], help="The answer of a step that was done: a JSON object."),
        click.Option(
            ["--confirm-late-effect"],
            is_flag=True,
            help="Settle it as not done, although a call may still take effect.",
        ),
    ]


def _outcome_body(*, done: bool | None, answer: str | None, confirm_late_effect: bool) -> Json:
    """Return what the options say of a step; raises `click.UsageError` without an outcome."""
    if done is None:
        raise click.UsageError("expected --done or --not-done")
    body: Json = {"wasDone": done}
    if answer is not None:
        body["answer"] = _object(answer)
    return body | ({"confirmLateEffect": True} if confirm_late_effect else {})


for _action in ACTIONS:
    main.add_command(_action_command(_action))


@main.command()
@click.argument("order_id")
@click.argument("step")
@click.argument("content", required=False)
@click.option("--refusal", help="The reason for a refusal, by which the step fails.")
@OPERATOR
@IN_UTC_OPTION
@click.pass_obj
def answer(
    api: Api, *, order_id: str, step: str, content: str | None, refusal: str | None, operator: str
) -> None:
    """Answer a step for someone outside, or show its question.

    CONTENT is the answer, a JSON object. Without it, and without a refusal, the command shows the
    question and the fields of the answer.
    """
    if content is None and refusal is None:
        click.echo(formatting.question_text(api.get("orders", order_id, "answers", step)))
        return
    body = {"operator": operator, "answer": _object(content), "refusal": refusal}
    taken = api.post("orders", order_id, "answers", step, body=body)
    click.echo(f"{printable(order_id)}: {printable(step)} {taken['status']}")


def _asking(words: Words) -> None:
    """Add a command that changes how an answer from outside is awaited."""

    @main.command(words.name, help=_help(words))
    @click.argument("order_id")
    @click.argument("step")
    @signed
    @click.pass_obj
    def act(api: Api, *, order_id: str, step: str, operator: str, note: str) -> None:
        body = {"operator": operator, "note": note}
        taken = api.post("orders", order_id, "answers", step, words.name, body=body)
        click.echo(printable(taken.get("callbackUrl") or formatting.acted(taken)))


_asking(REMIND)
_asking(LINK)


@main.command()
@click.argument("order_id")
@click.argument("step")
@click.argument("until", metavar="UNTIL", type=given_time)
@signed
@IN_UTC_OPTION
@click.pass_obj
def extend(api: Api, *, order_id: str, step: str, until: str, operator: str, note: str) -> None:
    """Move the time by which an answer is due.

    UNTIL is a time such as "2026-01-31 10:00", at most 30 days from now.
    """
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
        body |= _outcome_body(done=done, answer=answer, confirm_late_effect=confirm_late_effect)
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


bulk.params += _outcome_options()


# Alerts


@main.command()
@click.option("--limit", default=50, show_default=True, help="The number of alerts on a page.")
@EVERYTHING
@printed
@WATCH
@click.pass_obj
def alerts(api: Api, *, limit: int, everything: bool, in_json: bool, watch: float | None) -> None:
    """List the alerts, newest first."""

    def draw() -> tuple[Json, str]:
        answer = api.every("alerts", "alerts", limit=limit, first_only=not everything)
        return answer, formatting.with_more(formatting.alerts_table(answer["alerts"]), answer)

    show(draw, in_json=in_json, every=watch)


@main.command()
@printed
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
@click.option("--cause", help="All alerts with exactly this cause, as `causes` names it.")
@signed
@click.pass_obj
def acknowledge(
    api: Api, *, keys: tuple[str, ...], cause: str | None, operator: str, note: str
) -> None:
    """Acknowledge alerts, by their keys or by their cause."""
    found = api.get("alerts", "causes")["causes"] if cause is not None else []
    named = list(keys)
    for alert in found:
        if cause == (alert["cause"] or alert["reason"]):
            named += alert["unacknowledged"]
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
@printed
@WATCH
@click.pass_obj
def overview(api: Api, *, in_json: bool, watch: float | None) -> None:
    """Show the numbers of orders, messages, agents and sweeps."""

    def draw() -> tuple[Json, str]:
        answer = api.get("overview", fresh="true")
        return answer, formatting.overview_text(answer)

    show(draw, in_json=in_json, every=watch)


@main.command(name=PAUSE_AGENT.name, help=_help(PAUSE_AGENT))
@click.argument("agent")
@click.option(
    "--until",
    required=True,
    type=given_time,
    metavar="TIME",
    help='The end of the pause, such as "2026-01-31 04:00".',
)
@signed
@IN_UTC_OPTION
@click.pass_obj
def pause_agent(api: Api, /, *, agent: str, **body: str) -> None:
    """Pause an agent."""
    paused = api.post("agents", agent, "pause", body=body)
    click.echo(f"{printable(paused['agent'])}: paused until {in_zone(paused['until'])}")


@main.command(name=RESUME_AGENT.name, help=_help(RESUME_AGENT))
@click.argument("agent")
@signed
@click.pass_obj
def resume_agent(api: Api, /, *, agent: str, **body: str) -> None:
    """Resume an agent."""
    answer = api.post("agents", agent, "resume", body=body)
    click.echo(f"{printable(answer['agent'])}: resumed")


@main.command()
@click.argument("name", metavar="NAME", type=click.Choice(list(RUNS)))
@signed
@click.pass_obj
def run(api: Api, /, *, name: str, **body: str) -> None:
    """Run the work of a timer once."""
    ran = api.post("run", name, body=body)
    click.echo(f"{printable(ran['run'])}: done in {ran['seconds']} s")


@main.command()
@click.option(
    "--patience", default=180.0, show_default=True, help="How many seconds each check may take."
)
@click.pass_obj
def check(api: Api, *, patience: float) -> None:
    """Check a deployment.

    It reads the app's health. Where the services are simulated, it also places an order, waits for
    the alert of one that fails, and resubmits that.
    """
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
    """Copy all orders and messages into a new file.

    The copy has the orders, customers' keys, alerts and poison messages. It holds personal data, so
    only its owner can read the file.
    """
    click.echo(f"{printable(file)}: {_copier(api, signature).export(file)}")


@main.command()
@COPY
@click.option(
    "--erased",
    type=click.Path(path_type=Path),
    help="A file with the ids of the orders that were erased after the copy, one a line.",
)
@click.option("--leave-out", is_flag=True, help="End without the lines that are refused.")
@signed
@click.pass_obj
def restore(
    api: Api, /, *, file: Path, erased: Path | None, leave_out: bool, **signature: str
) -> None:
    """Restore a copy into an empty store.

    After an interruption, the same command continues.
    """
    order_ids = ids_in(erased) if erased else []
    done = _copier(api, signature).restore(file, order_ids, leave_out=leave_out)
    click.echo(f"{printable(file)}: {done}")


# Personal data


@main.command()
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


@main.command()
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


# Poison messages


@main.group()
def poison() -> None:
    """List, put back or drop messages that could not be read."""


@poison.command(name="list")
@EVERYTHING
@printed
@WATCH
@click.pass_obj
def list_poison(api: Api, *, everything: bool, in_json: bool, watch: float | None) -> None:
    """List the messages with their reasons, oldest first."""

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
    """Remove a message permanently."""
    answer = api.post(
        "poison", queue, message_id, "drop", body={"operator": operator, "note": note}
    )
    click.echo(f"{printable(answer['id'])}: {answer['status']}")
