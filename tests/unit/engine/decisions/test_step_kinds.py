"""Each kind of step starts, expires and completes in its own way."""

import pytest

from engine.decisions.step_kinds import STRATEGIES, AttemptReport, Expiry, Start, strategy_of
from engine.domain.effects import Answered, Done, NothingSent
from engine.domain.states import AwaitingExternalEvent, Completed, Running
from engine.domain.steps import StepKind
from tests.support.engine_records import KEY, NOW, TIMEOUT, external, running, step

UP = NOW + TIMEOUT
RESULT = {"reference": "r"}


def start(key=None):
    """An attempt that may start now; without a key no agent has capacity."""
    return Start(complete_by=UP, key_for=lambda _: key, token_for=lambda _: None)


def test_every_kind_has_a_strategy():
    assert set(STRATEGIES) == set(StepKind)


@pytest.mark.proves("ANS-1")
def test_only_a_step_at_a_service_needs_an_agent():
    """SCH-3."""
    at_service, awaited = step(), external()
    assert strategy_of(at_service).start(at_service, start()) is None
    assert strategy_of(at_service).start(at_service, start(KEY)).state == Running(UP)
    started = strategy_of(awaited).start(awaited, start())
    assert (started.state, started.effect) == (AwaitingExternalEvent(UP), NothingSent())


@pytest.mark.parametrize("before", [running(), external(AwaitingExternalEvent(UP))])
def test_only_a_missing_event_counts_though_nobody_has_begun(before):
    """SUP-3, ANS-2."""
    expiry = Expiry(now=UP, request="r", report=AttemptReport(), is_undo=False, max_unbegun=12)
    verdict = strategy_of(before).expire(before, expiry)
    assert verdict.is_counted is before.is_external
    assert verdict.step.counts.failures == before.is_external
    expired = verdict.events[0]
    assert (expired.failure, expired.fault) == (1 if before.is_external else None, "")


def test_an_event_leaves_the_key_of_a_service_for_the_undo():
    """ANS-2, ANS-6."""
    effects = {running(): Done(key=KEY, result=RESULT), external(): Answered(result=RESULT)}
    for before, effect in effects.items():
        completed = strategy_of(before).complete(before, RESULT)
        assert (completed.state, completed.effect) == (Completed(), effect)
