"""Conditions and start times of steps (SCH-14, SCH-15)."""

from engine.domain.causes import Cause, Code
from engine.domain.states import ConditionPending, Scheduled, Skipped, SkipReason, Waiting
from engine.features.conditions import condition_met, schedule, skip_by_condition
from tests.support.engine_records import HOUR, NOW, step


def test_a_condition_is_evaluated_once():
    """The step starts, waits for its time, or is skipped by the name of the function that says so."""
    pending = step(ConditionPending())
    assert condition_met(pending).state == Waiting()
    assert schedule(pending, NOW + HOUR).state == Scheduled(NOW + HOUR)
    skipped = skip_by_condition(pending, "is_large")
    cause = Cause(Code.CONDITION_NOT_MET, {"condition": "is_large"})
    assert skipped.state == Skipped(SkipReason.CONDITION, cause)
    assert not skipped.skipped_as_done
    assert skipped.cause == cause
