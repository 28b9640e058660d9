"""Faults of `make run`, `make func` and deployments: what their texts contain."""

import pytest

from development.faults import DevelopmentCode
from functions_alone.faults import LocalCode
from functions_alone.tests.support.rendering import missing_from_text


@pytest.mark.parametrize("code", DevelopmentCode)
def test_every_text_has_the_code_the_place_and_all_facts(code):
    """A template that drops one of them hides what is wrong."""
    assert missing_from_text(code) == []


def test_no_code_has_two_meanings():
    """Both tables are printed by the same commands."""
    assert {*DevelopmentCode} & {*LocalCode} == set()
