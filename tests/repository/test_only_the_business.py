"""Only the business knows what it sells, which steps that takes, and who does them."""

import re
from itertools import chain
from pathlib import Path

import pytest

from shop.business import SHOP
from shop.catalogue import PRODUCTS

ROOT = Path(__file__).parents[2]
ENGINE = (
    "engine",
    *("submission", "scheduler", "agents", "supervisor", "operations"),
    "samples/simulator",
)
SUFFIXES = (".py", ".js", ".css", ".html")
NOT_OURS = {"node_modules", "tests", "__pycache__"}
STEPS = chain.from_iterable(workflow.steps for workflow in SHOP.workflows.all)
NAMES = {
    *("shop", "tea", "sku"),
    *chain.from_iterable(
        (product.sku, product.sku.partition("-")[0], product.name) for product in PRODUCTS
    ),
    *(agent.name for agent in SHOP.agents),
    *(agent.offers for agent in SHOP.agents),
    *(step.name for step in STEPS),
}


def spellings(name):
    """How a name may stand in a text, or begin a name of several words."""
    return {name, name.lower(), name.upper(), name.capitalize()}


SPELLINGS = "|".join(
    sorted(map(re.escape, chain.from_iterable(map(spellings, NAMES))), reverse=True)
)
KNOWN = re.compile(rf"(?<![A-Za-z])(?:{SPELLINGS})s?(?![a-z])(?!(?<=[A-Z])[A-Z])")


def sources():
    """The files of the engine, its pages among them."""
    paths = chain.from_iterable((ROOT / folder).rglob("*") for folder in ENGINE)
    ours = (path for path in paths if path.suffix in SUFFIXES and NOT_OURS.isdisjoint(path.parts))
    return [*sorted(ROOT.glob("bootstrap/*.py")), *sorted(ours)]


def test_nothing_of_the_engine_names_anything_of_the_shop():
    """No product, step or agent of ours is named, not even in a comment."""
    paths = sources()
    found = []
    for path in paths:
        lines = enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line}"
            for number, line in lines
            if KNOWN.search(line)
        ]
    assert found == []
    assert len(paths) > 100


@pytest.mark.parametrize(
    "text",
    [
        "TEA-SENCHA",
        "the tea",
        "Teapots and Tea",
        '"sku"',
        "paymentUrl",
        "STOCK",
        "payments",
        "/shop",
        "Refund",
    ],
)
def test_what_names_the_shop_is_found(text):
    """As a word, in a list of names, or where a longer name begins with it."""
    assert KNOWN.search(text)


@pytest.mark.parametrize(
    "text", ["steam", "teardown", "a captured error", "stockpiled", "restocking", "team"]
)
def test_a_longer_word_is_another(text):
    """It only has the same letters."""
    assert not KNOWN.search(text)
