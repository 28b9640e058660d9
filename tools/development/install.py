"""`python -m development.install FILE`: installs the packages of a requirements file into the running Python.

uv takes seconds. If uv is not available or fails, pip installs the same versions and compares the same digests. This
module imports only the standard library, because nothing else is installed yet. It also writes the command
`operators`, because the app itself is not installed as a package.
"""

import ast
import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

UV_REQUIREMENTS = Path(__file__).parents[2] / "infra/hooks/uv.txt"
BIN = Path(sys.prefix) / "bin"
COMMAND = """#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import sys
sys.path[0] = {root!r}
from operations.__main__ import main
main(prog_name="operators")
"""
"""A program that sh passes to its Python, whatever its path.

A `#!` line accepts no spaces, and has a limited length.
"""

PIP_OPTIONS = ("--quiet", "--disable-pip-version-check")
UV_SETTINGS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
}
"""uv's names for pip's settings of package sources, because uv does not read pip's."""


def install(*arguments: str | Path, python: str | Path = sys.executable) -> None:
    """Install the packages in these arguments of `pip install` into the environment of a Python.

    Raises `subprocess.CalledProcessError` if pip fails, too.
    """
    pip, configuration = _pip()
    if _install_uv(pip) and _succeeds(
        *(BIN / "uv", "pip", "install", "--quiet", "--python", python, *arguments),
        env={**uv_settings(configuration), **os.environ},
    ):
        return
    print("[setup] uv failed; pip installs the packages instead, in about a minute", flush=True)
    command = [*pip, "--python", str(python), "install", *PIP_OPTIONS, *arguments]
    subprocess.run(command, check=True)  # noqa: S603 - whoever calls this chooses what is installed


def write_command(folder: Path, python: str | Path = sys.executable) -> None:
    """Write the command `operators` into a folder of programs."""
    command = folder / "operators"
    command.write_text(COMMAND.format(python=python, root=str(Path(__file__).resolve().parents[2])))
    command.chmod(0o755)


def uv_settings(configuration: str) -> Mapping[str, str]:
    """Return the environment in which uv uses pip's package sources, from the output of `pip config list`."""
    found = {}
    for section in ("global.", "install.", ":env:."):
        for line in configuration.splitlines():
            name, _, value = line.partition("=")
            setting = UV_SETTINGS.get(name.removeprefix(section))
            if name.startswith(section) and setting:
                found[setting] = " ".join(ast.literal_eval(value).split())
    if "UV_FIND_LINKS" in found:
        found["UV_FIND_LINKS"] = found["UV_FIND_LINKS"].replace(" ", ",")
    # As with pip, a version may be in any of the indexes. Digests exclude every other file.
    return found | {"UV_INDEX_STRATEGY": "unsafe-best-match"}


def _install_uv(pip: Sequence[str]) -> bool:
    """Install uv if necessary. Return whether it is in this environment."""
    if (BIN / "uv").exists():
        return True
    command = [*pip, "--python", sys.executable, "install", *PIP_OPTIONS]
    return _succeeds(*command, "--require-hashes", "--no-deps", "-r", UV_REQUIREMENTS)


def _pip() -> tuple[Sequence[str], str]:
    """Return the command and the configuration of a pip, from this environment or the Python below it."""
    version = "python{}.{}".format(*sys.version_info)
    here, below = sys.executable, str(Path(sys.base_prefix) / "bin" / version)
    for python in (here, below):
        pip = (python, "-m", "pip")
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            # Pips before 22.3 do not know the option --python, which all later calls have.
            config = ("--python", here, "config", "list")
            return pip, _output(*pip, *config, stderr=subprocess.DEVNULL)
    # Some Pythons have no pip outside environments. Unpacking it takes longer than all that uv does, so it comes last.
    _output(here, "-m", "ensurepip")
    pip = (here, "-m", "pip")
    return pip, _output(*pip, "config", "list")


def _succeeds(*command: str | Path, env: Mapping[str, str] | None = None) -> bool:
    try:
        return subprocess.run(command, env=env, check=False).returncode == 0  # noqa: S603
    except OSError:
        return False


def _output(*command: str, stderr: int | None = None) -> str:
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, text=True, check=True)  # noqa: S603
    return ran.stdout


if __name__ == "__main__":
    os.environ["PIP_ROOT_USER_ACTION"] = "ignore"
    try:
        install("--require-hashes", "-r", sys.argv[1])
        write_command(BIN)
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
