"""The command that runs the app of any folder; it knows nothing of the app that is developed here."""

import asyncio
import shutil
import signal
import subprocess
import sys
from functools import partial

import aiohttp
import pytest
from click.testing import CliRunner

from functions_alone import parts
from functions_alone.alone import Needs, bindings_of, connections, install, main, needs_of
from functions_alone.faults import LocalCode, StackFault
from functions_alone.ports import Ports, StackError
from functions_alone.tests.support.places import PLATFORM, TOOLS
from functions_alone.tests.support.waiting import eventually

READY = "Ctrl-C stops it"
PARCEL = {"type": "queueTrigger", "queueName": "%NAME%", "connection": "Parcels"}
VAN = {"type": "serviceBus", "queueName": "vans", "connection": "Vans"}


def test_what_an_app_names_is_made_once():
    """Queues by their names, or by the settings that hold them."""
    needs = needs_of([PARCEL, PARCEL, VAN, {"type": "http"}], {"NAME": "parcels"})
    assert needs == Needs(
        storage_queues=["parcels"],
        bus_queues=["vans"],
        storage_connections=["Parcels"],
        bus_connections=["Vans"],
    )


def test_a_connection_that_is_set_is_not_replaced():
    """Whoever names an account of theirs wants it to be used."""
    needs = Needs(storage_connections=["Parcels"], bus_connections=["Vans", "Trains"])
    env = {"AzureWebJobsParcels": "theirs", "Trains": "theirs"}
    assert set(connections(needs, Ports(), env)) == {"AzureWebJobsStorage", "Vans"}


def test_an_app_that_cannot_be_loaded_is_named_with_its_output(tmp_path):
    """With its folder; here no app is in it."""
    with pytest.raises(StackError) as raised:
        bindings_of(tmp_path, {"PYTHONPATH": str(TOOLS)})
    [fault] = raised.value.faults
    assert (fault.code, fault.place) == (LocalCode.APP_UNLOADABLE, str(tmp_path))
    assert f"[{LocalCode.APP_MISSING}]" in fault.facts["output"]


def test_what_npm_says_is_shown_when_the_parts_cannot_be_installed(tmp_path, monkeypatch):
    """Nothing is left of a half installation; here there is no package-lock.json."""
    (tmp_path / "node_modules").mkdir()
    monkeypatch.setattr(parts, "HERE", tmp_path)
    with pytest.raises(StackError) as raised:
        install(lambda _: None)
    [fault] = raised.value.faults
    assert fault.code == LocalCode.INSTALL_FAILED
    assert "package-lock.json" in fault.facts["output"]
    assert list(tmp_path.iterdir()) == []


def test_a_linked_folder_of_npm_packages_is_refused(tmp_path, monkeypatch):
    """(newcomer) npm would empty what the link leads to, such as another checkout's packages."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "package").touch()
    here = tmp_path / "here"
    here.mkdir()
    (here / "node_modules").symlink_to(theirs)
    monkeypatch.setattr(parts, "HERE", here)
    with pytest.raises(StackError) as raised:
        install(lambda _: None)
    fault = StackFault(
        LocalCode.MODULES_LINKED, str(here / "node_modules"), {"target": str(theirs)}
    )
    assert list(raised.value.faults) == [fault]
    assert [path.name for path in theirs.iterdir()] == ["package"]


def test_a_command_that_cannot_run_the_app_ends_with_the_code(tmp_path):
    """Its exit code is 1."""
    ended = CliRunner().invoke(main, [str(tmp_path)], env={"HTTP_PORT": "door"})
    assert ended.exit_code == 1
    assert f"[{LocalCode.PORT_INVALID}]" in ended.stderr
    assert "HTTP_PORT=door" in ended.stderr


async def answer(runner, path, **more):
    url = f"http://127.0.0.1:{runner.ports.http_port}{path}"
    async with (
        aiohttp.ClientSession() as http,
        http.request(more.pop("method", "GET"), url, **more) as response,
    ):
        return response.status, await response.text()


async def has(runner, path, text, **more):
    status, body = await answer(runner, path, **more)
    assert status == 200
    return text in body.splitlines()


async def ends(runner):
    runner.process.send_signal(signal.SIGINT)
    assert await runner.until_it_ends() == 0, runner.output


@pytest.mark.soak
async def test_a_message_goes_through_triggers_and_outputs(run):
    """From HTTP to a Storage Queue, from there to Service Bus, and to a function again."""
    runner = await run("parcels")
    await runner.until_it_says(READY)
    assert await answer(runner, "/parcels", method="POST", data="a book") == (202, "")
    await eventually(partial(has, runner, "/parcels", "a book"))
    await ends(runner)


@pytest.mark.soak
async def test_a_timer_fires_and_a_key_is_required(run):
    """With settings of the folder's local.settings.json; parts that are killed come back."""
    runner = await run("clock")
    await runner.until_it_says(READY)
    assert (await answer(runner, "/clock"))[0] == 401

    async def has_struck():
        status, text = await answer(runner, "/clock?code=local")
        assert status == 200
        name, struck = text.split()
        return name == "tower" and int(struck) > 1

    await eventually(has_struck)
    for part in runner.children():
        part.kill()
    await runner.until_it_says("ended unexpectedly; starting it again")
    listening = asyncio.create_task(runner.listen())

    async def strikes_again():
        try:
            return await has_struck()
        except aiohttp.ClientError:
            return False

    await eventually(strikes_again)
    listening.cancel()
    await asyncio.wait([listening])
    await ends(runner)


@pytest.mark.soak
async def test_it_runs_from_an_installation_in_an_empty_environment(run, tmp_path):
    """Nothing of the repository is on its path; what it needs of npm comes by itself, the first time."""
    source, environment = tmp_path / "source", tmp_path / "environment"
    shutil.copytree(PLATFORM, source, ignore=shutil.ignore_patterns("node_modules", "build"))
    await done(sys.executable, "-m", "venv", environment)
    await done(environment / "bin/pip", "install", "-q", "--no-compile", source)
    [installed] = environment.glob("lib/*/site-packages/functions_alone")
    assert not (installed / "tests").exists()
    runner = await run("parcels", command=[environment / "bin/functions-alone"], path="")
    await runner.until_it_says("installing Azurite and the AMQP library")
    await runner.until_it_says(READY)
    assert await answer(runner, "/parcels", method="POST", data="a book") == (202, "")
    await eventually(partial(has, runner, "/parcels", "a book"))
    await ends(runner)


async def done(*command):
    """Run a command to its end, which must be a good one."""
    await asyncio.to_thread(subprocess.run, command, check=True)
