"""Faults at start-up: what their texts contain, and how they travel."""

import pickle
import re

import pytest

from functions_alone.faults import FaultsError, LocalCode, StackFault, StackFaultCode, text_of
from functions_alone.tests.support.rendering import missing_from_text


@pytest.mark.parametrize("code", LocalCode)
def test_every_text_has_the_code_the_place_and_all_facts(code):
    """A template that drops one of them hides what is wrong."""
    assert missing_from_text(code) == []
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", code)


def test_a_template_that_drops_a_fact_is_noticed():
    """Of a code that declares two facts and names one, the other is missing."""

    class Forgetful(StackFaultCode):
        NO_SALT = "no-salt", ("dish", "cup"), "{place} has no {dish}."

    assert missing_from_text(Forgetful.NO_SALT) == ["<cup>"]


def test_a_code_without_a_template_cannot_be_declared():
    """The enumeration that has it cannot even be imported."""
    with pytest.raises(TypeError):

        class Bare(StackFaultCode):
            NO_SALT = "no-salt", ()


@pytest.mark.parametrize("facts", [{}, {"port": 1, "program": "x", "value": 2}, {"value": 1}])
def test_a_fault_has_the_facts_of_its_code(facts):
    """No other ones, and all of them."""
    with pytest.raises(TypeError):
        StackFault(LocalCode.PORT_IN_USE, "HTTP_PORT", facts)


def test_every_fault_of_an_error_is_in_its_text():
    """In their order; output of other programs comes below the line with the code."""
    ended = StackFault(LocalCode.APP_UNLOADABLE, "/the/app", {"output": "first {line}\nlast line"})
    taken = StackFault(LocalCode.PORT_IN_USE, "BLOB_PORT", {"port": 10000, "program": "x"})
    error = FaultsError(ended, taken)
    assert str(error) == f"{text_of(ended)}\n{text_of(taken)}"
    first, *rest = text_of(ended).splitlines()
    assert first.endswith("[app-unloadable]")
    assert rest == ["first {line}", "last line"]


def test_a_fault_reaches_another_process_as_it_is():
    """A worker sends its faults to the host."""
    fault = StackFault(LocalCode.APP_NOT_UNIQUE, "function_app.py", {"count": 2})
    assert pickle.loads(pickle.dumps(fault)) == fault  # noqa: S301 - our own object
