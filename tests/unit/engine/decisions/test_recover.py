"""The supervisor's decision about expired steps (SUP-3)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from engine.decisions.recover import recover
from engine.decisions.step_kinds import MAX_OVERLOADED_ATTEMPTS, AttemptReport
from engine.domain import events as e
from engine.domain import verbs
from engine.domain.backoff import retry_pause
from engine.domain.causes import Cause, Code
from engine.domain.effects import Done, InDoubt
from engine.domain.messages import OrderReady, decode, request_id_of
from engine.domain.orders import InError, Pending, Processing
from engine.domain.states import (
    AwaitingExternalEvent,
    BackingOff,
    Completed,
    Delayed,
    Failed,
    LateEffectsPossible,
    RequestCancelled,
    Running,
    SkipReason,
    UndoPending,
    Waiting,
)
from engine.domain.statuses import Direction, Outcome
from engine.domain.steps import Counts
from engine.domain.submitted_order import OnFailure
from tests.support.engine_records import (
    HOUR,
    KEY,
    NOW,
    ORDER_ID,
    TIMEOUT,
    external,
    order,
    running,
    step,
)
from tests.support.engine_scheduling import TOLERANCE, kinds, only_step

LATE = NOW + TIMEOUT + 2 * TOLERANCE
"""When a step that started at `NOW` is overdue."""
BY = Processing("scheduler-1")
BEGUN = AttemptReport(has_begun=True, fault="")
NO_FAULT = AttemptReport(has_begun=True)
NOT_BEGUN = AttemptReport()
MAX_UNBEGUN = 3
REQUEST = f"{ORDER_ID}:pay:1:do"
FAULT = AttemptReport(has_begun=True, fault="503")
OVERLOADED = AttemptReport(has_begun=True, fault="late", agent_overloaded=True)
GATEWAY = AttemptReport(has_begun=True, fault="404", by_gateway=True)
TWICE = Cause(Code.THRESHOLD_REACHED, {"step": "pay", "failures": 2, "fault": ""})


def recovered(*steps, now=LATE, report=BEGUN, **changes):
    """The recovery of an order that a scheduler handles; this is reported of each of its attempts."""
    it = order(*steps, **{"state": BY} | changes)
    reports = {request_id_of(it.order_id, one): report for one in it.steps}
    return recover(it, now, reports, TOLERANCE, MAX_UNBEGUN)


def tried(failures, name="pay", **rules):
    return replace(running(name, **rules), counts=Counts(attempts=1, failures=failures))


def test_nothing_is_recovered_before_its_time():
    """SUP-2: the tolerance for clocks that differ has to pass too."""
    assert recovered(running(), now=NOW + TIMEOUT + TOLERANCE) is None
    assert recovered(step()) is None


def test_an_expired_step_is_counted_and_tried_again():
    """SUP-3: the order is pending, has a complete-by time, and any scheduler is woken for it."""
    next_version = recovered(running())
    after = next_version.after
    assert only_step(next_version).state == Waiting(
        Cause(Code.TIMED_OUT, {"fault": ""}), LATE + TIMEOUT
    )
    assert (after.state, after.failures) == (Pending(), 1)
    assert after.derived.complete_by == LATE + TIMEOUT
    expired = e.AttemptExpired(
        step="pay", attempt=1, agent="bank", threshold=2, failure=1, has_begun=True
    )
    assert next_version.events == (expired, e.Recovered())
    (message,) = next_version.messages
    assert decode(OrderReady, message.body).steps == ("pay",)


def test_the_fault_that_an_agent_reported_of_the_attempt_is_kept():
    """Engine 13: of this very attempt."""
    next_version = recovered(running(), report=FAULT)
    assert only_step(next_version).cause == Cause(Code.TIMED_OUT, {"fault": "503"})
    assert next_version.events[0].fault == "503"


def test_an_attempt_that_nobody_has_begun_is_not_counted():
    """SCH-16: it is repeated after a pause; the report of another request says nothing about it."""
    it = order(running(), state=BY)
    next_version = recover(it, LATE, {"b00-other:pay:1:do": FAULT}, TOLERANCE, MAX_UNBEGUN)
    assert only_step(next_version).counts == Counts(attempts=1, uncounted=1, unbegun=1)
    assert only_step(next_version).cause == Cause(Code.NOT_BEGUN, {"agent": "bank"})
    assert next_version.after.failures == 0
    assert (next_version.events[0].failure, next_version.events[0].fault) == (None, "")


@pytest.mark.proves("SUP-3", "AGT-8")
def test_a_time_out_at_an_overloaded_agent_is_not_counted():
    """The history says so, and not that no agent has begun it."""
    next_version = recovered(running(), report=OVERLOADED)
    assert only_step(next_version).counts == Counts(attempts=1, uncounted=1, overloaded=1)
    facts = {"agent": "bank", "fault": "late"}
    assert only_step(next_version).cause == Cause(Code.AGENT_OVERLOADED, facts)
    assert only_step(next_version).effect == InDoubt(key=KEY)
    assert (next_version.after.state, next_version.after.failures) == (Pending(), 0)
    expired = e.AttemptExpired(
        step="pay",
        attempt=1,
        agent="bank",
        threshold=2,
        has_begun=True,
        fault="late",
        is_overloaded=True,
    )
    assert next_version.events == (expired, e.Recovered())


@pytest.mark.proves("SUP-3")
@pytest.mark.parametrize("spared", [MAX_OVERLOADED_ATTEMPTS - 1, MAX_OVERLOADED_ATTEMPTS])
def test_so_many_time_outs_at_an_overloaded_agent_are_not_counted(spared):
    """Then they count as any other, so that the order ends too if its service hangs for all."""
    it = replace(running(), counts=Counts(attempts=1, overloaded=spared))
    next_version = recovered(it, report=OVERLOADED)
    assert next_version.after.failures == (spared == MAX_OVERLOADED_ATTEMPTS)
    assert only_step(next_version).counts.overloaded == MAX_OVERLOADED_ATTEMPTS
    assert next_version.events[0].is_overloaded is (spared < MAX_OVERLOADED_ATTEMPTS)


@pytest.mark.proves("SUP-3", "UND-2")
def test_a_step_that_times_out_at_an_overloaded_agent_is_undone_if_its_order_is():
    """It is not tried again, and no failure is counted."""
    next_version = recovered(running(), report=OVERLOADED, direction=Direction.UNDO)
    assert only_step(next_version).state == UndoPending(Waiting(retry_by=LATE + TIMEOUT))
    assert next_version.after.failures == 0
    assert next_version.events[0].failure is None


def test_the_pause_between_counted_attempts_grows():
    """SUP-3: the first retry has none, and so has a step that declares none."""
    assert isinstance(only_step(recovered(tried(0, threshold=9))).state, Waiting)
    for failures, most in ((1, TIMEOUT), (2, 2 * TIMEOUT), (3, 4 * TIMEOUT), (4, HOUR)):
        longest = most if most < HOUR else 5 * TIMEOUT
        before = tried(failures, threshold=9, max_retry_pause=longest)
        again = only_step(recovered(before)).state
        assert isinstance(again, Delayed)
        pause = again.until - LATE
        assert pause == retry_pause(failures + 1, timeout=TIMEOUT, longest=longest, request=REQUEST)
        assert again.retry_by == again.until + TIMEOUT
    at_once = only_step(recovered(tried(5, threshold=9, max_retry_pause=timedelta())))
    assert isinstance(at_once.state, Waiting)
    unknown = only_step(recovered(tried(2, threshold=3), report=NOT_BEGUN))
    assert isinstance(unknown.state, Waiting | BackingOff)


@pytest.mark.proves("SUP-3")
def test_a_first_attempt_without_a_reported_fault_is_not_counted():
    """Its reply may have come, and wait for a scheduler (load 1); a later attempt counts."""
    next_version = recovered(running(), report=NO_FAULT)
    first = only_step(next_version)
    assert first.counts == Counts(attempts=1, uncounted=1)
    assert first.cause == Cause(Code.TIMED_OUT, {"fault": ""})
    assert isinstance(first.effect, InDoubt)
    assert next_version.after.failures == 0
    expired = next_version.events[0]
    assert (expired.failure, expired.has_begun) == (None, True)
    second = replace(running(), counts=Counts(attempts=2))
    assert only_step(recovered(second, report=NO_FAULT)).counts == Counts(attempts=2, failures=1)


def unbegun(times, **rules):
    """A step that runs, after so many requests that no agent began."""
    counts = Counts(attempts=times + 1, uncounted=times, unbegun=times)
    return replace(running(**rules), counts=counts)


@pytest.mark.proves("SUP-9")
@pytest.mark.parametrize("on_failure", OnFailure)
def test_a_step_whose_requests_no_agent_begins_is_given_up_in_the_end(on_failure):
    """Its rule decides, except that nothing is undone: a dead agent says nothing of the order."""
    again = recovered(unbegun(MAX_UNBEGUN - 2, on_failure=on_failure), report=NOT_BEGUN)
    assert only_step(again).counts.unbegun == MAX_UNBEGUN - 1
    next_version = recovered(unbegun(MAX_UNBEGUN - 1, on_failure=on_failure), report=NOT_BEGUN)
    given_up = only_step(next_version)
    cause = Cause(Code.NO_AGENT_BEGAN, {"step": "pay", "agent": "bank", "attempts": MAX_UNBEGUN})
    assert given_up.cause == cause
    assert given_up.counts == Counts(attempts=MAX_UNBEGUN)
    assert isinstance(given_up.effect, InDoubt)
    assert next_version.after.failures == 0
    if on_failure is OnFailure.CONTINUE:
        assert given_up.state.reason is SkipReason.FAILED
        assert kinds(next_version)[1:] == [e.StepFailed, e.OptionalStepFailed, e.Recovered]
    else:
        assert next_version.after.state == InError(Outcome.FAILED)
        assert next_version.after.direction is Direction.FORWARD


@pytest.mark.proves("SUP-9")
def test_a_request_of_which_nothing_is_known_gives_no_step_up():
    """SUP-9: the reports could not be read; the bound may also have been higher before."""
    unknown = AttemptReport(is_known=False)
    after = only_step(recovered(unbegun(MAX_UNBEGUN), report=unknown))
    assert after.counts.unbegun == MAX_UNBEGUN
    assert isinstance(after.state, Waiting | BackingOff)


def test_a_step_whose_requests_no_agent_begins_cools_down_first():
    """Its count starts afresh, also that of requests that nobody began."""
    before = unbegun(MAX_UNBEGUN - 1, cooldown=HOUR, max_cooldowns=1)
    next_version = recovered(before, report=NOT_BEGUN)
    cooling = only_step(next_version)
    assert (cooling.state.until, cooling.counts) == (
        LATE + HOUR,
        Counts(attempts=MAX_UNBEGUN, cooldowns=1),
    )
    started = e.CooldownStarted(step="pay", number=1, most=1, until=LATE + HOUR)
    assert started in next_version.events


def test_an_answer_ends_the_count_of_requests_that_no_agent_began():
    """SUP-9: whoever says that it could not call is not silent."""
    before = unbegun(MAX_UNBEGUN - 1)
    turned_away = verbs.not_attempted(before, NOW, retry_after=timedelta())
    assert (turned_away.counts.unbegun, turned_away.counts.uncounted) == (0, MAX_UNBEGUN)
    assert only_step(recovered(before)).counts.unbegun == 0


def test_an_order_ends_when_its_step_reaches_the_threshold():
    """SUP-3: the history says why, and an operator decides."""
    next_version = recovered(tried(1))
    assert next_version.after.state == InError(Outcome.FAILED)
    assert next_version.after.cause == TWICE
    assert kinds(next_version) == [e.AttemptExpired, e.StepFailed, e.OrderEnded]
    assert next_version.messages == ()


def test_an_order_whose_failed_step_asks_for_the_undo_is_left_to_a_scheduler():
    """SUP-6; an operator decides if a gateway failed (SUP-3), or a pivot is passed (UND-6)."""
    done = step(Completed(), "a", effect=Done(key=KEY))
    awaited = external(AwaitingExternalEvent(LATE + HOUR))
    failing = tried(1, on_failure=OnFailure.UNDO)
    next_version = recovered(done, awaited, failing)
    after = next_version.after
    assert (after.state, after.direction, after.cause) == (Pending(), Direction.FORWARD, None)
    assert after.step("pay").state == Failed(TWICE)
    assert after.steps[:2] == (done, awaited)
    assert after.derived.complete_by is None
    assert kinds(next_version) == [e.AttemptExpired, e.StepFailed, e.Recovered]
    assert len(next_version.messages) == 1
    gateway = recovered(done, failing, report=GATEWAY)
    assert gateway.after.state == InError(Outcome.FAILED)
    pivot = step(Completed(), "a", effect=Done(key=KEY), pivot=True)
    assert recovered(pivot, failing).after.state == InError(Outcome.FAILED)


def test_a_step_cools_down_at_its_threshold_if_its_rule_says_so():
    """SUP-3."""
    next_version = recovered(tried(1, max_cooldowns=2, cooldown=HOUR))
    started = e.CooldownStarted(step="pay", number=1, most=2, until=LATE + HOUR)
    assert next_version.events[1] == started
    assert next_version.after.derived.not_before == LATE + HOUR


def test_an_order_goes_on_without_an_optional_step():
    """SCH-13."""
    next_version = recovered(tried(1, on_failure=OnFailure.CONTINUE))
    assert only_step(next_version).state.reason is SkipReason.FAILED
    assert kinds(next_version)[1:] == [e.StepFailed, e.OptionalStepFailed, e.Recovered]


def test_no_step_is_tried_again_after_a_failure_while_an_agent_has_another():
    """SCH-12: the order stays with its scheduler."""
    other = replace(running("b"), state=Running(LATE + HOUR))
    next_version = recovered(tried(1), tried(0, "c"), other)
    assert next_version.after.state == BY
    assert next_version.after.step("c").retry_by is None
    assert next_version.after.derived.complete_by == LATE + HOUR


def test_a_pending_order_stays_so():
    """Another step of it was recovered before; nobody takes it from a scheduler a second time."""
    next_version = recovered(running(), step(name="b"), state=Pending())
    assert next_version.after.state == Pending()
    assert kinds(next_version) == [e.AttemptExpired]


def test_an_external_event_that_does_not_come_counts_always():
    """ANS-2: no agent reports of it."""
    awaited = replace(external(AwaitingExternalEvent(NOW + TIMEOUT)), counts=Counts(attempts=1))
    next_version = recovered(awaited, report=AttemptReport())
    assert only_step(next_version).cause == Cause(Code.NO_EXTERNAL_EVENT)
    assert next_version.after.failures == 1
    once = recovered(replace(awaited, rules=replace(awaited.rules, threshold=1)))
    assert isinstance(only_step(once).state, Failed)
    assert kinds(once) == [e.AttemptExpired, e.StepFailed, e.OrderEnded]


def test_nobody_outside_is_left_waiting_for_an_order_that_ends():
    """SCH-12."""
    awaited = replace(external(AwaitingExternalEvent(LATE + HOUR)), counts=Counts(attempts=1))
    next_version = recovered(tried(1), awaited)
    assert isinstance(next_version.after.step("approve").state, RequestCancelled)
    assert e.ExternalRequestCancelled(step="approve", attempt=1) in next_version.events


def test_a_step_that_expires_while_its_order_turns_back_is_undone():
    """UND-2: the failure is in the history, and counts for nothing."""
    next_version = recovered(running(), direction=Direction.UNDO)
    undone = only_step(next_version)
    assert isinstance(undone.state, UndoPending)
    assert undone.effect == InDoubt(key=KEY)
    assert undone.counts == Counts(attempts=1)
    assert next_version.events[0].failure == 1


def test_the_undo_of_an_expired_step_waits_until_no_call_can_take_effect():
    """UND-2."""
    key = replace(KEY, effects_final_at=LATE + HOUR)
    next_version = recovered(running(key=key), direction=Direction.UNDO)
    assert only_step(next_version).state == UndoPending(
        LateEffectsPossible(LATE + HOUR, LATE + HOUR + TIMEOUT)
    )


def test_the_wake_up_names_the_steps_that_may_start_since_the_recovery():
    """SUP-3: an earlier wake-up has named the others."""
    (message,) = recovered(running(), step(name="b")).messages
    assert decode(OrderReady, message.body).steps == ("pay",)


@pytest.mark.parametrize("direction", Direction)
def test_a_failed_step_without_an_undo_never_stops_the_way_back(direction):
    """Only forward does a failure end the order at once."""
    failed = step(Failed(Cause(Code.REFUSED, {"detail": ""})), "a", undoable=False)
    after = recovered(failed, running(), direction=direction).after
    assert isinstance(after.state, Pending if direction is Direction.UNDO else InError)
