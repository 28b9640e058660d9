"""Commands on alerts."""

import click

from engine.words.catalogue import text
from operations.cli import formatting
from operations.cli.client import Api, ApiError, Json
from operations.cli.commands.options import EVERYTHING, WATCH, printed, signed
from operations.cli.terminal import show


@click.command(help=text("cli.command.alerts"))
@click.option("--limit", default=50, show_default=True, help=text("cli.option.limit"))
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


@click.command(help=text("cli.command.causes"))
@printed
@WATCH
@click.pass_obj
def causes(api: Api, *, in_json: bool, watch: float | None) -> None:
    """Group the newest alerts by their cause."""

    def draw() -> tuple[Json, str]:
        answer = api.get("alerts", "causes")
        return answer, formatting.causes_table(answer["causes"])

    show(draw, in_json=in_json, every=watch)


@click.command(help=text("cli.command.acknowledge"))
@click.argument("keys", nargs=-1)
@click.option("--cause", help=text("cli.option.cause"))
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
        raise ApiError(text("cli.no-alert"))
    answer = api.post(
        "alerts", "acknowledge", body={"operator": operator, "note": note, "alerts": named}
    )
    click.echo(text("cli.acknowledged", alerts=len(answer["acknowledged"])))
    if answer["unknown"]:
        raise ApiError(text("cli.unknown", keys=", ".join(answer["unknown"])))


COMMANDS = (
    alerts,
    causes,
    acknowledge,
)
