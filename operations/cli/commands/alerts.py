"""Commands on alerts."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import click

from engine.words.catalogue import text
from engine.words.values import one_of
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
    def draw() -> tuple[Json, str]:
        answer = api.every("alerts", "alerts", limit=limit, first_only=not everything)
        return answer, formatting.with_more(formatting.alerts_table(answer["alerts"]), answer)

    show(draw, in_json=in_json, every=watch)


@click.command(help=text("cli.command.causes"))
@EVERYTHING
@printed
@WATCH
@click.pass_obj
def causes(api: Api, *, everything: bool, in_json: bool, watch: float | None) -> None:
    def draw() -> tuple[Json, str]:
        pages = api.pages("alerts", "causes")
        answer = next(pages)
        for page in pages if everything else ():
            answer = {**page, "causes": _together([*answer["causes"], *page["causes"]])}
        return answer, formatting.causes_text(answer)

    show(draw, in_json=in_json, every=watch)


def _together(found: Iterable[Json]) -> list[Json]:
    """Merge the causes of newer and older alerts.

    The cause with the most open alerts comes first.
    """
    groups: dict[tuple[str, ...], Json] = {}
    for cause in found:
        name = (cause["type"], cause["step"], _name(cause))
        newer = groups.get(name)
        groups[name] = _sum(newer, cause) if newer else cause
    return sorted(groups.values(), key=lambda cause: (cause["open"], cause["count"]), reverse=True)


def _sum(newer: Json, older: Json) -> Json:
    return newer | {
        "first": min(newer["first"], older["first"]),
        "last": max(newer["last"], older["last"]),
        **{
            name: newer[name] + older[name] for name in ("count", "open", "unacknowledged", "taken")
        },
    }


def _name(cause: Json) -> str:
    return str(cause["cause"] or cause["reason"])


@click.command(help=text("cli.command.acknowledge"))
@click.argument("keys", nargs=-1)
@click.option("--cause", help=text("cli.option.cause"))
@signed
@click.pass_obj
def acknowledge(
    api: Api, *, keys: tuple[str, ...], cause: str | None, operator: str, note: str
) -> None:
    if not keys and cause is None:
        raise click.UsageError(text("cli.expected", options=one_of(["KEYS", "--cause"])))
    became: dict[str, list[str]] = {"acknowledged": [], "byOthers": [], "unknown": []}
    try:
        for named in _named(api, keys, cause):
            body = {"operator": operator, "note": note, "alerts": named}
            answer = api.post("alerts", "acknowledge", body=body)
            for name in became:
                became[name] += answer[name]
    finally:  # what was done before a failure counts too
        if any(became.values()):
            click.echo(text("cli.acknowledged", alerts=len(became["acknowledged"])))
    if not any(became.values()):
        raise ApiError(text("cli.no-alert"))
    refused = {
        "cli.by-others": became["byOthers"],
        "cli.unknown": became["unknown"],
    }
    if not_done := [text(key, keys=", ".join(keys)) for key, keys in refused.items() if keys]:
        raise ApiError("; ".join(not_done))


def _named(api: Api, keys: Sequence[str], cause: str | None) -> Iterator[Sequence[str]]:
    """Yield the keys of the chosen alerts, as many at a time as one call accepts.

    With a cause, all alerts that exist when the command begins are searched.
    """
    yield from filter(None, [keys])
    for page in api.pages("alerts", "causes") if cause is not None else ():
        same = (group["unacknowledged"] for group in page["causes"] if cause == _name(group))
        yield from filter(None, [list(chain.from_iterable(same))])


COMMANDS = (
    alerts,
    causes,
    acknowledge,
)
