"""A version of a workflow that was changed while orders may be on it is noticed when the app starts."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from apps import app
from azure.functions import FunctionApp
from builders import NOW, WORKFLOWS
from memory import in_memory
from owed import events_owed

from alerts.triggers import blueprint
from alerts.versions import Versions, fingerprint
from core.errors import UnavailableError
from core.orders import OnFailure
from core.workflow import MAX_STEPS, StepDefinition, Workflow, Workflows
from stores.tables import first


def step(name, *after, **more):
    return StepDefinition(
        name=name, capability="payment", operation="pay", request=lambda order, results: {}, after=after, **more
    )


CLAIM = Workflow(name="claim", version=1, steps=(step("approve"), step("pay", "approve", result_fields=("reference",))))
APPROVE, PAY = CLAIM.steps


@pytest.fixture
def made():
    return app(in_memory(clock=lambda: NOW))


def versions_of(made, *known):
    """What compares these workflows with those that were there at first."""
    parts = made.adapters
    return Versions(workflows=Workflows(*known), known=parts.table("agents"), store=made.store, clock=parts.clock)


async def started(made, *known):
    """An app that has these workflows begins; what it has told the operators by then."""
    versions = versions_of(made, *known)
    await versions.compare()
    await versions.compare()
    return await events_owed(made.store, "b00")


CHANGES = {
    "another operation": ([APPROVE, replace(PAY, operation="charge")], "step pay: operation"),
    "what is kept": ([APPROVE, replace(PAY, result_fields=())], "step pay: result_fields"),
    "what undoes it": ([APPROVE, replace(PAY, compensation="void")], "step pay: compensation"),
    "policy and threshold": (
        [APPROVE, replace(PAY, on_failure=OnFailure.UNDO, threshold=7)],
        "step pay: on_failure, threshold",
    ),
    "a time": ([APPROVE, replace(PAY, late_effect_window=timedelta(seconds=1))], "step pay: late_effect_window"),
    "what it comes after": ([APPROVE, replace(PAY, after=())], "step pay: after"),
    "another name": ([replace(APPROVE, name="accept"), PAY], "step approve is gone; step accept is new"),
    "one step less": ([APPROVE], "step pay is gone"),
    "another order": ([PAY, APPROVE], "the order of the steps"),
}


@pytest.mark.proves("FLT-12")
@pytest.mark.parametrize("change", CHANGES)
async def test_what_was_changed_is_named_once(made, change):
    """Workflow, version, and what differs; however often, and wherever, an app starts with it."""
    assert await started(made, CLAIM) == []
    steps, different = CHANGES[change]
    changed = replace(CLAIM, steps=tuple(steps))
    (event,) = await started(made, changed)
    assert (event.type, event.subject) == ("OrderProcessing.WorkflowChanged", "workflows/claim")
    assert event.data["reason"] == f"claim v1 was changed without a new version: {different}"
    assert {each.event_id for each in await started(made, changed)} == {event.event_id}


@pytest.mark.proves("FLT-12")
async def test_each_change_has_an_alert_of_its_own(made):
    """Whoever changes it once more is told once more."""
    await started(made, CLAIM)
    for operation in ("charge", "capture"):
        told = await started(made, replace(CLAIM, steps=(APPROVE, replace(PAY, operation=operation))))
    assert len({each.event_id for each in told}) == 2


@pytest.mark.proves("FLT-12")
async def test_nobody_is_told_of_what_is_as_it_was_or_has_a_version_of_its_own(made):
    """A request may be put right, for the orders that are on it too."""
    assert await started(made, CLAIM) == []
    assert "late_effect_window" not in fingerprint(CLAIM)["pay"]  # nor of what a later version of the app may add
    mended = replace(PAY, request=lambda order, results: {"amount": 1})
    newer = replace(CLAIM, version=2, steps=(APPROVE,))
    assert await started(made, replace(CLAIM, steps=(APPROVE, mended)), newer) == []
    assert await started(made, *WORKFLOWS.all) == []


async def test_what_was_kept_and_cannot_be_read_is_told_like_any_change(made):
    """It stops no timer."""
    await first(made.adapters.table("agents"), "workflows", {"claim|1": {"Fingerprint": "{"}})
    (event,) = await started(made, CLAIM)
    assert event.data["reason"].endswith("step approve is new; step pay is new")


async def test_the_largest_workflow_can_be_kept(made):
    """A column of a table holds 32 Ki characters."""
    names = [f"s{number:02}-{'x' * 37}" for number in range(MAX_STEPS)]
    largest = replace(CLAIM, steps=tuple(step(name, *names[:at], compensation="y") for at, name in enumerate(names)))
    Workflows(largest).check({"payment"})
    await started(made, largest)
    (row,) = await made.adapters.table("agents").rows("workflows", "", "~")
    assert len(row.row["Fingerprint"]) < 32 * 1024


async def away(*_):
    raise UnavailableError


@pytest.mark.proves("FLT-12")
async def test_a_version_is_compared_once_and_again_only_if_that_failed(made):
    """The store may be away when the app starts; later it is asked for nothing."""
    await started(made, CLAIM)
    versions = versions_of(made, replace(CLAIM, steps=(APPROVE,)))
    with patch.object(made.store, "announce", away), pytest.raises(UnavailableError):
        await versions.compare()
    await versions.compare()
    assert len(await events_owed(made.store, "b00")) == 1
    with patch("alerts.versions.first", away):
        await versions.compare()


@pytest.mark.proves("FLT-12")
async def test_versions_are_compared_though_nothing_can_be_sent(made):
    """The timer that sends what waits does both."""
    await started(made, CLAIM)
    versions = versions_of(made, replace(CLAIM, steps=(APPROVE,)))
    triggers = FunctionApp()
    triggers.register_functions(blueprint(None, None, SimpleNamespace(relay=away), None, versions))
    (relay,) = (each for each in triggers.get_functions() if each.get_function_name() == "alerts_relay")
    await relay.get_user_function()(None)
    assert len(await events_owed(made.store, "b00")) == 1
