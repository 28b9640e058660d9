"""What people can give for the arguments of an action follows from the model that it asks."""

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from engine.decisions.actions.action import NoArguments, StepArguments
from engine.decisions.actions.arguments import Argument, ArgumentKind, arguments_of


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Asked(StepArguments):
    was_done: bool
    certain: bool = False
    colour: Colour
    size: Literal["s", "m"] | None = None
    answer: dict[str, Any] | None = None
    until: datetime | None = None
    label: str
    reason: None | str = None  # noqa: RUF036 - what may be None may also come second


def test_each_argument_has_its_kind():
    """In the sequence of the model; one that may be None, or has a default, can be left out."""
    found = arguments_of(Asked)
    assert {argument.name: argument.kind for argument in found} == {
        "step": ArgumentKind.STEP,
        "was_done": ArgumentKind.FLAG,
        "certain": ArgumentKind.FLAG,
        "colour": ArgumentKind.CHOICE,
        "size": ArgumentKind.CHOICE,
        "answer": ArgumentKind.OBJECT,
        "until": ArgumentKind.TIME,
        "label": ArgumentKind.TEXT,
        "reason": ArgumentKind.TEXT,
    }
    required = [argument.name for argument in found if argument.is_required]
    assert required == ["was_done", "colour", "label"]
    assert [argument.choices for argument in found if argument.choices] == [
        ("red", "blue"),
        ("s", "m"),
    ]


def test_an_action_may_ask_for_nothing():
    """Beside the operator's name and a note."""
    assert arguments_of(NoArguments) == ()


def test_the_words_of_an_argument_have_a_key_with_hyphens():
    """As other keys of the catalogue."""
    assert Argument(name="was_done", kind=ArgumentKind.FLAG, is_required=True).key == "was-done"


def test_an_argument_that_nobody_can_give_is_named():
    """At the start of the app, since its API and its commands read the arguments then."""

    class Several(BaseModel):
        steps: list[str]

    with pytest.raises(TypeError, match="steps"):
        arguments_of(Several)
