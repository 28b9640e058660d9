"""`operators`: the operators' command line."""

import os
import re
import sys
import tomllib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from traceback import extract_tb
from typing import Any, NoReturn
from urllib.parse import urlsplit

import click

from engine.words.catalogue import text
from operations.cli import library_words
from operations.cli.client import Api, ApiError, BrokenError, WrongUsageError
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


HEADER = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?")
"""The possible content of a header. A line end, or a blank at an end, often comes from copying a
secret."""
WHOLE_ADDRESS = re.compile(r"[^@?#\s\x00-\x1f\x7f]+")
"""An address without a user name, query and fragment, which would be lost or shown."""
INTERRUPTED = 130
"""The exit code after Ctrl-C, as in shells."""


class Tools(click.Group):
    """The commands. Every failure becomes one line and an exit code."""

    def main(self, *arguments: Any, **options: Any) -> NoReturn:
        """Run a command, and end this process."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):  # it may lack characters of the texts
                stream.reconfigure(errors="backslashreplace")
        options["standalone_mode"] = False
        sys.exit(_exit_code(partial(super().main, *arguments, **options)))


def _exit_code(run: Callable[[], Any]) -> int:
    """Run a command, and return its exit code. A failure prints one line."""
    output = sys.stdout
    try:
        code = run()
    except click.ClickException as wrong:
        wrong.show()
        return wrong.exit_code
    except click.Abort:
        return INTERRUPTED
    except SystemExit:
        if sys.stdout is output:
            raise
        # The library has replaced an output that nobody reads.
        return _failed(BrokenPipeError())
    except Exception as error:  # noqa: BLE001 - scripts take 1 for the app's answer
        return _failed(error)
    return code if isinstance(code, int) else 0


def _failed(error: Exception) -> int:
    """Print why a command failed, and return its exit code.

    The text of an unexpected error is not shown, because it may hold a secret. Nothing is printed
    if the output is no longer read, as in `operators list | head -1`.
    """
    if isinstance(error, BrokenPipeError):
        return _output_lost("").exit_code
    if isinstance(error, OSError):
        error = _output_lost(error.strerror or type(error).__name__)
    if not isinstance(error, ApiError):
        place = extract_tb(error.__traceback__)[-1]
        at = f"{type(error).__name__}, {Path(place.filename).name}:{place.lineno}"
        error = BrokenError(text("cli.unexpected", error=at))
    with suppress(OSError):
        click.echo(text("cli.error", error=printable(error)), err=True)
    return error.exit_code


def _output_lost(why: str) -> ApiError:
    sys.stdout = None  # the rest of it is not tried again at the end
    return WrongUsageError(text("cli.no-output", error=why))


def _local_url() -> str:
    """Return the address of `make run`, which the same variable changes."""
    return f"http://127.0.0.1:{os.environ.get('HTTP_PORT') or 7071}"


def _safe_url(_ctx: click.Context, _option: click.Parameter, url: str) -> str:
    """Refuse an address to which the key would be sent unencrypted."""
    try:
        address = urlsplit(url)
        _ = address.port
    # The message does not repeat the address, which may hold a password.
    except ValueError:
        raise click.BadParameter(text("cli.no-address")) from None
    if address.scheme != "https" and address.hostname not in LOOPBACK:
        raise click.BadParameter(text("cli.unsafe-url"))
    if not address.hostname or not WHOLE_ADDRESS.fullmatch(url):
        raise click.BadParameter(text("cli.no-address"))
    return url


def _for_header(_ctx: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Refuse a secret that a header cannot hold, without repeating it."""
    if value is not None and not HEADER.fullmatch(value):
        raise click.BadParameter(text("cli.no-header"))
    return value


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
    callback=_for_header,
    show_default=text("cli.default-key", key=LOCAL_KEY),
    show_envvar=True,
    help=text("cli.option.key"),
)
@click.option(
    "--token",
    envvar="OPERATOR_TOKEN",
    callback=_for_header,
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
    """Find out why an order is where it is, and fix it."""
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
