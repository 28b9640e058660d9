"""A module and its words are all that a new action needs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

ROOT = Path(__file__).parents[2]
MODULE = """
from datetime import datetime

from engine.decisions.actions.action import NoArguments, OperatorAction, OperatorCommand
from engine.decisions.drafts import NextVersion, next_version
from engine.domain.causes import Cause
from engine.domain.events import ActionTaken
from engine.domain.orders import OrderAggregate
from engine.domain.work_index import WorkItemKind


class AnnotateArguments(NoArguments):
    label: str
    due: datetime | None = None


class Annotate(OperatorAction[AnnotateArguments]):
    name = "annotate"
    lists = (WorkItemKind.ERROR, WorkItemKind.WAITING)
    asks = AnnotateArguments

    def why_not(self, order: OrderAggregate, now: datetime) -> Cause | None:
        return None

    def apply(
        self, order: OrderAggregate, command: OperatorCommand[AnnotateArguments], now: datetime
    ) -> NextVersion:
        note = f"{command.arguments.label}: {command.note}"
        return next_version(order, order, now, (ActionTaken(action=self.name, note=note),))


ACTION = Annotate()
"""
WORDS = {
    "action.annotate.title": "Annotate",
    "action.annotate.button": "Leave the note",
    "action.annotate.effect": "The history keeps the note.",
    "action.annotate.done": "annotated",
    "action.annotate.summary": "Leave a note at an order.",
    "argument.label.label": "Label",
    "argument.label.help": "A word for the note.",
    "argument.due.label": "Until",
    "argument.due.help": "The time until which the note counts.",
    "event.annotate": "annotated",
}
LOOK = """
import json
from click.testing import CliRunner
from engine.http.openapi import description
from operations.api.requests import BulkRequest, Where
from operations.api.triggers import operator_routes
from operations.api.vocabulary import vocabulary
from operations.cli.main import main
from samples.claims_with_approvals.business import GROWN
from testkit import WorkflowTestEnvironment

environment = WorkflowTestEnvironment(GROWN)
first, second = (environment.submit(GROWN.sample.payload) for _ in range(2))
offered = environment.inspect(first.id).actions
environment.act(first, "annotate", label="tax", due="2026-02-01T08:00:00Z")
history = environment.inspect(first.id).history[-1].model_dump(mode="json")
try:
    environment.act(first, "annotate", step="pay")
    faults = []
except Exception as refused:
    faults = list(map(str, refused.faults))
operations = environment._world.operations
environment.advance(minutes=1)


def annotate_all(**more):
    request = BulkRequest(
        operator="grace", note="all", action="annotate", arguments={"label": "tax"},
        where=Where(workflow="grown-claim"), **more,
    )
    return environment._world.run(operations.services.bulk.run(request))


page = annotate_all(dry_run=False, until=annotate_all().until)
described = description(operator_routes(operations.services))
path = "/api/operator/orders/{orderId}/annotate"
body = described["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
terms = vocabulary().model_dump(mode="json", by_alias=True)
run = CliRunner().invoke
print(json.dumps({
    "offered": offered,
    "history": history,
    "faults": faults,
    "bulk": len(page.done),
    "body": described["components"]["schemas"][body["$ref"].rpartition("/")[2]],
    "action": next(term for term in terms["actions"] if term["name"] == "annotate"),
    "event": terms["events"]["annotate"],
    "help": run(main, ["annotate", "--help"]).output,
    "bulkHelp": run(main, ["bulk", "annotate", "--help"]).output,
    "all": run(main, ["--help"]).output,
}))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What an app with the new module shows: a copy of the engine, and the rest as it is."""
    app = tmp_path_factory.mktemp("app")
    for part in ROOT.iterdir():
        if part.name != "engine" and not part.name.startswith("."):
            (app / part.name).symlink_to(part)
    copytree(ROOT / "engine", app / "engine", ignore=ignore_patterns("node_modules", "__pycache__"))
    (app / "engine/decisions/actions/annotate.py").write_text(MODULE)
    words = app / "engine/words/en.json"
    words.write_text(json.dumps(json.loads(words.read_text()) | WORDS))
    found = subprocess.run(
        [sys.executable, "-P", "-c", LOOK],
        cwd=app,
        env=os.environ | {"PYTHONPATH": str(app), "OPERATOR_KEY": "k"},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(found.stdout)


def test_it_is_offered_and_its_route_takes_what_it_asks(seen):
    """A field that it does not ask for is named."""
    assert "annotate" in seen["offered"]
    assert set(seen["body"]["properties"]) == {"operator", "note", "label", "due"}
    assert set(seen["body"]["required"]) == {"operator", "note", "label"}
    assert {fault.partition(":")[0] for fault in seen["faults"]} == {"label", "step"}


def test_it_acts_on_one_order_and_on_many(seen):
    """Its event has its name, and the history keeps the note."""
    assert (seen["history"]["event"], seen["history"]["detail"]) == ("annotate", "tax: a test")
    assert seen["bulk"] == 2


def test_pages_have_its_button_and_its_dialog(seen):
    """And the words of its event."""
    action = seen["action"]
    assert (action["title"], action["lists"]) == ("Annotate", ["Waiting", "Error"])
    assert [(field["name"], field["kind"], field["isRequired"]) for field in action["fields"]] == [
        ("label", "text", True),
        ("due", "time", False),
    ]
    assert seen["event"]["word"] == "annotated"


def test_the_command_line_has_it_too(seen):
    """Alone and in bulk, with its arguments as options."""
    assert "annotate" in seen["all"]
    for shown in (seen["help"], seen["bulkHelp"]):
        assert "--label" in shown
        assert "--due" in shown
