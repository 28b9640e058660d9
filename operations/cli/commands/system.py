"""Commands on the whole system."""

import click

from engine.decisions.operator_actions import RUNS
from operations.cli import formatting
from operations.cli.check import Check
from operations.cli.client import Api, Json
from operations.cli.commands.options import WATCH, printed, signed
from operations.cli.terminal import printable, show


@click.command()
@printed
@WATCH
@click.pass_obj
def overview(api: Api, *, in_json: bool, watch: float | None) -> None:
    """Show the numbers of orders, messages, agents and sweeps."""

    def draw() -> tuple[Json, str]:
        answer = api.get("overview", fresh="true")
        return answer, formatting.overview_text(answer)

    show(draw, in_json=in_json, every=watch)


@click.command()
@click.argument("name", metavar="NAME", type=click.Choice(RUNS))
@signed
@click.pass_obj
def run(api: Api, /, *, name: str, **body: str) -> None:
    """Run the work of a timer once."""
    ran = api.post("run", name, body=body)
    click.echo(f"{printable(ran['run'])}: done in {ran['seconds']} s")


@click.command()
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


COMMANDS = (
    overview,
    run,
    check,
)
