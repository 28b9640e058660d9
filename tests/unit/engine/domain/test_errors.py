"""What an error says of itself: for the log, and where nothing else is known of it."""

from datetime import timedelta

from engine.domain.causes import Cause, Code
from engine.domain.errors import (
    AppError,
    CausedError,
    ChannelAwayError,
    DeferredError,
    InputFault,
    InvalidError,
    NotAllowedError,
    ThrottledError,
)
from tests.support.engine_records import NOW

WAIT = timedelta(seconds=3)


def test_an_error_says_its_message_or_else_what_its_class_is():
    """The docstring of a class has one line for that."""
    assert str(AppError("why")) == "why"
    assert str(AppError()) == AppError.__doc__
    for kind in (ChannelAwayError, ThrottledError):
        error = kind("busy", WAIT)
        assert (str(error), error.retry_after) == ("busy", WAIT)
    assert str(DeferredError("queued", retry_after=WAIT)) == "queued"
    assert NotAllowedError("operator").role == "operator"


def test_a_caused_error_says_its_code_and_facts():
    """Facts may hold what JSON does not know, such as a time."""
    assert str(CausedError(Cause(Code.NOT_ON_HOLD))) == "not-on-hold"
    held = CausedError(Cause(Code.HELD, {"by": "grace", "note": NOW}))
    assert str(held) == f'held {{"by": "grace", "note": "{NOW}"}}'


def test_a_fault_says_its_place_code_and_facts():
    """What the library says that found it comes instead of code and facts."""
    assert str(InputFault("", "missing")) == "missing"
    assert str(InputFault("lines.0", "missing")) == "lines.0: missing"
    dated = InputFault("at", "too-late", {"until": NOW, "most": 1})
    assert str(dated) == f'at: too-late {{"until": "{NOW}", "most": 1}}'
    assert str(InputFault("at", "too-late", {"most": 1}, "say less")) == "at: say less"


def test_faults_get_a_place_inside_another_one():
    """One of the whole input, of a field, and a text of a business."""
    faults = InvalidError([InputFault("", "a"), InputFault("x", "b"), "no tea"]).within("order")
    assert faults == [InputFault("order", "a"), InputFault("order.x", "b"), "order.no tea"]
