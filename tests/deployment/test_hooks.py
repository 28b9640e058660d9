"""What holds for all hooks of a deployment: how azd starts them, on which Python, and how they report faults."""

import ast
import json
import re
import runpy
import socket
import string
import subprocess
import sys

import pytest
import yaml

from development.servicebus_config import ROOT
from engine.urls import is_private
from tests.support.hooks import HOOKS, SIGNED_IN, Project, oldest_python
from tests.support.service_urls import NOT_PRIVATE, PRIVATE

OF_HOOKS = runpy.run_path(str(HOOKS / "faults.py"))
LONGEST, TEMPLATES, HookFault, text_of = map(
    OF_HOOKS.__getitem__, ("LONGEST", "TEMPLATES", "HookFault", "text_of")
)
MODULES = sorted(HOOKS.glob("*.py"))
SHARED = [ROOT / "engine/__init__.py", ROOT / "engine/urls.py"]
"""What the hooks import of the app."""
OF_AZD = ["preprovision", "postprovision", "prepackage", "predeploy", "postdeploy"]
AZURE = yaml.safe_load((ROOT / "azure.yaml").read_text())
SYNTAX = (3, 7)
"""That of the oldest Python that azd takes."""


def test_azd_runs_every_hook_where_every_command_needs_it():
    """Those of the package belong to the service: azd up, azd package and azd deploy run them (deployment.md 3).

    A hook of the project runs with the command of its name and with azd up.
    """
    project, service = AZURE["hooks"], AZURE["services"]["app"]["hooks"]
    assert sorted([*project, *service]) == sorted(OF_AZD)
    assert set(service) == {"prepackage", "predeploy"}
    for name, hook in (project | service).items():
        assert hook["run"] == f"infra/hooks/{name}.py"
        assert (ROOT / hook["run"]).is_file()
    assert {name for name, hook in project.items() if hook.get("interactive")} == {"preprovision"}
    continued = {name for name, hook in project.items() if hook.get("continueOnError")}
    assert continued == {"postprovision"}
    assert not any(hook.keys() - {"run"} for hook in service.values())


def test_there_is_one_form_of_every_hook():
    """Nothing for another system that would have to be kept alike (hooks.md 4, 14)."""
    kinds = {path.suffix for path in HOOKS.iterdir() if path.is_file()}
    assert kinds == {".py", ".json", ".txt"}


def test_azd_makes_no_virtual_environment():
    """Two hooks of azd up run at the same time, and both would make it, half-made for the other.

    azd looks for the nearest file of these names, in this order, from the hook upwards; there is one at the root. For
    what is no Python project it makes none.
    """
    known = ("pyproject.toml", "requirements.txt", "package.json")
    assert [name for name in known if (HOOKS / name).exists()] == ["package.json"]
    assert json.loads((HOOKS / "package.json").read_text())["private"]
    assert not [path for path in HOOKS.iterdir() if (path / "pyvenv.cfg").exists()]


@pytest.mark.parametrize("path", [*MODULES, *SHARED], ids=lambda path: path.name)
def test_a_hook_runs_on_the_oldest_python_that_azd_takes(path):
    """Its syntax, and no package besides the standard library and what lies beside it."""
    tree = ast.parse(path.read_text(), feature_version=SYNTAX)
    named = {
        node.module.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
    }
    named |= {
        alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    own = {module.stem for module in MODULES} | {"engine"}
    assert named - own <= sys.stdlib_module_names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_importing_a_hook_does_nothing(path):
    """On the oldest Python here, with every annotation that is evaluated."""
    code = f"import sys; sys.path.insert(0, {str(HOOKS)!r}); import {path.stem}"
    ran = subprocess.run(
        [oldest_python(), "-W", "error", "-B", "-c", code], env={}, capture_output=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


def test_no_hook_names_what_a_shell_of_windows_takes_for_syntax():
    """Programs get no quotes, parentheses, percent signs or ampersands, and JSON only in bodies (hooks.md 1).

    What azd is called with is a word of this list, or a value that azd or Azure made: names, ids and versions.
    """
    words = set()
    for path in MODULES:
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("azd", "azd_json"):
                words |= {
                    argument.value for argument in call.args if isinstance(argument, ast.Constant)
                }
    assert {"env", "set", "auth", "token"} <= words
    assert [word for word in words if re.search(r"[\"'()%&^<>|\s]", word)] == []


USED = re.compile(r"Fault\(\s*\"([a-z-]+)\"")


def test_every_fault_has_words():
    """Each code that a hook uses, and no other."""
    used = {code for path in MODULES for code in USED.findall(path.read_text())}
    assert used == set(TEMPLATES)


@pytest.mark.parametrize("code", TEMPLATES)
def test_the_words_of_a_fault_have_all_that_is_known(code):
    """The place first, every fact, and the code at the end: a person can look for it, and a test compare it."""
    names = {name for _, name, _, _ in string.Formatter().parse(TEMPLATES[code]) if name}
    text = text_of(HookFault(code, "PLACE", {name: f"<{name}>" for name in names}))
    assert text.startswith("PLACE: ")
    assert text.endswith(f" [{code}]")
    assert [name for name in names if f"<{name}>" not in text] == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a\r\n\x1b[1mb\tc\u2028d", "a [1mb c d"),
        ("x" * 1000, "x" * LONGEST),
        (["a", "b" * 300, "c" * 300], "a, " + "b" * 300 + ", " + "c" * 300),
        (7, "7"),
    ],
)
def test_the_output_of_others_is_one_line(value, shown):
    """A terminal obeys no part of it, and it hides nothing else."""
    text = text_of(HookFault("program-failed", "azd", {"exit": 1, "output": value}))
    assert text.partition(". ")[2] == f"{shown} [program-failed]"


KNOWN = {
    "APP_NAME": "func-x",
    "APP_URL": "http://127.0.0.1:1",
    "AZURE_RESOURCE_GROUP": "rg-test",
    "AZURE_SUBSCRIPTION_ID": "a-subscription",
    "FRONT_DOOR_ID": "an-id",  # so that postdeploy does not call the app
    "OPERATOR_EMAIL": "ada@example.com",
    "RESOURCE_MANAGER_URL": "http://127.0.0.1:1",
}


@pytest.mark.parametrize(
    ("hook", "command", "key"),
    [
        ("postdeploy.py", "azd auth token", "token"),
        ("postprovision.py", "azd auth token", "token"),
        ("sign_in.py", "azd auth token", "token"),
        ("sign_in.py", "azd env get-values", "SOME_KEY"),
    ],
)
def test_output_that_may_hold_a_secret_is_never_printed(tmp_path, hook, command, key):
    """As where azd prints a warning before its JSON."""
    project = Project(tmp_path)
    project.program("azd")
    output = "WARNING: azd is out of date\n" + json.dumps({key: "hunter2"})
    values = json.dumps(KNOWN | {"AZURE_ENV_NAME": "test", "AZURE_TENANT_ID": "a-tenant"})
    project.replies([[command, [0, output, ""]], ["azd env get-values", [0, values, ""]]])
    ran = project.run(hook, **KNOWN)
    printed = ran.out + ran.err
    assert f"{command}: " in printed
    assert "[output-unreadable]" in printed
    assert "hunter2" not in printed


REPORTING_AZD = """#!{python} -S
import json, os, sys
with open({report!r}, "w") as report:
    json.dump([os.getcwd(), sys.stdin.read()], report)
"""


def test_azd_runs_in_the_folder_of_the_project_without_input(tmp_path):
    """A hook starts in the folder of its file, where azure.yaml is not; what a person types is not for azd."""
    project = Project(tmp_path)
    report = tmp_path / "report"
    program = REPORTING_AZD.format(python=sys.executable, report=str(report))
    (project.bin / "azd").write_text(program)
    (project.bin / "azd").chmod(0o755)
    subprocess.run(
        project.command("postprovision.py"),
        cwd=project.hooks,
        env=project.environment(**KNOWN),
        input=b"typed",
        capture_output=True,
        check=False,
    )
    assert json.loads(report.read_text()) == [str(project.root), ""]


SHORT_LIMIT = """
import sys
sys.path.insert(0, {hooks!r})
import manager
manager.SECONDS = 1
"""


def test_an_azure_that_never_answers_is_given_up(tmp_path):
    """After the limit of one call, although the connection stays open."""
    project = Project(tmp_path)
    project.program("azd")
    project.replies([SIGNED_IN])
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        before = SHORT_LIMIT.format(hooks=str(project.hooks))
        ran = project.run("postprovision.py", before, **KNOWN | {"RESOURCE_MANAGER_URL": url})
    assert (ran.code, ran.faults) == (1, {("azure-silent", "MONTHLY_BUDGET")})


CHECK_URLS = """
import json, sys
sys.path.insert(0, sys.argv[1])
from engine.urls import is_private
print(json.dumps([is_private(url) for url in json.load(sys.stdin)]))
"""


def test_the_oldest_python_of_a_hook_decides_the_same():
    """The standard library's own parser does not: versions of Python differ in what is a host (hooks.md 6)."""
    urls = [*PRIVATE, *NOT_PRIVATE]
    ran = subprocess.run(
        [oldest_python(), "-c", CHECK_URLS, str(ROOT)],
        input=json.dumps(urls),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(ran.stdout) == [is_private(url) for url in urls]
