"""When a condition is new, has changed, has ended, and is the same one again."""

from dataclasses import replace

import pytest

from engine.alerts.conditions import (
    INTERVAL,
    MAX_ORDERS,
    REOPENED_WITHIN,
    Condition,
    ConditionStatus,
    StallFinding,
    found,
    gone,
    joined,
)
from tests.support.builders import NOW, refusal, seconds

A_BIT = seconds(0.001)
FINDING = StallFinding(
    key="agents/payment", reason=refusal("why"), since=NOW - seconds(90), count=3
)
NEW = found(None, FINDING, NOW)
ENDED = replace(NEW, status=ConditionStatus.RESOLVED, revision=2, reported=2)


def test_what_is_found_first_is_a_new_condition():
    """Since it began; its event is still to be reported."""
    assert (
        Condition(
            key="agents/payment",
            reason=refusal("why"),
            since=NOW - seconds(90),
            first=NOW,
            last=NOW,
            count=3,
            status=ConditionStatus.NEW,
            revision=1,
            raised_at=NOW,
            reported=0,
        )
        == NEW
    )
    assert NEW.is_open


@pytest.mark.parametrize(
    ("count", "after", "revision"),
    [(3, 10 * INTERVAL, 1), (4, INTERVAL - A_BIT, 1), (4, INTERVAL, 2)],
)
def test_a_condition_whose_count_changes_raises_an_event_once_in_an_interval(
    count, after, revision
):
    """The row has the latest count, time, reason and orders in any case."""
    latest = replace(FINDING, count=count, orders=("b03-1",), reason=refusal("another"))
    seen = found(NEW, latest, NOW + after)
    assert (seen.revision, seen.count, seen.last) == (revision, count, NOW + after)
    assert (seen.orders, seen.reason, seen.first) == (("b03-1",), refusal("another"), NEW.first)
    changed = revision > 1
    assert seen.status is (ConditionStatus.CHANGED if changed else ConditionStatus.NEW)
    assert seen.raised_at == (NOW + after if changed else NOW)


@pytest.mark.parametrize(
    ("after", "is_same"), [(REOPENED_WITHIN, True), (REOPENED_WITHIN + A_BIT, False)]
)
def test_a_condition_that_comes_back_soon_is_the_same_one(after, is_same):
    """Later it is a new one, with an alert of its own."""
    back = replace(FINDING, since=NOW + after)
    seen = found(ENDED, back, NOW + after)
    assert seen.is_open
    assert (seen.alert_id == NEW.alert_id, seen.revision) == (is_same, 3 if is_same else 1)


@pytest.mark.proves("ALR-4")
def test_a_condition_that_is_gone_ends_with_one_event():
    """And its row is kept until it could not come back as the same one, and is reported."""
    ended = gone(NEW, NOW + A_BIT)
    assert (ended.status, ended.revision) == (ConditionStatus.RESOLVED, 2)
    assert (ended.last, ended.raised_at) == (NOW + A_BIT, NOW + A_BIT)
    assert gone(ended, ended.last + REOPENED_WITHIN) == ended
    assert gone(ended, ended.last + 2 * REOPENED_WITHIN) == ended
    assert gone(replace(ended, reported=2), ended.last + REOPENED_WITHIN) is not None
    assert gone(replace(ended, reported=2), ended.last + REOPENED_WITHIN + A_BIT) is None


def test_findings_of_several_buckets_are_one():
    """The counts add up; the orders that wait longest are named."""
    early = replace(FINDING, since=NOW - seconds(100), count=5, orders=tuple("abcd"))
    late = replace(FINDING, count=2, orders=tuple("ef"))
    one = joined([late, early])
    assert (one.since, one.count, one.orders) == (early.since, 7, tuple("abcde"))
    assert len(one.orders) == MAX_ORDERS


@pytest.mark.proves("SUP-7")
def test_a_condition_that_comes_back_late_is_another_alert_though_it_lasts_since_the_same_time():
    """The log would drop its event as a repeat, such as of an order that still waits."""
    late = NOW + REOPENED_WITHIN + A_BIT
    again = found(ENDED, FINDING, late)
    assert again.since == NEW.since
    assert again.alert_id != NEW.alert_id
    assert found(None, FINDING, late).alert_id == again.alert_id
