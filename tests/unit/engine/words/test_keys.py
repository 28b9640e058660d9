"""Every value that people see has a text in the catalogue, and no text is of a value that is gone."""

from itertools import chain

import pytest
from pydantic_core._pydantic_core import list_all_errors

from engine.alerts.events import TYPES
from engine.decisions.lists import ENDED_LISTS, LISTS
from engine.decisions.operator_actions import BY_NAME
from engine.declarations.faults import FaultCode
from engine.domain.history import EVENT_INFO, names_of_action
from engine.domain.states import BackingOff, CoolingDown, Delayed, LateEffectsPossible, Scheduled
from engine.domain.statuses import OrderStatus, Outcome, ProcessState, StepState
from engine.http.responses import STATUS
from engine.words import catalogue
from engine.words.errors import name_of


def keys_of(prefix):
    """The rest of each key that begins so."""
    return {key.removeprefix(prefix) for key in catalogue.texts() if key.startswith(prefix)}


@pytest.mark.parametrize(
    ("prefix", "values"),
    [
        ("status.", {*OrderStatus, "accepted"}),
        ("state.", {*ProcessState, *StepState, "Accepted"}),
        ("step-state.", set(StepState)),
        ("event.", {*EVENT_INFO, *chain.from_iterable(map(names_of_action, BY_NAME))}),
        ("attempt-end.", {name for name, info in EVENT_INFO.items() if info.ends_attempt}),
        ("outcome.", set(Outcome)),
        ("list.", {*LISTS, *ENDED_LISTS, "again", "open"}),
    ],
)
def test_every_value_has_words(prefix, values):
    assert keys_of(prefix) == set(values)


def test_every_fault_that_a_model_can_have_has_words():
    """The library that reads inputs names its faults by these types."""
    types = {error["type"] for error in list_all_errors()}
    known = {key.removesuffix(".one").removesuffix(".other") for key in keys_of("fault.")}
    assert types <= known


ADVICE = {"correct-message", "repair-queue", "raise-version", "look-at-health", "set-clock"}


def test_every_alert_has_a_title_and_advice():
    assert keys_of("alert.") == {kind.rpartition(".")[2] for kind in TYPES}
    assert keys_of("advice.") == ADVICE


def test_every_problem_has_a_title():
    others = {"unexpected", "unknown-file"}
    assert keys_of("problem.") == {name_of(kind) for kind in STATUS} | others


def test_every_wait_is_explained():
    waits = {
        kind.__name__ for kind in (Delayed, BackingOff, CoolingDown, Scheduled, LateEffectsPossible)
    }
    assert keys_of("explain.pause.") - {"cause"} == waits


def test_every_fault_of_a_declaration_or_a_setting_has_words():
    others = {"undeclared", "did-you-mean"} | {
        key for key in keys_of("start-up.") if key.startswith("heading.")
    }
    assert keys_of("start-up.") - others == set(FaultCode)
