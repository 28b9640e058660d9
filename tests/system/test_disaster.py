"""`docs/operations/disaster-recovery.md`, followed to the letter: a copy, the loss of all tables, and the restoring."""

import re
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from functions_alone.ports import Ports
from functions_alone.tests.support.waiting import eventually
from tests.support.client import DONE, PATIENT, QUICK
from tests.support.interfaces import CommandLine
from tests.support.reading import Shell, answered, asks_only, steps, with_operators
from tests.support.stacks import running

FORGETFUL = Path(__file__).parent / "app_forgetful"
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/operations/disaster-recovery.md"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
SWITCH = re.compile(r"(AzureWebJobs\.\w+\.Disabled)=(\w+)")


def runs(folder):
    """Each run of the page: the settings with which it starts, and the page of what is done then."""
    text = PAGE.read_text().split("## Try it")[1]
    starts = re.split(r"^```sh\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)[1:]
    for number, (command, part) in enumerate(zip(starts[::2], starts[1::2], strict=True)):
        assert command.strip().endswith(("make run", "-m development run"))
        page = folder / f"part{number}.md"
        page.write_text(part)
        yield dict(SWITCH.findall(command)), page


async def follow(shell, page):
    """Run every command; what only asks may be asked again for a while."""
    for command, expected in steps(page):
        if asks_only(command):
            await eventually(partial(answered, shell, command, expected))
        else:
            await answered(shell, command, expected)


@pytest.mark.soak
@pytest.mark.proves("OPR-11", "AGT-3")
async def test_the_page_about_disasters_does_what_it_says(tmp_path):
    """Nothing of an order is done twice, though it was done after the copy; what was erased stays so."""
    ports, data = Ports.free(), tmp_path / "data"
    shell, followed = None, 0
    try:
        for settings, page in runs(tmp_path):
            change = {"ports": ports, "settings": settings, "in_memory": False}
            async with running(data, **change) as (stack, client):
                storage = {"STATE_STORAGE": stack.storage_connection_string}
                shell = shell or await Shell.open(
                    ports.http_port, cwd=ROOT, env=with_operators(tmp_path) | storage
                )
                await follow(shell, page)
                followed += 1
                half, before = [await shell.run(f"echo ${name}") for name in ("HALF", "BEFORE")]
                if followed == 3:
                    assert await client.actions(half) == DONE
                    order = await client.order(before)
                    assert "Ada" not in str(order)
                    assert order["processState"] == "Processed"
                    assert await shell.run("stat -c %a $COPY") == "600"
    finally:
        if shell:
            await shell.close()
    assert followed == 3


async def run_command(client, *words):
    """What the command line says; it ends well."""
    code, output, why = await CommandLine(client).run(*words, "-m", "the tables are gone")
    assert code == 0, why
    return output


@pytest.mark.soak
@pytest.mark.proves("OPR-11", "AGT-12")
async def test_steps_of_an_old_copy_go_to_an_operator_where_services_have_forgotten_their_keys(
    tmp_path,
):
    """Each step that was not done; an operator who looked there lets it begin anew."""
    file = tmp_path / "orders"
    async with running(tmp_path / "one", app=FORGETFUL, settings=PATIENT) as (_, client):
        await client.fault("down")
        order_id = await client.place()
        await eventually(lambda: stock_is_reserved(client, order_id))
        await run_command(client, "export", str(file))
    made_old(file, days=2)
    async with running(tmp_path / "two", app=FORGETFUL, settings=QUICK) as (_, client):
        await run_command(client, "restore", str(file))
        for step in ("payment", "shipment", "capture"):
            order = await client.until(order_id, "Error")
            assert step in order["history"][-1]["detail"]
            assert " only until " in order["reason"]
            assert "retry-with-new-key" in order["actions"]
            await eventually(lambda: renewed(client, order_id))
        await client.until(order_id, "Processed")
        assert await client.actions(order_id) == ["authorise", "capture", "ship"]


async def stock_is_reserved(client, order_id):
    order = await client.order(order_id)
    return order and order["steps"][0]["state"] == "Completed"


async def renewed(client, order_id):
    """Let the failed step begin anew, once it has failed."""
    code, _, _ = await CommandLine(client).run(
        "retry-with-new-key", order_id, "-m", "it was not done"
    )
    return code == 0


def made_old(file, days):
    """As if the copy had been made so long ago: every time in it is of that day."""

    def earlier(time):
        return (datetime.fromisoformat(time[0]) - timedelta(days=days)).isoformat()

    file.write_text(TIME.sub(earlier, file.read_text()))
