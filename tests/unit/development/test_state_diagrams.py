"""The state diagrams of the documents are drawn from the tables of states and events."""

import re

import pytest
from click.testing import CliRunner

from development import state_diagrams
from development.servicebus_config import ROOT
from engine.domain.states import UndoPending, Wait
from engine.domain.table import name_of, rows

PLACES = (state_diagrams.OVERVIEW, state_diagrams.DETAILS)


@pytest.mark.parametrize("place", PLACES)
def test_a_document_holds_what_the_tables_draw(place):
    """Each diagram, and the table of all states: `make diagrams ARGS=--write`."""
    page = (ROOT / place).read_text()
    assert page == state_diagrams.written(place, page), state_diagrams.COMMAND


def names_of(kind):
    """The names under which a diagram may show a state: all waits may be drawn as one."""
    if kind[0] is UndoPending:
        return {"UndoPending", f"UndoPending_{kind[1].__name__}"}
    return {name_of(kind), *(["NextAttempt"] if issubclass(kind[0], Wait) else [])}


def test_every_change_of_state_is_an_arrow_of_the_exact_diagrams():
    """With its event. An event that leaves a step as it is has none, and no arrow leads to itself."""
    page = (ROOT / state_diagrams.DETAILS).read_text()
    arrows = re.findall(r"^    (\w+) --> (\w+): (.*)$", page, re.MULTILINE)
    drawn = {
        (before, after, event) for before, after, names in arrows for event in names.split(", ")
    }
    for event, before, after in rows():
        ends = {(one, other) for one in names_of(before) for other in names_of(after)}
        is_drawn = any((one, other, event) in drawn for one, other in ends)
        assert is_drawn or any(one == other for one, other in ends), (event, before, after)
    assert [arrow for arrow in arrows if arrow[0] == arrow[1]] == []


def test_the_command_finds_and_writes_what_is_not_drawn(tmp_path, monkeypatch):
    """It exits with 1 until the documents are written, and leaves the rest of them as it is."""
    monkeypatch.setattr(state_diagrams, "ROOT", tmp_path)
    (tmp_path / "docs/reference").mkdir(parents=True)
    for place in PLACES:
        outdated = (ROOT / place).read_text().replace("Running: start", "Running: begin")
        (tmp_path / place).write_text(outdated)
    run = CliRunner().invoke
    assert run(state_diagrams.main, []).exit_code == 1
    assert run(state_diagrams.main, ["--write"]).exit_code == 0
    assert run(state_diagrams.main, []).exit_code == 0
    assert [(tmp_path / place).read_text() for place in PLACES] == [
        (ROOT / place).read_text() for place in PLACES
    ]
