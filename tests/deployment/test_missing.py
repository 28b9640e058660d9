"""What README and `make help` promise where something is missing on the machine."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from development.servicebus_config import ROOT
from tests.support.browsers import NPM, missing
from tests.support.prerequisites import browser_program, faketime_library
from tests.support.progress import Progress

only_where_npms_fits = pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"),
    reason="npm's browser is for Linux on x64",
)
PRINTS = '#!/bin/sh\necho "$(basename "$0") $*"\n'
FAILS = "#!/bin/sh\nexit 1\n"


def programs(folder, **texts):
    """A folder with these programs, and no other."""
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("environment", "outcome"),
    [
        ({}, pytest.skip.Exception),
        ({"TEST_BROWSER": NPM}, pytest.skip.Exception),
        ({"CI": "true"}, pytest.fail.Exception),
        ({"CI": "true", "TEST_BROWSER": NPM}, pytest.fail.Exception),
    ],
)
def test_without_a_browser_the_tests_of_the_pages_are_skipped_but_fail_in_ci(
    tmp_path, environment, outcome
):
    """Also where the machine has one, and npm's is wanted."""
    names = {"chromium": PRINTS} if "TEST_BROWSER" in environment else {}
    path = programs(tmp_path / "bin", **names)
    with pytest.raises(outcome):
        browser_program({"PATH": path, **environment}, tmp_path)


def test_the_browser_of_the_machine_comes_before_that_of_npm(tmp_path):
    """Unless npm's is wanted; another wish is a mistake."""
    path = programs(tmp_path / "bin", chromium=PRINTS)
    npms = programs(tmp_path / "unpacked", chromium=PRINTS)
    chosen = {
        value: browser_program({"PATH": path, "TEST_BROWSER": value}, Path(npms))
        for value in ("", NPM)
    }
    assert chosen == {"": f"{path}/chromium", NPM: f"{npms}/chromium"}
    assert browser_program({"PATH": str(tmp_path)}, Path(npms)) == chosen[NPM]
    with pytest.raises(ValueError, match="TEST_BROWSER"):
        browser_program({"PATH": path, "TEST_BROWSER": "netscape"})


@pytest.mark.parametrize("chosen", ["", NPM])
def test_the_last_line_names_what_was_not_tested(monkeypatch, chosen):
    """With what helps."""
    monkeypatch.setenv("TEST_BROWSER", chosen)
    lines = []
    progress = Progress(lines.append)
    skipped = SimpleNamespace(
        nodeid="tests/browser/test_x.py::test", when="setup", outcome="skipped", duration=0
    )
    progress.pytest_runtest_logreport(skipped)
    progress.pytest_unconfigure()
    assert missing(os.environ) in lines[-1]


def got_by_make(folder, machine, environment):
    """What `make test` does for the tests of the pages, in a copy of their folders."""
    return run_with(copied(folder), programs(folder / "bin", **machine), **environment)


def run_with(program, path, **environment):
    environment["PATH"] = f"{path}:/bin:/usr/bin"
    command = [sys.executable, program]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def calls_of(ran):
    """The programs that were called, in order."""
    lines = [line.split() for line in ran.stdout.splitlines()]
    return [words[0] for words in lines if words and words[0] in NPMS]


def copied(folder):
    for part in ("support", "browser/chromium/node_modules"):
        (folder / "tests" / part).mkdir(parents=True)
    (folder / "tests/browser/chromium/package-lock.json").touch()
    return shutil.copy(ROOT / "tests/support/browsers.py", folder / "tests/support")


NPMS = {"npm": PRINTS, "node": PRINTS}


@only_where_npms_fits
@pytest.mark.parametrize(
    ("machine", "environment", "calls"),
    [
        (NPMS | {"chromium": PRINTS}, {}, []),
        (NPMS | {"chromium": PRINTS}, {"TEST_BROWSER": NPM}, ["npm", "node"]),
        ({"npm": FAILS, "node": PRINTS}, {"TEST_BROWSER": NPM}, []),
    ],
)
def test_make_gets_npms_browser_where_it_is_needed(tmp_path, machine, environment, calls):
    """Where it cannot be had, the other tests run."""
    got = got_by_make(tmp_path, machine, environment)
    assert got.returncode == 0, got.stderr
    assert calls_of(got) == calls
    stamp = tmp_path / "tests/browser/chromium/node_modules/.installed"
    assert stamp.exists() == bool(calls)


@only_where_npms_fits
@pytest.mark.parametrize(("age_seconds", "calls"), [(1, []), (-1, ["npm", "node"])])
def test_npms_browser_is_got_again_for_another_version(tmp_path, age_seconds, calls):
    """One that is older than the lock file is replaced."""
    program = copied(tmp_path)
    chromium = tmp_path / "tests/browser/chromium"
    stamp = chromium / "node_modules/.installed"
    stamp.touch()
    at = (chromium / "package-lock.json").stat().st_mtime + age_seconds
    os.utime(stamp, (at, at))
    ran = run_with(program, programs(tmp_path / "bin", **NPMS), TEST_BROWSER=NPM)
    assert calls_of(ran) == calls


def test_without_npm_make_uses_the_one_of_its_environment(tmp_path):
    """Nothing is on the path but what `make` itself calls."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    platform = tmp_path / "tools/functions_alone"
    platform.mkdir(parents=True)
    (platform / "package.json").write_text('{"name": "nothing", "version": "1.0.0"}')
    (platform / "package-lock.json").write_text(
        '{"name": "nothing", "version": "1.0.0", "lockfileVersion": 3, "packages": {}}'
    )
    (platform / "node_modules").mkdir()
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name in ("sh", "echo", "touch", "mkdir", "rm", "python3"):
        (bin_folder / name).symlink_to(shutil.which(name))
    command = [
        shutil.which("make"),
        "tools/functions_alone/node_modules/.installed",
        f"VENV={sys.prefix}",
    ]
    ran = subprocess.run(
        [*command, f"--old-file={sys.prefix}/.installed"],
        cwd=tmp_path,
        env={"PATH": str(bin_folder), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert (platform / "node_modules/.installed").exists()


def test_without_faketime_the_test_of_a_jumping_clock_is_skipped(tmp_path):
    """The reason names the package; with it, its library is found on any processor."""
    with pytest.raises(pytest.skip.Exception, match="faketime"):
        faketime_library(tmp_path)
    library = tmp_path / "aarch64-linux-gnu/faketime/libfaketimeMT.so.1"
    library.parent.mkdir(parents=True)
    library.touch()
    assert faketime_library(tmp_path) == library
