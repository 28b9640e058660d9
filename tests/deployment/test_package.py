"""The package as it is deployed: what .funcignore leaves in it, and that it loads with its requirements alone."""

import json
import os
import re
import subprocess
from pathlib import Path, PurePosixPath

import pathspec
import pytest
import yaml

from development.business import DEPLOYED, packages
from development.servicebus_config import ROOT
from development.settings import app_settings
from functions_alone.ports import Ports
from tests.support.azd_ignore import AzdIgnore
from tests.support.deployed_package import AZURE_PYTHON, clean_python, ignored
from tests.support.deploying import AGENTS

NEVER = [
    ".env", ".venv/bin/python", ".git/config", ".azure/test/.env", ".github/workflows/checks.yml", ".data/broker/state",
    "local.settings.json", "tests/unit/test_x.py", "tools/functions_alone/stack.py", "tools/development/stack.py", "tools/functions_alone/node_modules/x.js",
    "tools/bench/driver.py", "docs/operations/deploy.md", "README.md", "engine/azure/__pycache__/x.pyc", "infra/main.bicep",
    "engine/pages/node_modules/x.js", "engine/pages/package.json", "engine/pages/package-lock.json", "engine/pages/tsconfig.json",
    "engine/pages/tests/x.test.js", "operations/console/tests/x.test.js",
    "shop/tests/x.test.js", "samples/claims/business.py", "samples/follow_an_order.py", "samples/subscriber/README.md",
]  # fmt: skip
PACKED = ".python_packages/lib/site-packages"
PACKAGE_FILES = [
    "x/__init__.py",
    "x/README.md",
    "x/tests/data.json",
    "x/host.json",
    "x/package.json",
    "x/.hidden",
    "x/LICENSE",
]
JUNK = [f"{PACKED}/x/__pycache__/y.cpython-313.pyc", f"{PACKED}/x/z.pyc"]
LOAD = """
import inspect, json, sys, types
from function_app import app
print(json.dumps({
    "modules": sorted({name.partition(".")[0] for name in sys.modules}),
    "generic": [
        f"{function.get_function_name()}: {parameter}"
        for function in app.get_functions()
        for parameter in inspect.signature(function.get_user_function()).parameters.values()
        if isinstance(parameter.annotation, types.GenericAlias)
    ],
}))
"""


@pytest.fixture(scope="module")
def loaded(package):
    """What comes of the package when it is loaded: the modules that are imported, and how functions are annotated."""
    environment = (
        os.environ | app_settings(Ports(), "key", "key", AGENTS) | {"PYTHONDONTWRITEBYTECODE": "1"}
    )
    command = [clean_python(), "-c", LOAD]
    ran = subprocess.run(
        command, cwd=package, env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(ran.stdout)


def test_named_zones_are_deployed():
    """Bugs 19: a slim image has no database of them, and each order with a start time failed."""
    command = [clean_python(), "-c", "from zoneinfo import ZoneInfo; ZoneInfo('Europe/Berlin')"]
    subprocess.run(command, env=os.environ | {"PYTHONTZPATH": ""}, check=True)


def test_what_must_never_be_deployed():
    """Settings, secrets, histories, tests and tools stay here, wherever they lie."""
    spec = ignored()
    assert [path for path in NEVER if not spec.drops(PurePosixPath(path))] == []


def own_files():
    """Yield the project's files, but not what tools have made beside them."""
    for parent, folders, names in os.walk(ROOT):
        folders[:] = [
            name
            for name in folders
            if name not in ("node_modules", "__pycache__")
            and (not name.startswith(".") or name == ".github")
        ]
        yield from (str(Path(parent, name).relative_to(ROOT)) for name in names)


@pytest.fixture
def project(tmp_path):
    """A copy of the project's names, with the files of an installed package that azd's rule could drop."""
    folder = tmp_path / "project"
    for name in [
        *own_files(),
        *(f"{PACKED}/{name}" for name in PACKAGE_FILES),
        *JUNK,
    ]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def test_azd_sends_the_installed_packages(project):
    """Every file of a package, whatever its name, but what Python compiles (deployment.md 2)."""
    sent = set(map(str, ignored().sent(project)))
    assert sent >= {f"{PACKED}/{name}" for name in PACKAGE_FILES}
    assert sent.isdisjoint(JUNK)


def test_azd_and_git_agree_on_what_is_sent(project):
    """The two read `.funcignore` by different rules; a person who reads it as git does is not misled."""
    git = pathspec.GitIgnoreSpec.from_lines((ROOT / ".funcignore").read_text().splitlines())
    left = {*git.match_tree_files(project), ".funcignore"}
    everything = {str(path.relative_to(project)) for path in project.rglob("*") if path.is_file()}
    assert set(map(str, ignored().sent(project))) == everything - left


@pytest.mark.parametrize(
    ("lines", "path", "is_dropped"),
    [
        (["/.*"], ".github/workflows/checks.yml", True),
        (["/.*"], "core/.hidden", False),
        (["/.*", "!/.python_packages/"], ".python_packages/lib", True),
        (["/.*", "!/.python_packages/**"], ".python_packages/lib/x.py", False),
        (["/*.md"], "core/notes.md", True),
        (["*.pyc"], "core/x.pyc", True),
        (["/*/tests/"], "shop/tests/x.js", True),
        (["/*/tests/"], "engine/pages/tests/x.js", False),
        (["/*/*/tests/"], "engine/pages/tests/x.js", True),
        (["/engine/**/x.js"], "engine/x.js", True),
        (["/engine/**/x.js"], "engine/a/b/x.js", True),
        (["tests/"], "core/tests", False),
        (["# core", "", "core"], "core/x.py", True),
        (["core", "!core/x.py"], "core/x.py", True),
        ([], ".azure/config.json", True),
    ],
)
def test_azd_reads_funcignore_by_its_own_rule(lines, path, is_dropped):
    """As read from the libraries that azd pins: a slash decides with what a pattern is compared."""
    assert AzdIgnore(lines).drops(PurePosixPath(path)) is is_dropped


def test_the_package_holds_the_app_and_nothing_else(package, loaded):
    """At its top lie the files that Azure wants, packages that the app imports, and folders without any code.

    A business that is not deployed may lie beside the one that is.
    """
    found = {path.name for path in package.iterdir() if path.name != "__pycache__"}
    code = {path.name for path in package.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    assert {name for name in found if (package / name).is_file()} == {
        "function_app.py",
        "host.json",
        "requirements.txt",
    }
    others = set(packages(package)) - {DEPLOYED.partition(".")[0]}
    assert code - others <= set(loaded["modules"])


def test_the_page_of_the_business_is_deployed_and_its_tests_are_not(package):
    """It lies with the code of the business."""
    assert (package / "shop/page/index.html").is_file()
    assert (package / "operations/console/static/index.html").is_file()
    assert (package / "engine/pages/static/common/dom.js").is_file()
    assert list(package.rglob("tests")) == []


def test_of_the_samples_only_the_simulator_is_deployed(package):
    """A demonstration needs it, and no app needs another sample."""
    assert sorted(path.name for path in (package / "samples").glob("[!_]*")) == ["simulator"]
    files = {path.name for path in (package / "samples").rglob("*.py")}
    assert files == {path.name for path in (ROOT / "samples/simulator").glob("*.py")}


def test_annotations_are_of_the_kind_that_azure_takes(loaded):
    """Azure's library refuses to load a function with list[...]; said here too, where it cannot be asked."""
    assert loaded["generic"] == []


def test_one_python_everywhere():
    """The version in Azure is supported, runs every test in the workflow, and is what the documents name.

    Each other version that is supported runs those for which the version matters.
    """
    [lowest, highest] = re.search(  # type: ignore[union-attr]
        r'requires-python = ">=3\.(\d+),<3\.(\d+)"', (ROOT / "pyproject.toml").read_text()
    ).groups()
    supported = {f"3.{minor}" for minor in range(int(lowest), int(highest))}
    jobs = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text())["jobs"]
    [whole] = [
        step["with"]["python-version"]
        for step in jobs["test"]["steps"]
        if "python-version" in str(step)
    ]
    assert whole == AZURE_PYTHON
    assert {whole, *jobs["versions"]["strategy"]["matrix"]["python"]} == supported
    assert f"Python {AZURE_PYTHON}" in (ROOT / "docs/operations/resources.md").read_text()


@pytest.mark.parametrize(
    "name", ["requirements.txt", "requirements-local.txt", "requirements-dev.txt"]
)
def test_no_package_can_be_exchanged_for_another(name):
    """Each has one version and the digests of its files, so Azure's build and everybody else install the same."""
    packages = re.sub(r"\\\n\s*", "", (ROOT / name).read_text()).splitlines()
    assert len(packages) > 30
    assert [
        line
        for line in packages
        if not re.match(r"[\w.-]+==[\w.]+ .*--hash=sha256:[0-9a-f]{64}", line)
    ] == []
