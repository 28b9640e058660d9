"""The hooks that make the package and look at it before it is sent, with stand-ins for pip and uv."""

import hashlib
import subprocess
import sys
from pathlib import PurePosixPath

import pytest

from development.servicebus_config import ROOT
from engine.runtime import packed
from tests.support.deployed_package import AZURE_PYTHON, PYTHON, ignored
from tests.support.hooks import STAND_IN, Project, oldest_python

FOLDER = ".python_packages"
INSTALLED = f"{FOLDER}/lib/site-packages"
STAMP = f"{FOLDER}/packed-for.txt"
OTHER = "3.11" if AZURE_PYTHON != "3.11" else "3.12"
IN_USE = """
import shutil
remove = shutil.rmtree
def rmtree(path, **options):
    if path.endswith(".python_packages"):
        raise OSError("in use")
    remove(path, **options)
shutil.rmtree = rmtree
"""
KILLS = "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n"


@pytest.fixture
def project(tmp_path):
    """A project whose Python has a stand-in for pip, which installs one for uv."""
    project = Project(tmp_path)
    project.program("uv")
    (tmp_path / "modules/pip").mkdir(parents=True)
    as_pip = f"import sys\nsys.argv[0] = {str(project.bin / 'pip')!r}\n"
    (tmp_path / "modules/pip/__init__.py").touch()
    (tmp_path / "modules/pip/__main__.py").write_text(as_pip + STAND_IN)
    project.modules = str(tmp_path / "modules")
    return project


def pack(project, before="", python=None, **given):
    """Run the hook, for another Python if one is named, after which no temporary file may be left (hooks.md 11)."""
    if python:
        project.options(pythonVersion=python)
    temporary = project.bin.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    given |= {"TMPDIR": str(temporary), "PYTHONPATH": project.modules}
    present = set(temporary.iterdir())
    ran = project.run("prepackage.py", before, **given)
    assert ran.code < 0 or set(temporary.iterdir()) == present
    return ran


def look(project, **given):
    return project.run("predeploy.py", **given)


def files(project):
    """What is in the package, but for what the stand-in for uv needs; None if there is none."""
    found = {str(path.relative_to(project.root)) for path in project.root.glob(f"{FOLDER}*/**/*.*")}
    return found - {f"{INSTALLED}/bin/uv"}


def pack_older(project):
    """Leave a complete package of a file that this version no longer has."""
    pack(project)
    (project.root / INSTALLED / "older.py").write_text("")


def hook_python():
    """How the Python of the hook names itself."""
    code = "import sys; print(sys.executable)"
    return subprocess.check_output([oldest_python(), "-c", code], text=True).strip()


def after(command, option):
    return command[command.index(option) + 1]


@pytest.mark.parametrize(("given", "version"), [(None, AZURE_PYTHON), (OTHER, OTHER)])
def test_the_locked_packages_are_installed_for_azures_python(project, given, version):
    """With the digests of requirements.txt, by the locked uv; nothing is left of the package before it.

    The Python is that of the hook, whatever is on the path (hooks.md 4, 14).
    """
    pack_older(project)
    ran = pack(project, python=given)
    assert (ran.code, ran.faults) == (0, set())
    assert files(project) == {f"{INSTALLED}/module.py", STAMP}
    pip, uv = project.calls[-2:]
    assert pip[:2] == ["pip", "install"]
    assert uv[:3] == ["uv", "pip", "install"]
    assert {"--require-hashes", "--no-deps", "--ignore-requires-python"} < set(pip)
    assert {"--require-hashes", "--only-binary"} < set(uv)
    assert after(pip, "-r") == str(project.hooks / "uv.txt")
    assert after(uv, "-r") == str(project.root / "requirements.txt")
    # Without it, uv looks for a Python on the path, where azd's may not be.
    assert after(uv, "--python") == hook_python()
    assert (after(uv, "--python-version"), after(uv, "--python-platform")) == (
        version,
        "x86_64-manylinux_2_28",
    )


@pytest.mark.parametrize("program", ["pip", "uv"])
def test_a_package_is_whole_or_what_it_was(project, program):
    """An installation that fails half-way leaves what was there before it, which still fits."""
    pack_older(project)
    before = files(project)
    project.replies([[program, [2, "", "no network\n"]]])
    ran = pack(project)
    assert (ran.code, ran.faults) == (1, {("install-failed", program)})
    assert "no network" in ran.err
    assert files(project) == before
    assert look(project).code == 0


def test_a_first_package_that_fails_is_not_there(project):
    """So nothing half is sent."""
    project.replies([["uv", [1, "", ""]]])
    pack(project)
    assert not list(project.root.glob(f"{FOLDER}*"))
    assert look(project).faults == {("package-missing", FOLDER)}


def test_a_hook_that_is_killed_leaves_what_was_there(project):
    """azd ends it if another hook fails at the same time. The next run starts from nothing."""
    pack_older(project)
    (project.bin / "uv").write_text(f"#!{sys.executable}\n{KILLS}")
    assert pack(project).code < 0
    assert (project.root / INSTALLED / "older.py").exists()
    (project.root / ".python_packages.partial/lib").mkdir(parents=True, exist_ok=True)
    (project.root / ".python_packages.partial/lib/half.py").write_text("")
    project.program("uv")
    assert pack(project).code == 0
    assert files(project) == {f"{INSTALLED}/module.py", STAMP}


def test_a_folder_that_cannot_be_replaced_is_a_fault(project):
    """As where a program of Windows has a file open."""
    (project.root / FOLDER).write_text("no folder")
    ran = pack(project)
    assert (ran.code, ran.faults) == (1, {("folder-unusable", FOLDER)})


def test_a_package_that_is_half_removed_is_not_sent(project):
    """It says no longer what it was made from."""
    pack_older(project)
    ran = pack(project, IN_USE)
    assert (ran.code, ran.faults) == (1, {("folder-unusable", FOLDER)})
    assert look(project).faults == {("package-missing", FOLDER)}


def test_a_pip_that_installs_no_uv_is_a_fault(project):
    """As of a version that puts programs elsewhere."""
    (project.bin / "uv").unlink()
    ran = pack(project)
    assert (ran.code, ran.faults) == (1, {("program-missing", "uv")})


def test_a_uv_that_does_not_start_is_a_fault(project):
    """As one for another machine."""
    (project.bin / "uv").write_text("#!/nowhere/python\n")
    ran = pack(project)
    assert (ran.code, ran.faults) == (1, {("program-failed", "uv")})


@pytest.mark.parametrize("version", ["*", "3", "3.13.1", "3.13 ", "python3.13"])
def test_what_is_no_version_is_rejected(project, version):
    """Before anything is installed."""
    ran = pack(project, python=version)
    assert (ran.code, ran.faults) == (1, {("python-version-invalid", "infra/options/app.json")})
    assert project.calls == []


def test_a_package_that_fits_is_sent(project):
    """Of this requirements.txt and for the Python that is provisioned; the ends of lines do not matter."""
    pack(project)
    path = project.root / "requirements.txt"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert (look(project).code, look(project, DEPLOYED_PYTHON_VERSION=AZURE_PYTHON).code) == (0, 0)


def test_a_package_of_another_lock_file_is_not_sent(project):
    """As after the checkout of another version; both digests are shown."""
    pack(project)
    path = project.root / "requirements.txt"
    packed_from = hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_text(path.read_text() + "# another\n")
    ran = look(project)
    assert (ran.code, ran.faults) == (1, {("package-outdated", FOLDER)})
    for digest in (packed_from, hashlib.sha256(path.read_bytes()).hexdigest()):
        assert digest[:12] in ran.err


@pytest.mark.parametrize(
    ("given", "chosen"),
    [({"DEPLOYED_PYTHON_VERSION": OTHER}, AZURE_PYTHON), ({}, OTHER)],
)
def test_a_package_for_another_python_is_not_sent(project, given, chosen):
    """What is provisioned counts, then what is going to be; both versions are named."""
    pack(project)
    project.options(pythonVersion=chosen)
    ran = look(project, **given)
    assert (ran.code, ran.faults) == (1, {("package-python-differs", FOLDER)})
    assert AZURE_PYTHON in ran.err
    assert OTHER in ran.err


def test_all_faults_of_a_package_are_named_together(project):
    """Both are mended by one command."""
    pack(project, python=OTHER)
    project.options(pythonVersion=AZURE_PYTHON)
    (project.root / "requirements.txt").write_text("")
    codes = {code for code, _ in look(project).faults}
    assert codes == {"package-outdated", "package-python-differs"}


@pytest.mark.parametrize("text", [None, "", f"{AZURE_PYTHON} linux x86_64\n", "\xff"])
def test_a_package_that_does_not_say_what_it_is_from_is_not_sent(project, text):
    """As one that an older version of this hook has made."""
    pack(project)
    path = project.root / STAMP
    path.unlink() if text is None else path.write_bytes(text.encode("latin-1"))
    ran = look(project)
    assert ran.code == 1
    assert ran.faults


@pytest.mark.skipif(sys.platform != "linux", reason="what is packed is for Linux")
def test_the_app_reads_what_the_hook_writes(project):
    """It takes a package for its own Python and rejects any other before the first import."""
    pack(project, python=PYTHON)
    packed.check(project.root / STAMP)
    pack(project, python="3.99")
    with pytest.raises(RuntimeError, match=r"3\.99"):
        packed.check(project.root / STAMP)


def test_what_is_half_made_is_neither_committed_nor_sent():
    """Git ignores both folders, azd the one that is not whole."""
    assert f"{FOLDER}*/" in (ROOT / ".gitignore").read_text().splitlines()
    assert ignored().drops(PurePosixPath(f"{FOLDER}.partial"), is_folder=True)
    assert not ignored().drops(PurePosixPath(FOLDER), is_folder=True)
