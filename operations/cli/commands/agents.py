"""Commands on agents."""

import click

from engine.words.catalogue import text
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
    help=text("cli.option.until"),
)
@signed
@IN_UTC_OPTION
@click.pass_obj
def pause_agent(api: Api, /, *, agent: str, **body: str) -> None:
    paused = api.post("agents", agent, "pause", body=body)
    agent, until = printable(paused["agent"]), in_zone(paused["until"])
    click.echo(text("cli.paused", agent=agent, until=until))


@click.command(name="resume-agent", help=help_of("resume-agent"))
@click.argument("agent")
@signed
@click.pass_obj
def resume_agent(api: Api, /, *, agent: str, **body: str) -> None:
    answer = api.post("agents", agent, "resume", body=body)
    click.echo(text("cli.resumed", agent=printable(answer["agent"])))


COMMANDS = (
    pause_agent,
    resume_agent,
)
