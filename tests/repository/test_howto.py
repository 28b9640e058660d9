"""The tutorial and the guides for one task each: a test runs or checks every block of code."""

import pytest

from tests.support.guides import PAGES, ROOT, SMALLEST, blocks, written


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_test_runs_or_checks_each_block(page):
    """By its kind, the file that is named before it, or its mark."""
    found = list(blocks(page))
    assert found
    assert [(block.fault, block.text) for block in found if block.fault] == []


def test_the_page_of_the_smallest_business_shows_its_whole_files():
    """Every line, in the order of the file."""
    shown = {}
    for block in blocks(SMALLEST):
        if block.language == "python":
            shown.setdefault(block.file, []).append(block.text)
    folder = SMALLEST.parent
    assert {ROOT / file for file in shown} == {folder / "business.py", folder / "test_minimal.py"}
    for file, parts in shown.items():
        assert _lines("".join(parts)) == _lines((ROOT / file).read_text())


def _lines(text):
    return [line for line in text.splitlines() if line]


def test_a_part_of_a_module_takes_its_place_there():
    """What is new stands before what follows it in the part; the last part before the application."""
    module = '"""A module."""\n\nimport a\n\nx = a.x\ny = x\nAPP = application(y)\n'
    text = written(module, "import b\n\nw = b.w\nx = w\n\n\n@a\ndef z():\n    pass\n")
    assert [line for line in text.splitlines() if line] == [
        '"""A module."""',
        "import b",
        "import a",
        "w = b.w",
        "x = w",
        "y = x",
        "@a",
        "def z():",
        "    pass",
        "APP = application(y)",
    ]
    assert written(module, '"""Another."""\n') == '"""Another."""\n'
