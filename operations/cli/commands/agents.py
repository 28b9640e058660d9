"""Commands on agents."""

import click

from operations.cli.client import Api
from operations.cli.commands.action_help import help_of
from operations.cli.commands.options import IN_UTC_OPTION, given_time, signed
from operations.cli.terminal import in_zone, printable


@click.command(name="pause-agent", help=help_of("pause-agent"))
@click.argument("agent")
@click.option(
    "--until",
    required=True,
    type=given_time,
    metavar="TIME",
    help='The end of the pause, such as "2026-01-31 04:00".',
)
@signed
@IN_UTC_OPTION
@click.pass_obj
def pause_agent(api: Api, /, *, agent: str, **body: str) -> None:
    """Pause an agent."""
    paused = api.post("agents", agent, "pause", body=body)
    click.echo(f"{printable(paused['agent'])}: paused until {in_zone(paused['until'])}")


@click.command(name="resume-agent", help=help_of("resume-agent"))
@click.argument("agent")
@signed
@click.pass_obj
def resume_agent(api: Api, /, *, agent: str, **body: str) -> None:
    """Resume an agent."""
    answer = api.post("agents", agent, "resume", body=body)
    click.echo(f"{printable(answer['agent'])}: resumed")


COMMANDS = (
    pause_agent,
    resume_agent,
)
