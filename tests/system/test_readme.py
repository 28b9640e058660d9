"""The README, followed to the letter."""

import asyncio
import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent.parent / "README.md"
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
END = "-- end of answer --"


def steps():
    """Every command of the README's console blocks, with the output to expect."""
    for block in CONSOLE.findall(README.read_text()):
        for part in block.split("$ ", 1)[1].split("\n$ "):
            command, _, expected = part.partition("\n")
            yield command, expected.strip()


def pattern_of(expected):
    """What the reader sees, where … stands for anything."""
    return re.compile(".*".join(re.escape(part) for part in expected.split("…")), re.DOTALL)


class Shell:
    """One bash, as the reader has it open."""

    def __init__(self, process, port):
        self._process = process
        self._port = port

    @classmethod
    async def open(cls, port):
        pipe = asyncio.subprocess.PIPE
        return cls(await asyncio.create_subprocess_exec("bash", stdin=pipe, stdout=pipe), port)

    async def run(self, command):
        command = command.replace(":7071", f":{self._port}")
        self._process.stdin.write(f"{command}\necho\necho '{END}'\n".encode())
        lines = []
        while (line := (await self._process.stdout.readline()).decode()).strip() != END:
            assert line, "the shell ended"
            lines.append(line)
        return "".join(lines).strip()

    async def close(self):
        self._process.stdin.close()
        await self._process.wait()


def asks_only(command):
    """Whether a reader may run the command again until it shows what is expected."""
    return command.startswith("curl") and "-X" not in command and " -d " not in command


@pytest.mark.timeout(90)
async def test_the_readme_does_what_it_says(own_stack):
    """Every command gives the output that the README shows; what only asks may be asked again for a while."""
    stack, _ = await own_stack(settings={})
    shell = await Shell.open(stack.ports.http_port)
    try:
        for command, expected in steps():
            wanted, deadline = pattern_of(expected), asyncio.get_running_loop().time() + 20
            while not wanted.match(answer := await shell.run(command)):
                late = asyncio.get_running_loop().time() > deadline
                assert asks_only(command), f"$ {command}\n{answer}\nexpected\n{expected}"
                assert not late, f"$ {command}\n{answer}\nexpected\n{expected}"
                await asyncio.sleep(0.1)
    finally:
        await shell.close()


def test_the_readme_has_steps():
    """The test above cannot pass by finding nothing to do."""
    assert len(list(steps())) > 15
