"""`python -m development.install FILE`: installs the packages of a requirements file into the Python that runs it.

uv does it in seconds. Where it cannot be had, or fails, pip installs the same versions and compares the same digests.
Only what comes with Python is imported here: nothing else is installed yet.
"""

import ast
import functools
import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

UV_REQUIREMENTS = Path(__file__).parents[1] / "infra/hooks/uv.txt"
BIN = Path(sys.prefix) / "bin"
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
"""What uv calls the settings of pip that say where packages are; uv does not read pip's."""


def install(*arguments: str | Path, python: str | Path = sys.executable) -> None:
    """Install what these arguments of `pip install` name into the environment of a Python.

    Raises `subprocess.CalledProcessError` if pip fails too.
    """
    pip = [*_pip(), "--python", str(python)]
    if _bring_uv() and _succeeds(
        *(BIN / "uv", "pip", "install", "--quiet", "--python", python, *arguments),
        env={**uv_settings(_output(*pip, "config", "list")), **os.environ},
    ):
        return
    print("[setup] uv cannot install the packages; pip does, which takes about a minute")
    subprocess.run([*pip, "install", *PIP_OPTIONS, *arguments], check=True)  # noqa: S603 - the caller chooses what is installed


def uv_settings(configuration: str) -> Mapping[str, str]:
    """Return the environment in which uv finds packages where pip does, from what `pip config list` prints."""
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


def _bring_uv() -> bool:
    """Return whether uv is in this environment, after an attempt to install it."""
    if (BIN / "uv").exists():
        return True
    command = [*_pip(), "--python", sys.executable, "install", *PIP_OPTIONS]
    return _succeeds(*command, "--require-hashes", "--no-deps", "-r", UV_REQUIREMENTS)


@functools.cache
def _pip() -> Sequence[str]:
    """Return the command of a pip: from here, from the Python below, or of `ensurepip`, which takes seconds."""
    if importlib.util.find_spec("pip"):
        return (sys.executable, "-m", "pip")
    below = str(Path(sys.base_prefix) / "bin" / "python{}.{}".format(*sys.version_info))
    if _output(below, "-m", "pip", "--version"):
        return (below, "-m", "pip")
    subprocess.run([sys.executable, "-m", "ensurepip"], stdout=subprocess.DEVNULL, check=True)
    return (sys.executable, "-m", "pip")


def _succeeds(*command: str | Path, env: Mapping[str, str] | None = None) -> bool:
    try:
        return subprocess.run(command, env=env, check=False).returncode == 0  # noqa: S603
    except OSError:
        return False


def _output(*command: str) -> str:
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError:
        return ""
    return ran.stdout


if __name__ == "__main__":
    os.environ["PIP_ROOT_USER_ACTION"] = "ignore"
    try:
        install("--require-hashes", "-r", sys.argv[1])
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
