"""Commands for authors of a business.

`python -m engine.workflow new car-rental` makes a new business.
`python -m engine.workflow draw rental.business:RENTAL` draws its workflows.
"""

import sys
from importlib import import_module
from pathlib import Path

import click

from engine.declarations.business import Application
from engine.declarations.faults import StartUpError
from engine.workflow.drawing import mermaid
from engine.workflow.new import NewBusinessError, create, sample

NEXT = """Made {package}/ and {test}: edit {package}/business.py.

run it      BUSINESS={business} make run
  an order  make submit ORDER='{sample}'
draw it     .venv/bin/python -m engine.workflow draw {business}
check it    make check && make test ARGS={test}
deploy it   make declared ARGS="--deploy {business}"
            and then docs/operations/deploy.md"""


@click.group()
def main() -> None:
    """Commands for authors of workflows."""


@main.command()
@click.argument("business", metavar="MODULE:NAME")
def draw(business: str) -> None:
    """Draw the workflows of a business, such as `rental.business:RENTAL`, as text for Mermaid."""
    for workflow in _named(business).workflows.all:
        click.echo(f"%% {workflow.name} version {workflow.version}")
        click.echo(mermaid(workflow))


@main.command()
@click.argument("name")
def new(name: str) -> None:
    """Make a new business. NAME, such as car-rental, is the name of its workflow."""
    try:
        names = create(name)
    except NewBusinessError as error:
        raise click.UsageError(str(error)) from error
    click.echo(
        NEXT.format(
            package=names.package, test=names.test, business=names.business, sample=sample()
        )
    )


def _named(name: str) -> Application:
    module, _, attribute = name.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(import_module(module), attribute, None)
    except (ImportError, ValueError, StartUpError) as error:
        raise click.UsageError(f"{name}: {error}") from error
    if not isinstance(found, Application):
        raise click.UsageError(
            f"{name} is not a business; expected a name such as rental.business:RENTAL"
        )
    return found


if __name__ == "__main__":
    main(prog_name="python -m engine.workflow")
