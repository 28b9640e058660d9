"""Which differences between two contents mean nothing (bugs 3)."""

import time
from datetime import datetime
from typing import Annotated, Any, Literal

import pytest
from pydantic import AwareDatetime, BaseModel, Field

from engine.domain.contents import content_text


class Line(BaseModel):
    """A part of the content."""

    sku: str
    gift: bool = False
    at: AwareDatetime | None = None
    kind: str = Field("part", alias="lineKind")


class Card(BaseModel):
    """One of two ways to pay."""

    kind: Literal["card"] = "card"
    parts: int = 1


class Cash(BaseModel):
    """The other one."""

    kind: Literal["cash"] = "cash"
    parts: int = 1


class Unit:
    """A default that is no JSON."""

    def __str__(self):
        return "kg"


class Content(BaseModel):
    """A content with everything that has a default."""

    lines: tuple[Line, ...] = (Line(sku="x"),)
    pays: Card | Cash | None = None
    notes: dict[str, Line | None] = {}
    times: Annotated[tuple[datetime, ...], Field(max_length=3)] = ()
    text: str = Field("", alias="freeText")
    made: list[str] = Field(default_factory=list)
    mixed: str | datetime | None = None
    whole: Line = Line(sku="x", lineKind="whole")
    unit: Any = Unit()
    seen: Annotated[datetime, Field(description="by whom")] | None = None


MORNING, SAME_MORNING = "2026-12-01T07:00:00Z", "2026-12-01T08:00:00+01:00"
SAME = {
    "a default": ({}, {"lines": [{"sku": "x"}], "pays": None, "freeText": ""}),
    "a default within": ({"lines": [{"sku": "y"}]}, {"lines": [{"sku": "y", "gift": False}]}),
    "a default in both models": (
        {"pays": {"kind": "cash"}},
        {"pays": {"kind": "cash", "parts": 1}},
    ),
    "a time": ({"times": [MORNING]}, {"times": [SAME_MORNING]}),
    "a time within": (
        {"lines": [{"sku": "y", "at": MORNING}]},
        {"lines": [{"sku": "y", "at": SAME_MORNING}]},
    ),
    "a default with the names of the wire": ({}, {"whole": {"sku": "x", "lineKind": "whole"}}),
    "a default that is no JSON": ({}, {"unit": "kg"}),
    "a time with more in its type": ({"seen": MORNING}, {"seen": SAME_MORNING}),
    "the order of names": ({"freeText": "t", "new": 1}, {"new": 1, "freeText": "t"}),
    "the form of a number": ({"new": 1}, {"new": 1.0}),
}


@pytest.mark.parametrize("label", SAME)
def test_contents_are_the_same(label):
    """Bugs 3: what is at its default may be left out, and a time is the same in every zone."""
    one, other = SAME[label]
    assert content_text(Content, one) == content_text(Content, other)


OTHER = {
    "a value": ({}, {"freeText": "t"}),
    "the name of the attribute": ({}, {"text": ""}),
    "a mark of one model": ({"pays": {"kind": "card"}}, {"pays": {"kind": "cash"}}),
    "a default of another field": ({}, {"freeText": None}),
    "true and 1": ({"new": True}, {"new": 1}),
    "an unknown field": ({}, {"new": None}),
    "a name in a mapping": ({}, {"notes": {"at": None}}),
    "the text of no default": ({"lines": [{}]}, {"lines": [{"sku": "PydanticUndefined"}]}),
    "a computed default": ({}, {"made": []}),
    "a time of another moment": ({"times": [MORNING]}, {"times": ["2026-12-01T08:00:00Z"]}),
    "a time without a zone": ({"times": [MORNING]}, {"times": ["2026-12-01T07:00:00"]}),
    "a text that may be a time": ({"mixed": MORNING}, {"mixed": SAME_MORNING}),
}


@pytest.mark.parametrize("label", OTHER)
def test_contents_are_different(label):
    """In doubt they are: one of two orders that are taken for one would be lost."""
    one, other = OTHER[label]
    assert content_text(Content, one) != content_text(Content, other)


def test_the_zone_of_the_machine_changes_no_text(monkeypatch):
    """One machine compares what another one has recorded."""
    content = {"times": [SAME_MORNING]}
    here = content_text(Content, content)
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        assert content_text(Content, content) == here
    finally:
        monkeypatch.undo()
        time.tzset()


ODD_TIMES = ["0001-01-01T00:00:00+05:00", 1e99]


@pytest.mark.parametrize(
    "value", [None, "erased", ["erased"], {"lines": "erased"}, {"times": ODD_TIMES}]
)
def test_any_content_has_a_text(value):
    """It may be erased, of another version, or never have been valid."""
    assert content_text(Content, value) == content_text(Content, value)
