"""The pages of docs/reference: what follows from the code stands there, and their examples are right."""

import json
import re
from pathlib import Path

import pytest

import engine.workflow
from development import reference
from development.servicebus_config import ROOT
from engine.domain.work_index import WorkItemKind
from engine.storage.step_rows import STEPS
from engine.workflow import CONTENT, Agent, Model, Text
from testkit.keys import SqliteKeys
from testkit.receiver import Receiver

PAGES = sorted((ROOT / "docs/reference").glob("*.md"))
MADE = sorted({place for place, _ in reference.sections()})
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("place", MADE)
def test_a_page_holds_what_the_code_says(place):
    """Settings, rows, calls, events, commands: `make reference ARGS=--write`."""
    page = (ROOT / place).read_text()
    assert page == reference.written(place, page), reference.COMMAND


def test_nothing_is_left_without_a_meaning():
    """A setting, a column or an option whose meaning is missing."""
    with pytest.raises(ValueError, match="nothing describes `X`"):
        reference.table(("setting", "meaning"), [("`X`", "")])


def test_every_kind_of_work_item_has_its_row_key():
    """Beside its meaning."""
    page = (ROOT / "docs/reference/rows.md").read_text()
    keys = set(re.findall(r"^\| `([!_]\w+)\\\|", page, re.MULTILINE))
    assert keys - {"_acted"} == {kind.value for kind in WorkItemKind}


def test_the_step_that_the_page_shows_can_be_read():
    """It is an object of the column `Steps`."""
    page = (ROOT / "docs/reference/rows.md").read_text()
    [shown] = [text for language, text in BLOCK.findall(page) if language == "json"]
    [step] = STEPS.validate_python([json.loads(shown)])
    assert step.name == "payment"


def test_the_examples_of_agents_can_be_declared(tmp_path):
    """With models, a library and a service as a reader has them."""
    page = (ROOT / "docs/reference/agents.md").read_text()
    blocks = [text for language, text in BLOCK.findall(page) if language == "python"]
    models = {name: type(name, (Model,), {}) for name in ("Parcel", "Charge")}
    answers = {
        name: type(name, (Model,), {"__annotations__": {field: Text}})
        for name, field in (("Label", "label"), ("Charged", "reference"))
    }
    known = {name: getattr(engine.workflow, name) for name in engine.workflow.__all__}
    receiver = {"Receiver": Receiver, "SqliteKeys": SqliteKeys, "bank": None}
    place = {"Path": lambda name: tmp_path / name}
    names = {**known, **models, **answers, **receiver, **place}
    for block in blocks:
        exec(compile(block, "agents.md", "exec"), names)  # noqa: S102 - it is our own
    carrier, stripe = names["carrier"].declaration(), names["stripe"].declaration()
    assert (carrier.form.body, carrier.form.routes["ship"].method) == (CONTENT, "PUT")
    assert [*stripe.code] == ["charge"]
    assert isinstance(names["carrier"], Agent)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_test_checks_each_block(page):
    """Blocks of Python and JSON above and in `test_own_workflow.py`; the rest are diagrams and usages."""
    kinds = {
        "workflow": {"python"},
        "agents": {"python", "sh"},
        "rows": {"json"},
        "states": {"mermaid"},
        "cli": {"text"},
    }
    assert {language for language, _ in BLOCK.findall(page.read_text())} <= kinds.get(
        Path(page).stem, set()
    )
