"""The words of an order's language stand in Python; pages and queries follow what the app says."""

import re

import pytest

from core.actions import ACTIONS, OTHERS, Subject
from core.happenings import meanings
from core.life import Mark, Outcome, ProcessState, Situation, StepState
from development.servicebus_config import ROOT

ALLOWED = {
    "web/static/common/marks.js": "draws a shape for each mark",
    "web/static/common/base.css": "gives each mark its colour",
    "web/static/console/charts.js": "shows the two counts of the figures, under their names",
    "infra/workbook.json": "counts what it names in the log: recoveries, failed steps, orders done",
}
"""The files outside Python that may repeat words of the language, and why they need to."""

MARKS = set(Mark)
WORDS = MARKS | {
    *ProcessState,
    *Outcome,
    *StepState,
    *Situation,
    *meanings(),
    *(each.name for each in (*ACTIONS, *OTHERS) if each.subject is not Subject.AGENT),
}
"""An agent is held, and an answer given, in dialogs of their own, which ask for more than a note."""
FOLDERS = ("web/static", "shop/page", "infra")
KINDS = {".js", ".css", ".html", ".kql", ".json", ".bicep"}
FILES = {
    str(path.relative_to(ROOT)): path
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in KINDS and path.name != "bicepconfig.json"  # of the linter, not of the app
}
COMMENT = re.compile(r"/\*.*?\*/|(?<![:\w])//[^\n]*", re.DOTALL)
CLASS = re.compile(r' class="[^"]*"')
QUOTED = re.compile(r"""\\?(["'`])([\w-]+)\\?\1""")
KEY = re.compile(r"(?<![\w.-])([\w-]+):(?!:)")
MEMBER = re.compile(r"\.([A-Z]\w+)")
IN_QUERY = re.compile(r"[?&]\w+=(\w+)")
IN_STYLE = re.compile(r"(?:\.|var\(--)([a-z-]+)")


def words_of(path, text):
    """The words of the language in a file, apart from its comments."""
    text = COMMENT.sub("", text)
    if path.endswith(".css"):
        return WORDS & set(IN_STYLE.findall(text))
    found = {word for _, word in QUOTED.findall(CLASS.sub("", text))}
    if path.endswith(".js"):
        found |= {*KEY.findall(text)} - MARKS  # `again` and `undo` are fields of other things too
        found |= {*MEMBER.findall(text), *IN_QUERY.findall(text)}
    return WORDS & found


def test_files_outside_python_repeat_no_words_of_the_language():
    """Apart from four, of which each says why; so a new state or action touches none of them."""
    assert len(FILES) > 50
    repeating = {path for path, file in FILES.items() if words_of(path, file.read_text())}
    assert repeating == set(ALLOWED)
    assert len(ALLOWED) <= 4


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("x.js", 'order.processState === "Error"'),
        ("x.js", "const LOOKS = { expired: 1 }"),
        ("x.js", "overview.openOrders.Pending"),
        ("x.js", "ask(`/api/operator/orders?state=Error`)"),
        ("x.css", ".graph .undo rect { color: red; }"),
        ("x.css", "a { color: var(--processing); }"),
        ("x.kql", 'where change.state == "Error"'),
        ("x.json", r'"query": "where step[1] == \"Failed\""'),
    ],
)
def test_a_word_is_found_wherever_it_is_repeated(path, text):
    """As a text, as the name of a field, in an address, and in a style."""
    assert words_of(path, text)
    assert not words_of(path, "/* " + text + " */")
