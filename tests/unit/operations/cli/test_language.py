"""The command line speaks the language that its user names."""

import inspect
import json
import os
import re
import subprocess
import sys

import pytest
from click import core, decorators, exceptions, formatting

from development.servicebus_config import ROOT
from operations.cli.library_words import KEYS

PRINT_HELP = """
import json
import click
from operations.cli.main import main

def helps(command, path):
    context = click.Context(command, info_name=path)
    yield path, command.get_help(context)
    for name, inner in getattr(command, "commands", {}).items():
        yield from helps(inner, f"{path} {name}")

print(json.dumps(dict(helps(main, "operators"))))
"""
CODES = re.compile(
    r"operators( [a-z-]+)*|--?[\w/-]+|[A-Z_]{2,}|\[[\w|-]+\]|^ +[a-z-]+  |local-operator|[\"'(][\w-]+[\"')]",
    re.MULTILINE,
)
"""Names of commands, options, variables and values."""
ENGLISH = re.compile(r"[A-Za-z]{3,}")


OF_LIBRARY = {"env", "var"}
"""Its words for which it asks nobody."""


def run(*arguments, language, **options):
    environment = {**os.environ, "OPERATOR_LANGUAGE": language, "COLUMNS": "1000"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        **options,
    )


def test_the_help_of_every_command_is_in_that_language():
    """Names of commands and options stay."""
    helps = json.loads(run("-c", PRINT_HELP, language="pseudo").stdout)
    assert len(helps) > 30
    left = {path: ENGLISH.findall(CODES.sub("", text)) for path, text in helps.items()}
    assert {word for words in left.values() for word in words} <= {"Error"}  # a list of orders


@pytest.mark.parametrize(
    "arguments",
    [
        ("hold",),
        ("hold", "b01-1"),
        ("zzz",),
        ("list", "--mend"),
        ("--url", "http://x.example", "list"),
        ("--key", "k", "export", "-", "--operator", "grace", "-m", "why"),
    ],
)
def test_wrong_usage_is_told_in_that_language(arguments):
    ran = run("-m", "operations", *arguments, language="pseudo")
    assert ran.returncode == 2
    given = {word for argument in arguments for word in ENGLISH.findall(argument)}
    assert set(ENGLISH.findall(CODES.sub("", ran.stderr))) <= given | OF_LIBRARY


def test_a_language_that_is_not_there_is_named():
    ran = run("-m", "operations", "list", language="tlh")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "OPERATOR_LANGUAGE" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_the_library_still_asks_for_its_words_so():
    """Its modules have no other way to be given some."""
    sources = [inspect.getsource(module) for module in (core, decorators, exceptions, formatting)]
    assert [words for words in KEYS if not any(words in source for source in sources)] == []
    assert [source for source in sources if "from gettext import gettext as _" not in source] == []
