"""Nothing below `local/` imports or names the app that is developed beside it."""

import json
import re
from itertools import chain

import pytest

from development.servicebus_config import ROOT, queues
from development.settings import app_settings
from engine.azure.settings import Settings
from engine.domain.messages import bus_queues
from local.ports import Ports
from shop.business import SHOP

ITS_OWN = {"AzureWebJobsStorage", "LOCAL_FUNCTION_KEY"}
"""Settings that Azure's host has too, or that the platform gives its own host."""
LEFT_OUT = {"node_modules", "__pycache__", "build", "functions_alone.egg-info"}
KINDS = {".py", ".mjs", ".md", ".toml", ".json"}
PARTS = [path for path in (ROOT / "local").iterdir() if path.name not in LEFT_OUT]
FILES = [
    path
    for path in sorted(chain(PARTS, *(part.rglob("*") for part in PARTS)))
    if path.suffix in KINDS
    and path.name != "package-lock.json"
    and not LEFT_OUT & set(path.relative_to(ROOT).parts)
]
STORAGE = json.loads((ROOT / "infra/storage.json").read_text())
ROOMS = sorted(
    path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent.name != "local"
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
        ("from local.process import Process\n", []),
    ],
)
def test_what_would_be_named_is_seen(text, named):
    """Else the test above could not fail."""
    assert named_in(text) == named
