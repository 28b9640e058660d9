"""Commands that export and restore all orders."""

from pathlib import Path

import click

from engine.words.catalogue import text
from operations.cli.client import Api
from operations.cli.commands.options import signed
from operations.cli.copies import Copier, ids_in
from operations.cli.terminal import printable

COPY = click.argument("file", type=click.Path(path_type=Path))


def _copier(api: Api, signature: dict[str, str]) -> Copier:
    """Make the copier, which reports its progress on stderr."""
    return Copier(
        api=api, signature=signature, say=lambda line: click.echo(printable(line), err=True)
    )


@click.command(help=text("cli.command.export"))
@COPY
@signed
@click.pass_obj
def export(api: Api, /, *, file: Path, **signature: str) -> None:
    click.echo(f"{printable(file)}: {_copier(api, signature).export(file)}")


@click.command(help=text("cli.command.restore"))
@COPY
@click.option(
    "--erased",
    type=click.Path(path_type=Path),
    help=text("cli.option.erased"),
)
@click.option("--leave-out", is_flag=True, help=text("cli.option.leave-out"))
@signed
@click.pass_obj
def restore(
    api: Api, /, *, file: Path, erased: Path | None, leave_out: bool, **signature: str
) -> None:
    order_ids = ids_in(erased) if erased else []
    done = _copier(api, signature).restore(file, order_ids, leave_out=leave_out)
    click.echo(f"{printable(file)}: {done}")


COMMANDS = (
    export,
    restore,
)
