"""The commands of the Makefile that no other test goes through."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from functools import partial
from pathlib import Path

import pytest

from development import checks
from development.install import uv_settings, write_command
from development.servicebus_config import ROOT
from tests.support.deployed_package import clean_python

MAKEFILE = (ROOT / "Makefile").read_text()


def made(target, arguments):
    """What a command prints, with the environment that the tests run in; nothing is installed."""
    stamps = [
        f"--old-file={stamp}"
        for stamp in (
            f"{sys.prefix}/.installed",
            f"{sys.prefix}/.installed-dev",
            "tools/functions_alone/node_modules/.installed",
        )
    ]
    command = ["make", *stamps, target, f"VENV={sys.prefix}", f"ARGS={arguments}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("target", "arguments", "says"),
    [
        ("bench", "--help", "one JSON line"),
        ("explore", "waits, faults 0, resubmit 0, threshold 2, alone", "1 worlds, "),
        ("mutants", "--help", "such as SUP-5"),
        ("operator", "--help", "resubmit"),
    ],
)
def test_a_command_does_what_its_name_says(target, arguments, says):
    """It finds all that it imports, and takes what it is told in ARGS."""
    ran = made(target, arguments)
    assert ran.returncode == 0, ran.stderr
    assert says in ran.stdout


@pytest.mark.soak
def test_exploring_nothing_is_no_success():
    """A text that no world has is a mistake."""
    ran = made("explore", "no such world")
    assert ran.returncode != 0
    assert "no such world" in ran.stderr


def test_every_command_is_in_the_help():
    """`make help` has a line for every command, and for nothing else, in 100 columns (newcomer C, `make help`)."""
    (names,) = re.findall(r"^\.PHONY: help (.+)$", MAKEFILE, re.MULTILINE)
    shown = made("help", "").stdout.splitlines()
    assert {line.split()[1] for line in shown if line.startswith("make ")} == set(names.split())
    assert max(map(len, shown)) <= 100


def test_a_check_is_named_before_it_runs(monkeypatch, capsys):
    """It may be silent for minutes (newcomer C, `make check`); what one finds keeps none from running."""
    lines, codes = [], [1, 0]

    def run(*_, **__):
        lines.append(len(capsys.readouterr().out.splitlines()))
        return subprocess.CompletedProcess([], codes.pop(0))

    monkeypatch.setattr(checks.subprocess, "run", run)
    assert checks.main() == 1
    assert (lines, codes) == ([1, 1], [])


@pytest.fixture(scope="module")
def operators(tmp_path_factory):
    """The command `operators` as a set-up writes it, in a folder with a space."""
    folder = tmp_path_factory.mktemp("a bin")
    write_command(folder)
    return folder / "operators"


def ran(command, *arguments, **environment):
    """Run a command somewhere else than in the repository, with nothing of the operators' variables set."""
    own = ("OPERATOR_", "HTTP_PORT", "PYTHONPATH")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    return subprocess.run(
        [command, *arguments],
        cwd=command.parent,
        env=clean | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_operators_tools_are_a_command_of_the_environment(operators):
    """It needs no `make`, works in any folder, and says its version (newcomer C, D)."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    ended = ran(operators, "--version")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"operators {version}\n", "")


def test_a_shell_asks_the_command_how_to_go_on(operators):
    """In the way of click (newcomer D)."""
    completion = {"COMP_WORDS": "operators list --state w", "COMP_CWORD": "3"}
    found = ran(operators, _OPERATORS_COMPLETE="bash_complete", **completion)
    assert (found.returncode, found.stdout.split()) == (0, ["plain,waiting"])


def test_a_closed_pipe_is_no_failure_of_the_command(operators):
    """As in `operators list | head -1`: no traceback, whoever reads no more."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        ended = subprocess.run(
            [operators, "--help"], stdout=closed, stderr=subprocess.PIPE, check=False
        )
    assert ended.stderr == b""


def test_what_a_run_installs_is_enough():
    """`make run`, `make func` and `make operator` import nothing that only tests and checks need."""
    python = clean_python(named_in="requirements-local.txt")
    modules = "development.__main__, development.core_tools, operations.__main__"
    command = [python, "-c", f"import {modules}"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


COPIED = (
    "Makefile",
    "requirements-local.txt",
    "requirements-dev.txt",
    "tools/development/__init__.py",
    "tools/development/install.py",
    "infra/hooks/uv.txt",
)
TOO_OLD = "#!/bin/sh\nexit 1\n"
FITS = """#!/bin/sh
echo "$0 $*" >> calls
if [ "$2" = venv ]; then mkdir -p "$4/bin" && cp "$0" "$4/bin/python"; fi
"""
FAILS_TO_INSTALL = """#!/bin/sh
if [ "$2" = venv ]; then mkdir -p "$4/bin" && cp "$0" "$4/bin/python"; fi
test "$2" != development.install
"""


@pytest.fixture
def copy(tmp_path):
    """A folder with what a set-up reads."""
    for name in COPIED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def set_up(folder, python, stamp=".installed", **environment):
    """What `make` says where a `.venv` is to be made by this Python."""
    command = ["make", f".venv/{stamp}", f"PYTHON={python}"]
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "MAKE"))
    }
    return subprocess.run(
        command, cwd=folder, env=env | environment, capture_output=True, text=True, check=False
    )


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(("before", "made_anew"), [(TOO_OLD, True), (FITS, False), (None, True)])
def test_an_environment_of_a_python_that_does_not_fit_is_made_anew(copy, before, made_anew):
    """An editor makes one of whatever Python it finds; one that fits is kept."""
    if before:
        program(copy / ".venv/bin/python", before)
        (copy / ".venv/pyvenv.cfg").touch()
    ran = set_up(copy, program(copy / "given", FITS))
    assert ran.returncode == 0, ran.stderr
    assert ("-m venv --without-pip .venv" in (copy / "calls").read_text()) == made_anew
    assert (copy / ".venv/.installed").exists()


def test_a_python_that_does_not_fit_is_named(copy):
    """Also where somebody names it, and nothing is made."""
    ran = set_up(copy, program(copy / "given", TOO_OLD))
    assert ran.returncode != 0
    assert not (copy / ".venv").exists()


EMPTIES = """#!/bin/sh
rm -rf node_modules/*
"""


@pytest.mark.parametrize("part", ["tools/functions_alone", "engine/pages"])
def test_a_linked_folder_of_npm_packages_is_refused(copy, part):
    """(newcomer) npm empties it, and another checkout may use what the link leads to."""
    (copy / part).mkdir(parents=True)
    (copy / part / "package-lock.json").touch()
    package = program(copy / "theirs/package", "")
    modules = copy / part / "node_modules"
    modules.symlink_to(package.parent)
    program(copy / ".venv/bin/npm", EMPTIES)
    command = ["make", "--old-file=.venv/.installed", f"{part}/node_modules/.installed"]
    (copy / ".venv/.installed").touch()
    run = partial(subprocess.run, command, cwd=copy, capture_output=True, text=True, check=False)
    ran = run()
    assert (ran.returncode, package.exists()) == (2, True)
    assert f"{part}/node_modules" in ran.stderr
    modules.unlink()
    modules.mkdir()
    assert run().returncode == 0


def test_an_installation_that_fails_is_repeated(copy):
    """Nothing says that it was done."""
    python = program(copy / "given", FAILS_TO_INSTALL)
    assert set_up(copy, python).returncode != 0
    assert not (copy / ".venv/.installed").exists()
    program(copy / ".venv/bin/python", FITS)
    assert set_up(copy, python).returncode == 0
    assert (copy / ".venv/.installed").exists()


def test_what_tests_need_is_installed_when_they_run(copy):
    """On top of what a run needs, and again when its file has changed."""

    def installed():
        return re.findall(r"development.install (\S+)", (copy / "calls").read_text())

    python = program(copy / "given", FITS)
    set_up(copy, python)
    assert installed() == ["requirements-local.txt"]
    set_up(copy, python, ".installed-dev")
    assert installed() == ["requirements-local.txt", "requirements-dev.txt"]
    stamped = (copy / ".venv/.installed-dev").stat().st_mtime
    os.utime(copy / "requirements-dev.txt", (stamped + 1, stamped + 1))
    set_up(copy, python, ".installed-dev")
    assert installed()[2:] == ["requirements-dev.txt"]


OWN_UV = Path(sys.prefix) / "bin/uv"
METADATA = "Metadata-Version: 2.1\nName: setup-sample\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def index_with_a_package(folder):
    """Make an index that has one package and no uv; return its address, and the line of a requirements file."""
    pages = folder / "setup-sample"
    pages.mkdir(parents=True)
    wheel = pages / "setup_sample-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("setup_sample.py", "")
        archive.writestr("setup_sample-1.0.dist-info/METADATA", METADATA)
        archive.writestr("setup_sample-1.0.dist-info/WHEEL", WHEEL)
        archive.writestr("setup_sample-1.0.dist-info/RECORD", "")
    (pages / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return folder.as_uri(), f"setup-sample==1.0 --hash=sha256:{digest}\n"


@pytest.mark.soak
@pytest.mark.parametrize(
    ("uv", "installer"),
    [
        pytest.param(
            OWN_UV,
            "uv",
            marks=pytest.mark.skipif(not OWN_UV.exists(), reason="this environment has no uv"),
        ),
        ("fails", "pip"),
        (None, "pip"),
    ],
)
def test_pip_installs_what_uv_cannot(copy, uv, installer):
    """Both take packages from the index of pip's configuration, here the only one that has the package."""
    url, line = index_with_a_package(copy / "index")
    (copy / "requirements-local.txt").write_text(line)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", copy / ".venv"], check=True)
    if uv == "fails":
        program(copy / ".venv/bin/uv", TOO_OLD)
    elif uv:
        (copy / ".venv/bin/uv").symlink_to(uv)
    (copy / "pip.conf").write_text(f"[global]\nindex-url = {url}\n")
    ran = set_up(copy, sys.executable, PIP_CONFIG_FILE=str(copy / "pip.conf"))
    assert ran.returncode == 0, ran.stderr
    [record] = copy.glob(".venv/lib/*/site-packages/setup_sample-1.0.dist-info/INSTALLER")
    assert record.read_text().strip() == installer
    assert os.access(copy / ".venv/bin/operators", os.X_OK)


WITHOUT_PIP = """
import runpy, sys
sys.base_prefix = "nowhere"
sys.argv[1:] = ["requirements-local.txt"]
runpy.run_module("development.install", run_name="__main__")
"""


@pytest.mark.soak
def test_a_python_that_has_pip_for_environments_alone_will_do(copy):
    """As on Debian, where another package has pip itself."""
    url, line = index_with_a_package(copy / "index")
    (copy / "requirements-local.txt").write_text(line)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", copy / ".venv"], check=True)
    command = [copy / ".venv/bin/python", "-c", WITHOUT_PIP]
    subprocess.run(command, cwd=copy, env=os.environ | {"PIP_INDEX_URL": url}, check=True)
    assert list(copy.glob(".venv/lib/*/site-packages/setup_sample.py"))


@pytest.mark.soak
@pytest.mark.parametrize("digest", ["", " --hash=sha256:" + "0" * 64])
def test_a_package_without_its_digest_is_not_installed(copy, digest):
    """Neither without one, nor with that of another file."""
    url, line = index_with_a_package(copy / "index")
    (copy / "requirements-local.txt").write_text(line.split(" ")[0] + digest)
    assert set_up(copy, sys.executable, PIP_INDEX_URL=url).returncode != 0
    assert not list(copy.glob(".venv/lib/*/site-packages/setup_sample.py"))
    assert not (copy / ".venv/.installed").exists()


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        (
            "global.index-url='https://one.example/simple'",
            "UV_DEFAULT_INDEX",
            "https://one.example/simple",
        ),
        (
            "install.extra-index-url='\\nhttps://a.example\\nhttps://b.example'",
            "UV_INDEX",
            "https://a.example https://b.example",
        ),
        (":env:.find-links='/a /b'", "UV_FIND_LINKS", "/a,/b"),
        ("global.trusted-host='one.example'", "UV_INSECURE_HOST", "one.example"),
        (
            "global.index-url='https://a'\n:env:.index-url='https://b'",
            "UV_DEFAULT_INDEX",
            "https://b",
        ),
    ],
)
def test_uv_gets_the_settings_of_pip(line, name, value):
    """In uv's own form; what stands nearer wins, as with pip."""
    assert uv_settings(line)[name] == value
