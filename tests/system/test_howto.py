"""The tutorial and the guides for one task each, followed to the letter.

The soak follows each page that starts the system on the embedded stack. `make test` follows the other pages,
and the smallest business in memory.
"""

import json
import os
import re
import subprocess
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from functions_alone.ports import Ports
from functions_alone.tests.support.waiting import eventually, until
from tests.support.another_business import copy_of_tree
from tests.support.guides import (
    PAGES,
    ROOT,
    SMALLEST,
    blocks,
    needs_stack,
    with_own_programs,
    written,
)
from tests.support.reading import Shell, answered, asks_only, commands
from tests.support.served import SUBMIT

ON_STACK = [page for page in PAGES if any(map(needs_stack, blocks(page)))]
WITHOUT = [page for page in PAGES if page not in ON_STACK or page == SMALLEST]


class GuideReader:
    """Follows a page in a copy of the repository."""

    def __init__(self, root, shell, ports, on_stack):
        self.root, self.shell = root, shell
        self._ports, self._on_stack = ports, on_stack
        self._system = None

    async def follow(self, page):
        for block in blocks(page):
            if not block.needs_azure:
                await self.do(block)

    async def do(self, block):
        if block.start:
            self.end()
            self._start(block.start)
            until(self._answers)
        elif block.language == "console":
            for command, expected in commands(block.text):
                await self.type(command, expected)
        else:
            self.edit(self.root / block.file, block.text)

    def edit(self, file, part):
        text = file.read_text() if file.exists() else ""
        if file.suffix == ".json":
            file.write_text(json.dumps(json.loads(text) | json.loads(part)))
        else:
            file.write_text(written(text, part))

    async def type(self, command, expected):
        if command == "make clean":
            self.end()
        if re.match("make (?!submit)", command) and not self._on_stack:
            return  # it may take minutes
        check = partial(answered, self.shell, command, expected)
        await (eventually(check) if asks_only(command) else check())

    def _start(self, variables):
        own = ["development", "run"]
        if not self._on_stack:
            own = ["tests.support.served", variables["BUSINESS"], str(self._ports.http_port)]
        self._system = subprocess.Popen(
            [".venv/bin/python", "-m", *own],
            cwd=self.root,
            env=environment(self.root, self._ports) | variables,
        )

    def _answers(self):
        assert self._system.poll() is None
        try:
            with urlopen(f"http://127.0.0.1:{self._ports.http_port}/api/health"):
                return True
        except URLError:
            return False

    def end(self):
        if self._system:
            # A shell that starts `make test` in the background lets its children ignore SIGINT.
            self._system.terminate()
            self._system.wait()
            self._system = None


def environment(root, ports):
    """What a shell in the copy has."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    at = {name.upper(): str(port) for name, port in asdict(ports).items()}
    cache = str(ROOT / ".mypy_cache")
    own = {"PYTHONPATH": f"{root}/tools", "COLUMNS": "100", "MYPY_CACHE_DIR": cache}
    return kept | at | own


MAKE = f'make() {{ curl -s http://127.0.0.1:7071{SUBMIT} -d "${{2#ORDER=}}"; }}'
"""What stands for `make submit`, where no queue is."""


@asynccontextmanager
async def reading(folder, *, on_stack):
    """Somebody who has the repository, and a shell in it."""
    root, ports = copy_of_tree(folder / "tree"), Ports.free()
    with_own_programs(root)
    shell = await Shell.open(ports.http_port, cwd=root, env=environment(root, ports))
    if not on_stack:
        await shell.run(MAKE)
    reader = GuideReader(root, shell, ports, on_stack)
    try:
        yield reader
    finally:
        reader.end()
        await shell.close()


@pytest.mark.parametrize("page", WITHOUT, ids=lambda page: page.stem)
async def test_the_page_does_what_it_shows(tmp_path, page):
    """Every file can be written and every command gives the output that stands there, but those of `make`."""
    async with reading(tmp_path, on_stack=False) as reader:
        await reader.follow(page)


@pytest.mark.soak
@pytest.mark.parametrize("page", ON_STACK, ids=lambda page: page.stem)
async def test_the_page_does_what_it_shows_on_the_embedded_stack(tmp_path, page):
    """With the commands of `make`."""
    async with reading(tmp_path, on_stack=True) as reader:
        await reader.follow(page)
