"""Another implementation of AMQP 1.0 on the local broker: Qpid Proton, in C, with Debian's Python."""

import asyncio
import json
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from azure.servicebus import ServiceBusMessage

CLIENTS = Path(__file__).with_name("proton_clients.py")
PYTHON = Path("/usr/bin/python3")
CONNECTIONS, PER_CONNECTION = 100, 10


async def run(*command: str | Path) -> tuple[int, str, str]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    output, error = await process.communicate()
    return process.returncode, output.decode(), error.decode()


@pytest.fixture(scope="module")
async def proton() -> None:
    """Qpid Proton, which has no wheel for Python: `apt install python3-qpid-proton`."""
    await skip_without_proton(PYTHON)


async def skip_without_proton(python: Path) -> None:
    code = (await run(python, "-c", "import proton"))[0] if shutil.which(python) else 1
    if code:
        pytest.skip(f"{python} has no Qpid Proton; on Debian: apt-get install python3-qpid-proton")


@pytest.mark.soak
@pytest.mark.usefixtures("local", "proton")
async def test_a_hundred_connections_attach_and_ask_at_once(connection_string, unread):
    """Connections that send attach and credit in one breath while messages wait each get theirs, and none ends."""
    sent = [str(number) for number in range(CONNECTIONS * PER_CONNECTION)]
    await unread.sender.send_messages([ServiceBusMessage(body) for body in sent])
    port = urlsplit(connection_string.partition(";")[0].removeprefix("Endpoint=")).port
    code, output, error = await run(
        PYTHON, CLIENTS, str(port), unread.name, str(CONNECTIONS), str(PER_CONNECTION)
    )
    assert code == 0, error
    report = json.loads(output)
    assert report["faults"] == []
    assert [len(some) for some in report["received"]] == [PER_CONNECTION] * CONNECTIONS
    assert sorted(body for some in report["received"] for body in some) == sorted(sent)


@pytest.mark.parametrize("program", ["#!/bin/sh\nexit 1\n", None])
async def test_without_proton_the_test_is_skipped(tmp_path, program):
    """The reason names the package, also where Debian's Python is not there."""
    python = tmp_path / "python3"
    if program:
        python.write_text(program)
        python.chmod(0o755)
    with pytest.raises(pytest.skip.Exception, match="python3-qpid-proton"):
        await skip_without_proton(python)
