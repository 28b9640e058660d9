"""Commands on the whole system."""

import click

from engine.decisions.operator_actions import RUNS
from engine.words.catalogue import text
from operations.cli import formatting
from operations.cli.check import Check
from operations.cli.client import Api, Json
from operations.cli.commands.options import LONGEST_SECONDS, WATCH, Seconds, printed, signed
from operations.cli.terminal import printable, show


@click.command(help=text("cli.command.overview"))
@printed
@WATCH
@click.pass_obj
def overview(api: Api, *, in_json: bool, watch: float | None) -> None:
    """Show numbers of orders, messages, agents and sweeps."""

    def draw() -> tuple[Json, str]:
        answer = api.get("overview", fresh="true")
        return answer, formatting.overview_text(answer)

    show(draw, in_json=in_json, every=watch)


def _help_of_runs() -> str:
    """Return the help of `run`, with a paragraph for each NAME."""
    names = [f'"{name}": {text(f"run.{name}")}' for name in RUNS]
    return "\n\n".join([text("cli.command.run"), *names])


@click.command(help=_help_of_runs())
@click.argument("name", metavar="NAME", type=click.Choice(RUNS))
@signed
@click.pass_obj
def run(api: Api, /, *, name: str, **body: str) -> None:
    ran = api.post("run", name, body=body)
    click.echo(text("cli.ran", run=printable(ran["run"]), seconds=ran["seconds"]))


@click.command(help=text("cli.command.check"))
@click.option(
    "--patience",
    type=Seconds(min=0, max=LONGEST_SECONDS),
    default=180.0,
    show_default=True,
    help=text("cli.option.patience"),
)
@click.pass_obj
def check(api: Api, *, patience: float) -> None:
    Check(api=api, patience_seconds=patience, say=lambda line: click.echo(printable(line))).run()


COMMANDS = (
    overview,
    run,
    check,
)
