"""Every value that people see has a text in the catalogue, and no text is of a value that is gone."""

import pytest

from engine.decisions.lists import ENDED_LISTS, LISTS
from engine.domain.history import EVENT_INFO
from engine.domain.statuses import OrderStatus, Outcome, ProcessState, StepState
from engine.words import catalogue


def keys_of(prefix):
    """The rest of each key that begins so."""
    return {key.removeprefix(prefix) for key in catalogue.texts() if key.startswith(prefix)}


@pytest.mark.parametrize(
    ("prefix", "values"),
    [
        ("status.", {*OrderStatus, "accepted"}),
        ("state.", {*ProcessState, *StepState}),
        ("step-state.", set(StepState)),
        ("event.", EVENT_INFO.keys()),
        ("attempt-end.", {name for name, info in EVENT_INFO.items() if info.ends_attempt}),
        ("outcome.", set(Outcome)),
        ("list.", {*LISTS, *ENDED_LISTS, "again", "open"}),
    ],
)
def test_every_value_has_words(prefix, values):
    assert keys_of(prefix) == set(values)
