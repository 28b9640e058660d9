"""The pages of the repository lead somewhere, and name places that exist."""

import re
from dataclasses import asdict
from functools import cache
from pathlib import Path

import pytest

from engine.alerts import events as alerts
from engine.domain.statuses import STATUS_INFO
from engine.features.external_events import notifications
from functions_alone.ports import Ports

ROOT = Path(__file__).parent.parent.parent
README = ROOT / "README.md"
OTHERS = [
    *(ROOT / name for name in ("AGENTS.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(ROOT / folder / "README.md" for folder in ("tests/support", "tools/functions_alone")),
    *sorted((ROOT / "samples").rglob("*.md")),
]
PAGES = [README, *OTHERS, *sorted((ROOT / "docs").rglob("*.md"))]
ARCHITECTURE, CHANGES = ROOT / "docs/architecture.md", ROOT / "docs/where-to-change.md"
SOURCES = {".bicep", ".css", ".html", ".js", ".json", ".mjs", ".py", ".toml", ".yml"}
BEHIND = re.compile(r"`([\w./-]+)` `([A-Za-z_][\w.]*)`")
"""A symbol behind the name of its file."""
BEFORE = re.compile(r"`([A-Za-z_][\w.]*)` ?(?:in |\()`([\w./-]+)`")
"""A symbol before the name of its file: `symbol` in `file`, or `symbol` (`file`)."""
PLACE = re.compile(r"[\w.-]+(?:/[\w.-]+)*/?")
FILE = re.compile(r"(?:/|\.(?:bicep|js|json|md|py|toml|yaml|yml))")
LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([\w-]+))?\)")


def without_code(text):
    """The page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(page):
    """The names under which GitHub reaches the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", without_code(page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def names_file(token):
    """Whether a piece of code is the name of a file or folder."""
    return bool(PLACE.fullmatch(token) and FILE.search(token))


def files_in(cell):
    """The files and folders that a cell names."""
    return {token for token in re.findall(r"`([^`]+)`", cell) if names_file(token)}


def source(place):
    """The text of a file, or of all files of a folder."""
    path = ROOT / place
    found = path.rglob("*") if path.is_dir() else [path]
    files = [file for file in found if file.is_file() and "node_modules" not in file.parts]
    return "".join(file.read_text() for file in files if file.suffix in SOURCES)


@cache
def words_of(place):
    """The names that stand in a file, or in the files of a folder."""
    return set(re.findall(r"\w+", source(place)))


def unquoted(command):
    """The command without what quotes keep from the shell."""
    return re.sub(r"""'[^']*'|"[^"]*"|\\\S""", "", command)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_address_is_left_to_the_shell(page):
    """zsh would look for files of the name `orders?state=Error`, so the address is quoted (newcomer C 3)."""
    blocks = re.findall(
        r"^```(?:console|sh)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL
    )
    addresses = [
        address for block in blocks for address in re.findall(r"https?://\S+", unquoted(block))
    ]
    assert [address for address in addresses if re.search(r"[?*\[&;]", address)] == []


def linked_from(page):
    """The pages of the repository to which a page links."""
    targets = (target for target, _ in LINK.findall(page.read_text()) if target.endswith(".md"))
    places = ((page.parent / target).resolve() for target in targets)
    return {place for place in places if place.exists()}


def test_every_page_can_be_reached():
    """From the README, over the links of the pages between."""
    reached, left = {README}, [README]
    while left:
        found = linked_from(left.pop()) - reached
        reached |= found
        left += found
    assert {*(ROOT / "docs").rglob("*.md")} <= reached


def test_the_readme_shows_the_workflow_of_the_shop_as_it_is():
    """Each function that stands there stands in the shop too."""
    blocks = re.findall(r"^```python$(.*?)^```", PAGES[0].read_text(), re.MULTILINE | re.DOTALL)
    shown = [part.strip() for block in blocks for part in block.split("\n\n\n")]
    assert shown
    business = (ROOT / "shop/business.py").read_text()
    assert [part for part in shown if part not in business] == []


@pytest.mark.parametrize("page", [ARCHITECTURE, CHANGES], ids=lambda page: page.name)
def test_a_page_about_the_code_names_places_that_exist(page):
    """Each file and folder, each symbol, and each symbol in the file that is named beside it."""
    text = " ".join(without_code(page.read_text()).split())
    named = {name for name in files_in(text) if "/" in name}
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []
    pairs = {(place, symbol) for place, symbol in BEHIND.findall(text) if place in named}
    pairs |= {(place, symbol) for symbol, place in BEFORE.findall(text) if place in named}
    elsewhere = [
        (place, part)
        for place, symbol in pairs
        for part in symbol.split(".")
        if part not in words_of(place)
    ]
    assert elsewhere == []
    known = {word for place in named for word in words_of(place)}
    symbols = {name for name in re.findall(r"`(\w+)`", text) if not name.isdigit()}
    assert symbols - known == set()


@pytest.mark.parametrize("name", ["AGENTS.md", "CONTRIBUTING.md"])
def test_a_page_for_contributors_names_places_and_commands_that_exist(name):
    """Each file or folder with a path, and each target of `make`."""
    text = (ROOT / name).read_text()
    named = [place for place in files_in(text) if "/" in place]
    assert named
    assert [place for place in named if not (ROOT / place).exists()] == []
    targets = set(re.findall(r"^([\w ]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    known = {target for line in targets for target in line.split()}
    assert {command.split()[1] for command in re.findall(r"`(make \w[^`]*)`", text)} <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_link_leads_to_a_file_and_to_a_heading_of_it(page):
    """Also within a page."""
    for target, anchor in LINK.findall(page.read_text()):
        place = page.parent / target if target else page
        assert place.exists(), target
        assert not anchor or anchor in anchors(place), f"{target}#{anchor}"


def test_every_condition_has_a_row_that_leads_to_its_runbook():
    """By the subject of its alert."""
    part = part_of("runbooks", "Stalled", "###")
    listed = re.findall(r"^\| `([\w-]+)(?:/…)?` \|", part, re.MULTILINE)
    named = (alerts.WAITING, alerts.OVERDUE, alerts.HELD, alerts.SUBMISSIONS, alerts.SUPERVISOR)
    about = (alerts.ABOUT_AGENT.rstrip("/"), alerts.ABOUT_CLOCK.rstrip("/"))
    assert sorted(listed) == sorted([*named, *about])


def types_of_events():
    """The types of all events that the topic gets: alerts, and news for others."""
    names = {**vars(alerts), **vars(notifications)}
    named = {value for value in names.values() if str(value).startswith("OrderProcessing.")}
    return named | {meaning.alert for meaning in STATUS_INFO.values() if meaning.alert}


def part_of(name, heading, level):
    """The text below a heading of a page for operators."""
    text = (ROOT / f"docs/operations/{name}.md").read_text()
    [part] = re.findall(rf"^{level} {heading}$(.*?)(?:^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return part


def test_every_type_of_alert_has_a_section_that_says_what_to_do():
    """One, and no other type has one."""
    part = part_of("runbooks", "Alerts of the app", "##")
    sections = re.split(r"^### ", part, flags=re.MULTILINE)[1:]
    described = [re.findall(r"^Event: `([\w.]+)`$", text, re.MULTILINE) for text in sections]
    assert sorted(described) == sorted(
        [name] for name in types_of_events() - set(notifications.NEWS)
    )
    assert sorted(described) == sorted([name] for name in alerts.TYPES)


def test_the_page_lists_the_events_that_other_subscribers_get():
    """Each type stands in the table, news too, and no other."""
    page = (ROOT / "docs/reference/events.md").read_text()
    [part] = re.findall(r"^## Alerts and other events$(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    cells = re.findall(r"^\| (`[A-Z].*?) \|", part, re.MULTILINE)
    listed = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert {f"OrderProcessing.{name}" for name in listed} == types_of_events()


def test_readme_lists_the_variable_of_every_port_with_its_default():
    """Somebody else's program may have any of them."""
    rows = re.findall(r"^\| (`\w+_PORT`.*?) \| ([\d, ]+):", README.read_text(), re.MULTILINE)
    listed = {
        name: int(port)
        for names, ports in rows
        for name, port in zip(re.findall(r"\w+", names), ports.split(", "), strict=True)
    }
    assert listed == {name.upper(): port for name, port in asdict(Ports()).items()}
