"""Commands that copy all orders and restore them."""

from pathlib import Path

import click

from operations.cli.client import Api
from operations.cli.commands.options import signed
from operations.cli.copies import Copier, ids_in
from operations.cli.terminal import printable

COPY = click.argument("file", type=click.Path(path_type=Path))


def _copier(api: Api, signature: dict[str, str]) -> Copier:
    """Return what copies, and tells of its progress beside the output."""
    return Copier(
        api=api, signature=signature, say=lambda line: click.echo(printable(line), err=True)
    )


@click.command()
@COPY
@signed
@click.pass_obj
def export(api: Api, /, *, file: Path, **signature: str) -> None:
    """Copy all orders and messages into a new file.

    The copy has the orders, customers' keys, alerts and poison messages. It holds personal data, so
    only its owner can read the file.
    """
    click.echo(f"{printable(file)}: {_copier(api, signature).export(file)}")


@click.command()
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


COMMANDS = (
    export,
    restore,
)
