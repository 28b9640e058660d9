"""Commands for authors of workflows: `python -m flow draw examples.claims.business:CLAIMS`."""

import sys
from importlib import import_module
from pathlib import Path

import click

from core.business import Business
from flow.drawing import mermaid


@click.group()
def main() -> None:
    """Help authors of workflows."""


@main.command()
@click.argument("business", metavar="MODULE:NAME")
def draw(business: str) -> None:
    """Draw the workflows of a business, such as `shop.business:SHOP`, as text for Mermaid."""
    for workflow in _named(business).workflows.all:
        click.echo(f"%% {workflow.name} version {workflow.version}")
        click.echo(mermaid(workflow))


def _named(name: str) -> Business:
    module, _, attribute = name.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(import_module(module), attribute, None)
    except (ImportError, ValueError) as error:
        raise click.UsageError(f"{name}: {error}") from error
    if not isinstance(found, Business):
        raise click.UsageError(f"{name} is no business; expected a name such as shop.business:SHOP")
    return found


if __name__ == "__main__":
    main(prog_name="python -m flow")
