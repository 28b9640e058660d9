"""The files that show the pattern: their marks and the page that leads through them agree."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/explanation/pattern-in-an-hour.md"
FOLDERS = ("agents", "engine", "operations", "scheduler", "submission", "supervisor")
MARK = re.compile(r"^# The pattern in an hour, (\d+) of (\d+): (.+)$", re.MULTILINE)
ITEM = re.compile(r"^(\d+)\. \[`(.+?)`\]\(\.\./\.\./(.+?)\): (.+)\n((?:   .*\n)+)", re.MULTILINE)
SKIPPED = re.compile(r"- Skip .*(?:\n +(?!- ).*)*")
NAME = re.compile(r"`([\w.]+)`")


def marks():
    """Every mark in the code: number, number of all, path and title."""
    return sorted(
        (int(mark[1]), int(mark[2]), str(path.relative_to(ROOT)), mark[3])
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        for mark in MARK.finditer(path.read_text())
    )


def items():
    """Every file of the page: number, path, title, and the names to skip."""
    for match in ITEM.finditer(PAGE.read_text()):
        assert match[2] == match[3]
        skipped = NAME.findall("".join(SKIPPED.findall(match[5])))
        yield int(match[1]), match[2], match[4], skipped


def definitions(tree, prefix=""):
    """The name of each class, function and constant."""
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name):
                yield prefix + name
                yield from definitions(node, f"{name}.")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield prefix + name
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                yield prefix + name


def test_marks_and_page_agree():
    """In number, order, path and title; each mark stands once, below the docstring of its file."""
    listed = list(items())
    count = len(listed)
    assert [number for number, *_ in listed] == list(range(1, count + 1))
    assert marks() == [(number, count, path, title) for number, path, title, _ in listed]
    assert f"These {count} files" in PAGE.read_text()
    for _, path, _, _ in listed:
        text = (ROOT / path).read_text()
        first = ast.parse(text).body[0]
        assert MARK.match(text.splitlines()[first.end_lineno + 1]), path


def test_what_may_be_skipped_is_there():
    """Each name is one of the file."""
    for _, path, _, skipped in items():
        known = set(definitions(ast.parse((ROOT / path).read_text())))
        assert [name for name in skipped if name not in known] == [], path


def test_the_page_names_rules_of_the_pattern():
    """Every id is one of the statements."""
    known = set(re.findall(r"\b[A-Z]{3}-\d+\b", (ROOT / "docs/pattern.md").read_text()))
    assert set(re.findall(r"\b[A-Z]{3}-\d+\b", PAGE.read_text())) <= known
