"""The words of faults at start-up: tests compare codes and facts, and here that the words contain them."""

import pickle
from datetime import timedelta

import pytest

from engine.azure.settings import SettingsError
from engine.declarations import faults as declared
from engine.declarations.faults import Fault, FaultCode, StartUpError
from engine.declarations.workflow import DeclarationError
from engine.words import catalogue
from engine.words.faults import text_of
from engine.workflow.new import NewBusinessError


@pytest.mark.parametrize("code", FaultCode)
def test_every_text_has_the_place_all_facts_and_the_code(code):
    """A template that drops a fact hides what is wrong; a code without a template cannot be declared."""
    assert missing_from_text(code) == []
    assert code.value == code.name.lower().replace("_", "-")


def missing_from_text(code):
    """Return what the text of a fault of this code lacks."""
    facts = {name: f"<{name} of {code}>" for name in code.facts}
    text = text_of(Fault(code, "<somewhere>", **facts))
    wanted = ["<somewhere>: ", *facts.values(), f" [{code.value}]"]
    return [word for word in wanted if word not in text]


def test_a_template_that_drops_a_fact_is_noticed(monkeypatch):
    """Of two facts this one names one."""
    texts = {**catalogue.texts(), "start-up.too-many-steps": "use at most {limit}"}
    monkeypatch.setattr(catalogue, "texts", lambda: texts)
    assert missing_from_text(FaultCode.TOO_MANY_STEPS) == ["<steps of too-many-steps>"]


@pytest.mark.parametrize(
    "facts",
    [{}, {"steps": 21}, {"steps": 21, "limit": 20, "most": 20}],
    ids=["none", "too few", "too many"],
)
def test_a_fault_has_exactly_the_facts_of_its_code(facts):
    """Else its words would lack one, or leave one out."""
    with pytest.raises(TypeError):
        Fault(FaultCode.TOO_MANY_STEPS, **facts)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("trip", "trip"),
        (20, "20"),
        (0.5, "0.5"),
        (timedelta(minutes=5), "0:05:00"),
        (("a", "b"), "a, b"),
        ((408, 429), "408, 429"),
    ],
)
def test_a_fact_of_any_kind_is_written_out(value, text):
    """Items of a list have commas between them."""
    fault = Fault(FaultCode.NOT_POSITIVE, field="x", value=value)
    assert f" {text};" in text_of(fault)


def test_a_type_that_is_not_declared_has_words_too():
    """Authors do not read of Python's None."""
    fault = Fault(FaultCode.RETURN_TYPE, expected="bool", returned=None)
    assert "None" not in text_of(fault)
    assert text_of(fault) != text_of(Fault(FaultCode.RETURN_TYPE, expected="bool", returned=""))


def test_places_nest():
    """From the outside to the inside; a fault of the whole app has none."""
    fault = Fault(FaultCode.NO_STEP)
    assert fault.place == ""
    assert text_of(fault) == f"{catalogue.text('start-up.no-step')} [no-step]"
    within = fault.within("step hotel").within("trip version 1")
    assert within == Fault(FaultCode.NO_STEP, "trip version 1: step hotel")
    assert text_of(within) == f"trip version 1: step hotel: {text_of(fault)}"
    renamed = Fault(FaultCode.DUPLICATE_STEP, step="x").within("trip")
    assert renamed == Fault(FaultCode.DUPLICATE_STEP, "trip", step="x")


@pytest.mark.parametrize(("name", "nearest"), [("hotl", "hotel"), ("hot", "hot"), ("x", None)])
def test_the_name_that_is_most_like_a_wrong_one_goes_with_the_fault(name, nearest):
    """Its code, place and facts stay; a place around it keeps the name."""
    fault = Fault(FaultCode.ENDPOINT_STEP_UNKNOWN, "endpoint", step=name)
    found = fault.like(name, ["hotels", "hotel", "hot"])
    assert (found, found.nearest) == (fault, nearest)
    assert found.within("trip").nearest == nearest


def test_without_the_words_an_error_still_names_the_code_and_the_place_of_each_fault(monkeypatch):
    """A tool may load declarations alone."""
    monkeypatch.setattr(StartUpError, "describe", declared._codes_of)
    said = str(DeclarationError([Fault(FaultCode.NO_STEP, "trip"), Fault(FaultCode.NO_WORKFLOW)]))
    assert [word for word in ("no-step", "trip", "no-workflow") if word not in said] == []


def test_faults_are_compared_by_code_place_and_facts():
    """Equal ones are found in sets and dictionaries; none can be changed."""
    fault = Fault(FaultCode.DUPLICATE_STEP, "trip", step="x")
    assert len({fault, Fault(FaultCode.DUPLICATE_STEP, "trip", step="x")}) == 1
    assert fault != Fault(FaultCode.DUPLICATE_STEP, "trip", step="y")
    assert fault != Fault(FaultCode.DUPLICATE_STEP, "tour", step="x")
    with pytest.raises(AttributeError):
        fault.place = "tour"


@pytest.mark.parametrize("error", [DeclarationError, SettingsError, NewBusinessError])
def test_the_text_of_an_error_has_its_count_and_a_line_for_every_fault(error):
    """So the log names all of them in one message."""
    faults = [Fault(FaultCode.PERSONAL_KEY, "a"), Fault(FaultCode.NOT_HTTPS, "b")]
    raised = error(faults)
    heading, *lines = str(raised).splitlines()
    assert "2" in heading
    assert lines == [f"- {text_of(fault)}" for fault in faults]
    assert raised.faults == faults


def test_an_error_with_faults_reaches_another_process():
    """Otherwise that would hide what is wrong."""
    error = SettingsError([Fault(FaultCode.NOT_HTTPS, "PUBLIC_URL")])
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - it is our own
    assert (type(copy), copy.faults, str(copy)) == (SettingsError, error.faults, str(error))
