"""The tutorial and the guides for one task each, followed to the letter.

A page that starts the system, or runs `make`, takes up to a minute: it is followed in the soak.
"""

import json
import os
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
from tests.support.guides import PAGES, ROOT, blocks, needs_stack, with_own_programs, written
from tests.support.reading import Shell, answered, asks_only, commands


def followed(page):
    """The page as an argument of the test; it is slow if it starts the system."""
    slow = any(map(needs_stack, blocks(page)))
    return pytest.param(page, id=page.stem, marks=[pytest.mark.soak] if slow else [])


class GuideReader:
    """Follows a page in a copy of the repository."""

    def __init__(self, root, shell, ports):
        self.root, self.shell, self._ports = root, shell, ports
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
        check = partial(answered, self.shell, command, expected)
        await (eventually(check) if asks_only(command) else check())

    def _start(self, variables):
        self._system = subprocess.Popen(
            [".venv/bin/python", "-m", "development", "run"],
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


@asynccontextmanager
async def reading(folder):
    """Somebody who has the repository, and a shell in it."""
    root, ports = copy_of_tree(folder / "tree"), Ports.free()
    with_own_programs(root)
    shell = await Shell.open(ports.http_port, cwd=root, env=environment(root, ports))
    reader = GuideReader(root, shell, ports)
    try:
        yield reader
    finally:
        reader.end()
        await shell.close()


@pytest.mark.parametrize("page", [followed(page) for page in PAGES])
async def test_the_page_does_what_it_shows(tmp_path, page):
    """Every file can be written, and every command gives the output that stands there."""
    async with reading(tmp_path) as reader:
        await reader.follow(page)
