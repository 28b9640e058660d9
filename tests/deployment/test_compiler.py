"""Microsoft's compiler checks the template: `make bicep`."""

import os
import shutil
import subprocess
import sys

import pytest

from development import bicep
from development.faults import DevelopmentCode
from development.servicebus_config import ROOT
from development.stack import MODULES
from functions_alone.ports import StackError

STAND_IN = """#!{python}
import sys
if "--version" in sys.argv:
    print("Bicep CLI version {version} (abc)")
sys.stderr.write({stderr!r} if sys.argv[1] in {says} else "")
sys.exit({code})
"""


def compiler(path, version=bicep.PINNED, stderr="", says=("build", "lint"), code=0):
    """Make a program that answers as the compiler does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = STAND_IN.format(
        python=sys.executable, version=version, stderr=stderr, says=says, code=code
    )
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def run(**environment):
    """Run the command where nothing else can be found."""
    return subprocess.run(
        [sys.executable, "-m", "development.bicep"],
        cwd=ROOT,
        env={"PATH": "", "HOME": "/nowhere", "PYTHONPATH": MODULES} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_compiler_is_found_where_its_owners_keep_it(tmp_path):
    """First the one that is named, then the path's, then azd's, then az's."""
    places = [
        ("named", {"BICEP": str(tmp_path / "named")}),
        ("path/bicep", {"PATH": str(tmp_path / "path")}),
        (".azd/bin/bicep", {"HOME": str(tmp_path)}),
        (".azure/bin/bicep", {"HOME": str(tmp_path)}),
    ]
    environment = {"HOME": str(tmp_path), "PATH": ""}
    assert bicep.find(environment) is None
    for place, found_by in reversed(places):
        wanted = compiler(tmp_path / place)
        environment |= found_by
        assert bicep.find(environment) == wanted


def test_a_name_that_is_no_program_is_not_ignored(tmp_path):
    """Another compiler would be taken without a word."""
    with pytest.raises(StackError) as caught:
        bicep.find({"BICEP": str(tmp_path / "none"), "PATH": os.environ["PATH"]})
    assert caught.value.faults[0].code == DevelopmentCode.BICEP_INVALID


@pytest.mark.parametrize(
    ("made", "status", "code"),
    [
        ({}, 0, None),
        ({"version": "0.1.0"}, 0, None),
        (
            {"stderr": "a(1,1) : Warning x: y", "says": ("build",)},
            1,
            DevelopmentCode.TEMPLATE_REFUSED,
        ),
        (
            {"stderr": "a(1,1) : Warning x: y", "says": ("lint",)},
            1,
            DevelopmentCode.TEMPLATE_REFUSED,
        ),
        ({"code": 3}, 1, DevelopmentCode.TEMPLATE_REFUSED),
        (None, 1, DevelopmentCode.BICEP_MISSING),
    ],
    ids=["silent", "another version", "build warns", "lint warns", "fails silently", "none"],
)
def test_any_diagnostic_fails(tmp_path, made, status, code):
    """A fault in a property is no more than a warning of the compiler's; another version is a warning of ours."""
    named = {} if made is None else {"BICEP": compiler(tmp_path / "bicep", **made)}
    ran = run(**named)
    assert ran.returncode == status
    assert (f"[{code}]" in ran.stderr) is bool(code)
    assert ("0.1.0" in ran.stderr) is bool(made and "version" in made)


@pytest.fixture(scope="module")
def real():
    """The compiler of this machine; CI has one."""
    if not (found := bicep.find()):
        pytest.skip("no bicep: make bicep says how to get one")
    return found


@pytest.mark.soak
def test_the_template_compiles(real):
    """Without any diagnostic, of the compiler or of its linter (deployment.md 1 and 5)."""
    assert bicep.diagnostics(real) == ""


SEEDED = [
    ("modules/identity.bicep", "location: location", "locaton: location", "BCP035"),
    ("main.bicep", "retentionDays: data.retentionDays", "retentionDays: environmentName", "BCP036"),
    ("main.bicep", "    frontDoorId: frontDoorId\n", "", "BCP035"),
]
"""A wrong property, a wrong type and a missing parameter: a file, what stands there, what replaces it, the diagnostic."""


@pytest.mark.soak
def test_every_seeded_fault_is_found(real, tmp_path):
    """They are warnings to the compiler, or would be errors of Azure alone."""
    infra = shutil.copytree(ROOT / "infra", tmp_path / "infra")
    for file, before, after, _ in SEEDED:
        text = (infra / file).read_text()
        assert before in text
        (infra / file).write_text(text.replace(before, after))
    diagnostics = bicep.diagnostics(real, infra / "main.bicep").splitlines()
    for file, _, _, diagnostic in SEEDED:
        assert any(f"infra/{file}" in line and diagnostic in line for line in diagnostics), file
    assert any("frontDoorId" in line for line in diagnostics)
