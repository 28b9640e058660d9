"""Nothing below `tools/functions_alone/` imports or names the app that is developed beside it."""

import json
import re
from itertools import chain
from pathlib import Path

import pytest

from development.servicebus_config import ROOT, queues
from development.settings import app_settings
from development.stack import MODULES
from engine.azure.settings import Settings
from engine.domain.messages import bus_queues
from functions_alone.ports import Ports
from functions_alone.tests.support.host_process import HostProcess
from shop.business import SHOP

ITS_OWN = {"AzureWebJobsStorage", "LOCAL_FUNCTION_KEY"}
"""Settings that Azure's host has too, or that the platform gives its own host."""
LEFT_OUT = {"node_modules", "__pycache__", "build", "functions_alone.egg-info"}
KINDS = {".py", ".mjs", ".md", ".toml", ".json"}
PARTS = [path for path in (ROOT / "tools/functions_alone").iterdir() if path.name not in LEFT_OUT]
FILES = [
    path
    for path in sorted(chain(PARTS, *(part.rglob("*") for part in PARTS)))
    if path.suffix in KINDS
    and path.name != "package-lock.json"
    and not LEFT_OUT & set(path.relative_to(ROOT).parts)
]
STORAGE = json.loads((ROOT / "infra/storage.json").read_text())
ROOMS = sorted(
    {path.parent.name for path in ROOT.glob("*/__init__.py")}
    | {path.parent.name for path in ROOT.glob("tools/*/__init__.py")} - {"functions_alone"}
)
NAMES = {
    *(queue["name"] for kind in queues().values() for queue in kind),
    *bus_queues([agent.name for agent in SHOP.agents]),
    *STORAGE["containers"],
    *app_settings(Ports(), "", "", SHOP.agents),
    *(name.upper() for name in Settings.model_fields),
    *("OPERATOR_KEY", "api/health", "function_app.app", "scheduler-agent-supervisor"),
} - ITS_OWN
WORDS = re.compile(r"\b(?:tea|shop|payment|stock|operators?|submissions?)\b", re.IGNORECASE)
QUOTED = re.compile(r"""["'`]([\w/.-]+)(?=["'`])""")
IMPORT = re.compile(rf"^\s*(?:from|import) ({'|'.join(ROOMS)})\b", re.MULTILINE)


def named_in(text):
    """What a text says of the app: its rooms, its names of things, and words of its business."""
    quoted = NAMES & set(QUOTED.findall(text))
    return sorted({*IMPORT.findall(text), *WORDS.findall(text), *quoted})


def test_the_platform_names_nothing_of_the_app():
    """Neither code, nor tests, nor the words for people who read."""
    assert len(FILES) > 80
    found = {str(path.relative_to(ROOT)): named_in(path.read_text()) for path in FILES}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("from engine.domain.submitted_order import Order\n", ["engine"]),
        ('QUEUE = "operator-alerts"', ["operator", "operator-alerts"]),
        ('values["STEP_TIMEOUT_SECONDS"]', ["STEP_TIMEOUT_SECONDS"]),
        ("from functions_alone.process import Process\n", []),
    ],
)
def test_what_would_be_named_is_seen(text, named):
    """Else the test above could not fail."""
    assert named_in(text) == named


APP = """
import azure.functions as func
from bench.greeting import FROM as bench
from development.greeting import FROM as development
from tools.greeting import FROM as tools

app = func.FunctionApp()

@app.route(route="greeting", auth_level=func.AuthLevel.ANONYMOUS)
def greeting(req: func.HttpRequest) -> str:
    return f"{bench} {development} {tools}"
"""


@pytest.mark.parametrize("names", [("bench", "development"), ("bench", "development", "tools")])
def test_an_app_imports_its_own_packages(tmp_path, names):
    """(bugs2 63) Also where a package below `tools`, or that folder, has the name; `tools` may be a folder too."""
    for name in ("bench", "development", "tools"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "greeting.py").write_text("FROM = __file__")
    for name in names:
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / "function_app.py").write_text(APP)
    (tmp_path / "host.json").write_text('{"version": "2.0"}')
    host = HostProcess(tmp_path, {"PYTHONPATH": MODULES}, app=tmp_path)
    try:
        answer = host.ready().call("/api/greeting")
    finally:
        host.stop()
    assert [Path(place).parents[1] for place in answer.body.decode().split()] == [tmp_path] * 3
