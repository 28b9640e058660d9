"""What a reader of the code is spared."""

import ast
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_OURS = {"node_modules", "tests", "__pycache__"}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def sources():
    """The Python files at the top and in each package that is no test."""
    packages = (path.parent for path in ROOT.glob("*/__init__.py"))
    found = [*ROOT.glob("*.py"), *(path for package in packages for path in package.rglob("*.py"))]
    return [path for path in found if NOT_OURS.isdisjoint(path.relative_to(ROOT).parts)]


def nested(text):
    """The lines at which a comprehension begins that has another one in it."""
    outer = [node for node in ast.walk(ast.parse(text)) if isinstance(node, COMPREHENSIONS)]
    return [each.lineno for each in outer if any(has_one(child) for child in parts(each))]


def parts(node):
    return ast.iter_child_nodes(node)


def has_one(node):
    return any(isinstance(each, COMPREHENSIONS) for each in ast.walk(node))


def places(path):
    return [f"{path.relative_to(ROOT)}:{line}" for line in nested(path.read_text())]


def test_no_comprehension_is_within_another():
    """A function with a name says what the inner one is."""
    paths = sources()
    found = (places(path) for path in paths)
    assert list(chain.from_iterable(found)) == []
    assert len(paths) > 200


@pytest.mark.parametrize(
    "text",
    [
        "[[b for b in a] for a in c]",
        "any(sum(x for x in a) for a in b)",
        "{a: 1 for a in {b for b in c}}",
        "[a for a in b if any(c for c in a)]",
    ],
)
def test_each_kind_would_be_found(text):
    assert nested(f"\nprint({text})") == [2]


def test_one_beside_another_is_none_of_them():
    assert nested("[a for a in b] + [[c], *(d for d in e)]\n[f for g in h for f in g]") == []
