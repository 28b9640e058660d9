"""What a business declares: its faults, and what operators see of a payload (OPR-1)."""

from datetime import timedelta

import pytest

from engine.declarations.business import (
    HIDDEN,
    MAX_PAYLOAD,
    AgentDefinition,
    Application,
    Payload,
)
from engine.declarations.faults import Fault, FaultCode
from engine.declarations.workflow import (
    DeclarationError,
    StepDefaults,
    StepDefinition,
    WorkflowDefinition,
    Workflows,
)
from engine.domain.errors import InputFault, InvalidError
from testkit.memory import in_memory
from tests.support.apps import app
from tests.support.builders import PAYLOAD


def leaving(erased):
    """The functions of a business that would leave this of any payload."""
    return Payload(
        check=lambda _: None,
        erased=lambda _: erased,
        personal=lambda _: (),
        belongs_to=lambda *_: False,
    )


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
    assert leaving(erased).hidden(payload) == expected


LONGEST = {"a": "x" * (MAX_PAYLOAD - len('{"a":""}'))}
LONGER = {"a": LONGEST["a"] + "x"}
TOO_LONG = InputFault("body", "content-too-long", {"length": MAX_PAYLOAD + 1, "limit": MAX_PAYLOAD})


def test_a_payload_may_be_as_long_as_a_row_can_hold():
    """Whole and erased."""
    leaving(LONGEST).accept(LONGEST)


@pytest.mark.parametrize(
    ("payload", "erased"), [(LONGER, {}), ({}, LONGER)], ids=["whole", "erased"]
)
def test_a_payload_is_refused_that_is_too_long_for_a_row(payload, erased):
    """The fault has its length and the limit."""
    with pytest.raises(InvalidError) as refused:
        leaving(erased).accept(payload)
    assert list(refused.value.faults) == [TOO_LONG]


def test_a_payload_is_refused_that_cannot_be_written_as_json():
    """The fault names the value."""
    with pytest.raises(InvalidError) as refused:
        leaving({}).accept({"a": float("nan")})
    (fault,) = refused.value.faults
    assert (fault.place, fault.code, list(fault.facts)) == ("body", "no-json", ["error"])
    assert "nan" in fault.facts["error"]


MARGIN = timedelta(seconds=1)


def business(**step):
    """A business with one step at its bank."""
    pay = StepDefinition(
        name="pay", capability="bank", operation="pay", request=lambda order, results: {}, **step
    )
    return Application(
        workflows=Workflows(WorkflowDefinition(name="claim", version=1, steps=(pay,))),
        default_workflow="claim",
        agents=[AgentDefinition(name="bank", offers="bank", address="BANK_URL")],
        payload=PAYLOAD,
    )


@pytest.mark.proves("AGT-5")
@pytest.mark.parametrize("step", [{"timeout": MARGIN}, {}])
def test_a_timeout_within_the_reply_margin_is_a_fault(step):
    """Its agent would drop every request as too late, and it would be tried for ever (engine 18)."""
    made = business(**step)
    with pytest.raises(DeclarationError) as caught:
        made.check(made.agents, StepDefaults(timeout=MARGIN), reply_margin=MARGIN)
    place, code = "claim version 1: step pay", FaultCode.TIMEOUT_WITHIN_MARGIN
    assert caught.value.faults == [Fault(code, place, timeout=MARGIN, margin=MARGIN)]
    made.check(
        made.agents,
        StepDefaults(timeout=MARGIN),
        reply_margin=MARGIN - timedelta(milliseconds=1),
    )


def test_the_app_checks_timeouts_with_its_own_reply_margin():
    """Engine 18."""
    short = business(timeout=MARGIN).workflows
    with pytest.raises(DeclarationError) as caught:
        app(in_memory(), workflows=short, offers={"bank": ("bank",)}, reply_margin_seconds=1)
    assert [fault.code for fault in caught.value.faults] == [FaultCode.TIMEOUT_WITHIN_MARGIN]
