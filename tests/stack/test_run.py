"""`python -m local run`: several hosts, and the moments at which a person may stop it."""

import signal

import psutil
import pytest
from client import eventually


def running(processes):
    return [each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


async def test_ctrl_c_stops_several_hosts_one_of_which_was_started_again(start_runner):
    """A host that dies comes back at once; the end is orderly: exit code 0 and no process left."""
    runner = await start_runner(HOSTS="2")
    await runner.until_it_says("Ctrl-C stops everything")
    before = runner.children
    hosts = [child for child in before if "local.host" in child.cmdline()]
    assert (len(before), len(hosts)) == (4, 2)
    hosts[0].kill()
    await runner.until_it_says("starting it again (killed by SIGKILL")

    async def all_back():
        return len(runner.children) == 4

    await eventually(all_back)
    children = [*before, *runner.children]
    runner.process.send_signal(signal.SIGINT)
    assert await runner.until_it_ends() == 0, runner.output
    assert running(children) == []


@pytest.mark.parametrize("moment", ["waiting for Azurite", "broker is ready", "functions host"])
async def test_it_can_be_stopped_while_it_starts(start_runner, moment):
    """Whoever changes their mind need not wait: exit code 0 and no process left."""
    runner = await start_runner()
    await runner.until_it_says(moment)
    children = runner.children
    runner.process.send_signal(signal.SIGINT)
    assert await runner.until_it_ends() == 0, runner.output
    assert running(children) == []


@pytest.mark.skipif(not psutil.LINUX, reason="only Linux tells a child of its parent's death")
async def test_messages_survive_a_runner_that_is_killed(start_runner):
    """The broker has no journal: it gets SIGTERM, not SIGKILL, so that it writes what it holds."""
    runner = await start_runner()
    await runner.until_it_says("Ctrl-C stops everything")
    children = runner.children
    runner.process.kill()

    async def all_gone():
        return not running(children)

    await eventually(all_gone)
    assert list((runner.data / "broker").iterdir())
