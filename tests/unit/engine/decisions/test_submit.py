"""A submission is recorded as an order once, with a copy of the rules of its steps."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bench.workflows import MEASURED
from engine.decisions.submit import Wishes, is_same, submit
from engine.declarations.workflow import StepDefaults, WorkflowDefinition
from engine.domain import events as e
from engine.domain.deadlines import WhenLate, deadline_of
from engine.domain.orders import Pending
from engine.domain.states import ConditionPending, Waiting
from engine.domain.steps import StepKind
from engine.domain.submitted_order import OnFailure, Priority
from tests.support.engine_records import HOUR, NOW, order
from tests.support.engine_scheduling import definition

PAYLOAD = MEASURED.payload
DEFAULTS = StepDefaults(
    timeout=timedelta(seconds=5),
    threshold=3,
    cooldown=timedelta(seconds=60),
    max_retry_pause=timedelta(seconds=70),
)
CONTENT = {
    "customer": {"name": "Ada", "email": "ada@example.com"},
    "items": [{"sku": "TEA-SENCHA", "quantity": 2, "unitPrice": "14.00"}],
}
SUBMITTED = replace(order().submitted, payload=CONTENT, submission_digest="d")
WISHES = Wishes(priority=Priority.HIGH, reply_to="status-web")


def needed(_order, _results):
    return True


def recorded(it):
    return replace(order(), submitted=it)


def rules(**changes):
    return definition(**changes).rules(DEFAULTS)


def submitted(not_before=None, *steps):
    workflow = WorkflowDefinition(name="claim", version=2, steps=steps or (definition(),))
    kept = workflow.initial_steps(DEFAULTS)
    return submit(replace(SUBMITTED, not_before=not_before), workflow, kept, WISHES, NOW)


def test_an_order_is_recorded_with_its_steps_and_wakes_a_scheduler():
    """SUB-2, SUB-6."""
    made = submitted(None, definition("pay"), definition("ship", after=("pay",)))
    after = made.after
    assert made.before is None
    assert (after.version, after.state, after.updated_at) == (1, Pending(), NOW)
    assert (after.workflow, after.workflow_version) == ("claim", 2)
    assert (after.priority, after.reply_to) == (Priority.HIGH, "status-web")
    assert after.submitted == SUBMITTED
    assert [step.name for step in after.steps] == ["pay", "ship"]
    assert after.derived.ready_since == NOW
    assert made.events == (e.Submitted(workflow="claim"),)
    assert len(made.messages) == 1


def test_an_order_for_a_later_time_waits_for_a_poll():
    """SUB-9: a time that has passed makes no difference."""
    later = submitted(NOW + HOUR)
    assert later.after.derived.not_before == NOW + HOUR
    assert later.events[0].not_before == NOW + HOUR
    assert later.messages == ()
    for passed in (NOW, NOW - HOUR):
        assert submitted(passed).events[0].not_before is None
        assert len(submitted(passed).messages) == 1


def test_a_step_with_a_condition_or_a_start_time_waits_for_its_evaluation():
    """SCH-14, SCH-15."""
    steps = definition("a"), definition("b", condition=needed), definition("c", start_at=needed)
    states = [step.state for step in submitted(None, *steps).after.steps]
    assert states == [Waiting(), ConditionPending(), ConditionPending()]


def test_a_step_has_the_settings_of_its_workflow_or_else_of_the_app():
    """SUP-3."""
    assert (rules().timeout, rules().threshold) == (DEFAULTS.timeout, 3)
    assert rules().max_retry_pause == DEFAULTS.max_retry_pause
    own = rules(timeout=HOUR, threshold=7, max_retry_pause=HOUR)
    assert (own.timeout, own.threshold, own.max_retry_pause) == (HOUR, 7, HOUR)


def test_only_a_step_with_that_rule_cools_down():
    """SUP-3: for the time of its workflow, or else of the app."""
    assert (rules().cooldown, rules().max_cooldowns) == (timedelta(), 0)
    cooling = rules(on_failure=OnFailure.COOLDOWN, max_cooldowns=2)
    assert (cooling.cooldown, cooling.max_cooldowns) == (DEFAULTS.cooldown, 2)
    assert rules(on_failure=OnFailure.COOLDOWN, cooldown=HOUR).cooldown == HOUR


def test_a_step_keeps_a_copy_of_its_definition():
    """SUP-2: the supervisor needs no workflow then."""
    made = definition(
        title="Pay",
        uses=("a", "b"),
        may_lack=("b",),
        after=("a", "b"),
        pivot=True,
        compensation=None,
        personal=("iban",),
        late_effect_window=HOUR,
        on_failure=OnFailure.CONTINUE,
    )
    kept = made.rules(DEFAULTS)
    assert (kept.title, kept.capability, kept.kind) == ("Pay", "bank", StepKind.SERVICE)
    assert (kept.uses, kept.after) == (("a",), ("a", "b"))
    assert (kept.pivot, kept.undoable, rules().undoable) == (True, False, True)
    assert (kept.personal, kept.late_effect_window) == (("iban",), HOUR)
    assert (kept.on_failure, kept.fingerprint) == (OnFailure.CONTINUE, made.fingerprint)
    assert rules(kind=StepKind.EXTERNAL).kind is StepKind.EXTERNAL


def test_a_submission_has_the_content_of_the_recorded_order_also_after_an_erasure():
    """SUB-3: the erased payload is compared with what an erasure leaves of the new one."""
    erased = replace(SUBMITTED, payload=PAYLOAD.erased(CONTENT))
    assert is_same(SUBMITTED, SUBMITTED, PAYLOAD)
    assert is_same(erased, SUBMITTED, PAYLOAD)
    other = replace(SUBMITTED, payload=CONTENT | {"items": []})
    assert not is_same(SUBMITTED, other, PAYLOAD)
    assert not is_same(erased, other, PAYLOAD)
    assert not is_same(SUBMITTED, replace(SUBMITTED, submission_digest="e"), PAYLOAD)


@pytest.mark.proves("SCH-17")
def test_the_deadline_counts_from_the_placement_or_from_the_time_of_the_order():
    """Never from when the order is recorded or claimed."""
    workflow = WorkflowDefinition(
        name="claim", version=1, steps=(definition(),), within=HOUR, when_late=WhenLate.UNDO
    )
    kept = workflow.initial_steps(DEFAULTS)
    for at, starts in ((None, NOW), (NOW - HOUR, NOW), (NOW + HOUR, NOW + HOUR)):
        it = replace(SUBMITTED, not_before=at)
        after = submit(it, workflow, kept, WISHES, NOW + 5 * HOUR).after
        assert after.deadline == deadline_of(starts, HOUR, WhenLate.UNDO)
    assert submitted().after.deadline is None
