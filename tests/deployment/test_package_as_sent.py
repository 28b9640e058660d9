"""What the hook before packing installs is what is sent: the locked packages, for Azure's Python and Linux."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from development.servicebus_config import ROOT
from development.settings import app_settings
from engine.runtime import packed
from functions_alone.ports import Ports
from tests.support.deployed_package import AZURE_PYTHON, PYTHON, ignored
from tests.support.deploying import AGENTS
from tests.support.hooks import Project, oldest_python

INSTALLED = Path(".python_packages/lib/site-packages")
LOCKED = re.compile(r"^([\w.-]+)==(\S+)(?: ; (.*?))? \\$", re.MULTILINE)
LOAD = """
import sys
sys.path[:0] = sys.argv[1:]
from function_app import app
assert len(app.get_functions()) > 20
outside = [name for name, module in sys.modules.items() if "site-packages" in str(getattr(module, "__file__", ""))
    and not module.__file__.startswith(sys.argv[2])]
assert outside == [], outside
"""

pytestmark = pytest.mark.soak


def python_with_pip():
    """Return the oldest Python that azd would take if it has pip, else this one."""
    command = [oldest_python(), "-m", "pip", "--version"]
    ran = subprocess.run(command, capture_output=True, check=False)
    return sys.executable if ran.returncode else oldest_python()


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """What the hook installs for a version of Python, each once."""
    made = {}

    def install(version):
        if version not in made:
            made[version] = run_hook(tmp_path_factory.mktemp("sent"), version)
        return made[version]

    return install


def run_hook(folder, version):
    """Run the hook in a folder that has what it needs, and return what it installed."""
    project = Project(folder)
    project.options(pythonVersion=version)
    (project.root / INSTALLED).mkdir(parents=True)
    (project.root / INSTALLED / "left.py").write_text("of an earlier run")
    subprocess.run(
        [python_with_pip(), project.hooks / "prepackage.py"],
        cwd=project.hooks,
        env=os.environ,
        capture_output=True,
        check=True,
    )
    return project.root / INSTALLED


def test_what_is_sent_is_for_azures_python_and_linux(installed):
    """Whichever Python and machine run the hook; nothing is left of an earlier run."""
    compiled = [path.name for path in installed(AZURE_PYTHON).rglob("*.so")]
    minor = AZURE_PYTHON.replace(".", "")
    assert len(compiled) > 10
    wanted = re.compile(rf"\.(cpython-{minor}-x86_64-linux-gnu|abi3)\.so$")
    assert [name for name in compiled if not wanted.search(name)] == []
    assert not (installed(AZURE_PYTHON) / "left.py").exists()


def test_what_is_sent_is_what_is_locked(installed):
    """Each package in the version for that Python, which for azure-functions is another one than for an older Python."""
    sent = dict(
        re.fullmatch(r"(.+?)-([\d.a-z]+)\.dist-info", path.name).groups()  # type: ignore[union-attr]
        for path in installed(AZURE_PYTHON).glob("*.dist-info")
    )
    locked = {}
    for name, version, marker in LOCKED.findall((ROOT / "requirements.txt").read_text()):
        locked.setdefault(name.replace("-", "_").lower(), []).append((version, marker))
    assert len(sent) > 20
    for name, version in sent.items():
        assert version in {other for other, _ in locked[name.lower()]}, name
    [functions] = [
        version for version, marker in locked["azure_functions"] if marker.endswith(">= '3.13'")
    ]
    assert sent["azure_functions"] == functions


def test_nothing_of_it_stays_here(installed):
    """`.funcignore` drops no file of a package but what Python compiles anew."""
    folder, spec = installed(AZURE_PYTHON), ignored()
    files = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    dropped = [str(path) for path in files if spec.drops(PurePosixPath(INSTALLED / path))]
    assert [path for path in dropped if "__pycache__" not in path] == []
    assert any("tests" in path.parts for path in files)


def test_the_app_loads_with_what_is_sent_alone(package, installed):
    """On this Python, for which the hook can pack too."""
    place = installed(PYTHON)
    environment = os.environ | app_settings(Ports(), "key", "key", AGENTS)
    subprocess.run(
        [sys.executable, "-I", "-S", "-c", LOAD, package, place],
        cwd=package,
        env=environment | {"PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
    )


def test_a_package_for_another_python_says_so_at_once(package, installed, tmp_path):
    """Both versions stand in one line, before the first import of a package."""
    app = shutil.copytree(package, tmp_path / "app")
    other = "3.12" if PYTHON != "3.12" else "3.13"
    note = installed(other).parent.parent / "packed-for.txt"
    (app / ".python_packages").mkdir()
    shutil.copy(note, app / ".python_packages")
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LOAD, app, app],
        capture_output=True,
        text=True,
        check=False,
    )
    last = ran.stderr.splitlines()[-1]
    assert f"for Python {other} linux x86_64, and this is Python {PYTHON} " in last


@pytest.mark.skipif(sys.platform != "linux", reason="what is packed is for Linux")
def test_a_package_for_this_python_is_taken(installed):
    """And so is an app beside which nothing was packed."""
    packed.check(installed(PYTHON).parent.parent / "packed-for.txt")
    packed.check(Path("nothing-there"))


def test_the_tool_that_packs_is_locked_too():
    """One version, with the digests of its files."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "infra/hooks/uv.txt").read_text())
    assert re.fullmatch(r"uv==[\d.]+( --hash=sha256:[0-9a-f]{64})+\n", text)
