"""The digest by which two answers are the same."""

import pytest

from engine.domain.digests import digest_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": [{"c": None}]}, {"b": [{"c": None}], "a": 1}),
        ({"a": 10.0, "b": [2.0]}, {"a": 10, "b": [2]}),
        ({"a": ("x",)}, {"a": ["x"]}),
    ],
    ids=["order of names", "form of numbers", "a row that was read"],
)
def test_the_same_answer_in_another_form_has_the_same_digest(one, other):
    """JSON tells neither apart."""
    assert digest_of(one) == digest_of(other)


def test_different_answers_have_different_digests():
    """Python calls some of them equal."""
    answers = [
        1,
        True,
        "1",
        1.5,
        None,
        0,
        False,
        "",
        [],
        {},
        [1],
        {"a": 1},
        {"a": True},
        {"a": "\u00e9"},
    ]
    assert len({digest_of(answer) for answer in answers}) == len(answers)
