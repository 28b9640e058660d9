"""Starts other programs at the path that `shutil.which` finds. On Windows some are scripts."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Sequence

from faults import HookError, HookFault

ROOT = Path(__file__).resolve().parent.parent.parent
"""The project's folder. azd starts a hook in the folder of its file."""


def azd(*arguments: str) -> str:
    """Return the output of azd. Raises `HookError` with this output if it fails."""
    place = _place(arguments)
    try:
        ran = subprocess.run(
            [path_of("azd"), *arguments],
            cwd=str(ROOT),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=False,
        )
    except OSError as error:
        facts = {"exit": "none", "output": error}
        raise HookError(HookFault("program-failed", place, facts)) from error
    # azd prints its errors on standard output.
    output = ran.stdout.decode(errors="replace")
    if ran.returncode:
        text = output + ran.stderr.decode(errors="replace")
        facts = {"exit": ran.returncode, "output": text}
        raise HookError(HookFault("program-failed", place, facts))
    return output


def azd_json(*arguments: str) -> Any:
    """Return the JSON object that azd prints.

    Raises `HookError` if it fails or prints anything else.
    """
    output = azd(*arguments, "--output", "json")
    try:
        found = json.loads(output)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        # Without the output: it may hold a token, or the secrets of the environment.
        raise HookError(HookFault("output-unreadable", _place(arguments)))
    return found


def _place(arguments: Sequence[str]) -> str:
    """Return the command without its options, as a person knows it."""
    return " ".join(["azd", *itertools.takewhile(lambda word: word[0] != "-", arguments)])


def path_of(program: str, folder: Any = None) -> str:
    """Return the path of a program, on the path or in a folder.

    Raises `HookError` if there is none.
    """
    found = shutil.which(program, path=None if folder is None else str(folder))
    if found is None:
        raise HookError(HookFault("program-missing", program))
    return found
