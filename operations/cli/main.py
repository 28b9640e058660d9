"""`operators`: the operators' tools for those who live in a terminal."""

import os
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from engine.words.catalogue import text
from operations.cli import library_words
from operations.cli.client import Api, ApiError
from operations.cli.commands import (
    actions,
    agents,
    alerts,
    answers,
    bulk,
    copies,
    messages,
    orders,
    personal_data,
    system,
)
from operations.cli.terminal import printable

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
LOCAL_KEY = "local-operator"
"""The key of `make run`."""
LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class Tools(click.Group):
    """The commands; an API error becomes a message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except ApiError as error:
            click.echo(text("cli.error", error=printable(error)), err=True)
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
        raise click.BadParameter(text("cli.unsafe-url"))
    return url


def _print_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - of click
    if wanted and not ctx.resilient_parsing:
        project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
        click.echo(f"operators {project['version']}")
        ctx.exit()


@click.group(
    cls=Tools,
    epilog=text("cli.epilog"),
    context_settings={"max_content_width": 100},
    help=text("cli.command.main"),
)
@click.option(
    "--url",
    envvar="OPERATOR_URL",
    default=_local_url,
    callback=_safe_url,
    show_default=text("cli.default-url"),
    show_envvar=True,
    help=text("cli.option.url"),
)
@click.option(
    "--key",
    envvar="OPERATOR_KEY",
    show_default=text("cli.default-key", key=LOCAL_KEY),
    show_envvar=True,
    help=text("cli.option.key"),
)
@click.option(
    "--token",
    envvar="OPERATOR_TOKEN",
    show_envvar=True,
    help=text("cli.option.token"),
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help=text("cli.option.version"),
)
@click.pass_context
def main(ctx: click.Context, url: str, key: str | None, token: str | None) -> None:
    """Find out why an order is where it is, and put it right."""
    if key is None and urlsplit(url).hostname not in LOOPBACK:
        (option,) = (param for param in main.params if param.name == "key")
        raise click.MissingParameter(ctx=ctx, param=option)
    ctx.obj = api = Api(url, LOCAL_KEY if key is None else key, token)
    ctx.call_on_close(api.close)


MODULES = (
    orders,
    actions,
    answers,
    bulk,
    alerts,
    agents,
    system,
    copies,
    personal_data,
    messages,
)
library_words.translate()
for _command in chain.from_iterable(module.COMMANDS for module in MODULES):
    main.add_command(_command)
