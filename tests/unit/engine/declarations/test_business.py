"""Operators see a payload without what an erasure would take from it (OPR-1)."""

import pytest

from engine.declarations.business import HIDDEN, Payload


def shown(payload, erased):
    """The payload of a business that would leave that of it."""
    return Payload(
        check=lambda _: None,
        erased=lambda _: erased,
        personal=lambda _: (),
        belongs_to=lambda *_: False,
    ).hidden(payload)


@pytest.mark.parametrize(
    ("payload", "erased", "expected"),
    [
        ({"a": 1, "b": "x"}, {"a": 1, "b": "erased"}, {"a": 1, "b": HIDDEN}),
        ({"a": {"b": "x", "c": 2}}, {"a": {"b": "", "c": 2}}, {"a": {"b": HIDDEN, "c": 2}}),
        ({"a": ["x", 1]}, {"a": ["", 1]}, {"a": [HIDDEN, 1]}),
        ({"a": [{"b": "x"}, 1]}, {"a": [{"b": ""}, 1]}, {"a": [{"b": HIDDEN}, 1]}),
        ({"a": ["x", 1]}, {"a": [1]}, {"a": HIDDEN}),
        ({"a": ["x"]}, {"a": "erased"}, {"a": HIDDEN}),
        ({"a": "x"}, {"a": ["x"]}, {"a": HIDDEN}),
        ({"a": {"b": "x"}}, {"a": "erased"}, {"a": HIDDEN}),
        ({"a": "x"}, {"a": {"b": "erased"}}, {"a": HIDDEN}),
        ({"a": "erased"}, {"a": "erased"}, {"a": "erased"}),
        ({}, {"a": "erased"}, {"a": HIDDEN}),
    ],
    ids=[
        "field", "object", "list", "object in a list", "shorter list", "list to text",
        "text to list", "object to text", "text to object", "erased", "missing",
    ],
)  # fmt: skip
def test_only_what_an_erasure_would_change_is_hidden(payload, erased, expected):
    """As little as possible of it; a list that would be another is hidden whole."""
    assert shown(payload, erased) == expected
