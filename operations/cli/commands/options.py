"""The options that several commands share, and the parsing of their values."""

import getpass
import re
from collections.abc import Callable
from datetime import UTC, datetime
from math import isfinite
from typing import Any, TypeVar

import click

from engine.domain import exact_json
from engine.words.catalogue import text
from operations.cli.client import Json
from operations.cli.terminal import IN_UTC, zone

Command = TypeVar("Command", bound=Callable[..., Any])


def _wants_utc(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - of click
    ctx.meta[IN_UTC] = wanted


LONGEST_SECONDS = 86_400.0


class Seconds(click.FloatRange):
    """A number of seconds."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number. Fails for a number out of range, and for `nan`."""
        seconds: float = super().convert(value, param, ctx)
        return seconds if isfinite(seconds) else self.fail(text("cli.no-number"), param, ctx)


IN_UTC_OPTION = click.option(
    "--utc",
    is_flag=True,
    is_eager=True,  # before a time is read
    expose_value=False,
    callback=_wants_utc,
    help=text("cli.option.utc"),
)
IN_JSON_OPTION = click.option("--json", "in_json", is_flag=True, help=text("cli.option.json"))


def printed(command: Command) -> Command:
    """Add the options for the form of the output to a command."""
    return IN_JSON_OPTION(IN_UTC_OPTION(command))


def _user() -> str | None:
    """Return the name of the user. None if this machine has none, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None


def _named(ctx: click.Context, option: click.Parameter, value: str | None) -> str:
    if value is None:
        raise click.MissingParameter(ctx=ctx, param=option)
    return value


OPERATOR = click.option(
    "--operator",
    default=_user,
    callback=_named,
    show_default=text("cli.you"),
    help=text("cli.option.operator"),
)
EVERYTHING = click.option("--all", "everything", is_flag=True, help=text("cli.option.all"))
WORKFLOW = click.option("--workflow", help=text("cli.option.workflow"))
WATCH = click.option(
    "--watch",
    type=Seconds(min=0.1, max=LONGEST_SECONDS),
    metavar="SECONDS",
    help=text("cli.option.watch"),
)


def signed(command: Command) -> Command:
    """Add the options for the operator and the note to a command."""
    command = click.option("--note", "-m", required=True, help=text("cli.option.note"))(command)
    return OPERATOR(command)


def given_time(given: str) -> str:
    """Return a time with its zone. The default is the zone in which times are shown.

    A text that is not a time is left to the API, which refuses it. Raises `click.BadParameter` for
    a time that the clocks of the zone skip.
    """
    try:
        time = datetime.fromisoformat(_with_date(given))
        if time.tzinfo:
            return given if len(given) > len("10:00:00Z") else time.isoformat()
        here = time.replace(tzinfo=UTC) if zone() else time.astimezone()
        meant = here.astimezone(UTC)
        if meant.astimezone(zone()).replace(tzinfo=None) != time:
            raise click.BadParameter(text("cli.skipped-time", time=given))
        return meant.isoformat()
    except (ValueError, OverflowError):
        return given


def _with_date(given: str) -> str:
    """Return the text with today's date if it is only a time of day."""
    time_of_day = re.fullmatch(r"\d\d:\d\d(:\d\d)?(Z?)", given)
    if not time_of_day:
        return given
    today = datetime.now(UTC if time_of_day[2] else zone())
    return f"{today:%Y-%m-%d}T{given}"


def json_object(given: str | None) -> Json | None:
    """Return the JSON object in a text. Raises `click.BadParameter` for anything else."""
    try:
        found = exact_json.read(given) if given is not None else None
        exact_json.write(found).encode()  # fails for half an emoji, which no app takes
    except ValueError as fault:
        raise click.BadParameter(text("fault.no-json", error=fault)) from None
    if found is not None and not isinstance(found, dict):
        raise click.BadParameter(text("cli.no-object"))
    return found
