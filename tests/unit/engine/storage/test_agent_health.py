"""What the health rows say: who is overloaded (AGT-8, SUP-3), who is silent, and until when (SUP-10)."""

from datetime import timedelta
from functools import partial

import pytest

from engine.storage.agent_health import (
    FORM,
    LONGEST_PROBE_PAUSE,
    OPERATOR,
    OVERLOAD_ORDERS,
    SHORTEST_PROBE_PAUSE,
    SILENCE,
    AgentHealth,
    AttemptFault,
    is_overloaded,
    is_overruled,
    requests_from,
    silence_of,
    unresponsive_since,
)
from tests.support.builders import NOW, TIMEOUT, seconds

OWN = "b00-1:pay:1:do"


def row(*times, agent="bank", instance="1", **names):
    """A row of an agent whose calls timed out for these requests, so many seconds after `NOW`."""
    requests = names.get("requests") or tuple(f"b00-{number}:pay:1:do" for number in range(1, 9))
    fault = AttemptFault(
        text="late",
        requests=requests[: len(times)],
        timed_out_at=tuple(NOW + seconds(time) for time in times),
    )
    return AgentHealth(agent=agent, instance=instance, at=NOW, faults=(fault,))


def elsewhere(*requests, **more):
    return row(*[0] * len(requests), requests=requests, instance="2", **more)


OTHERS = ("b00-2:pay:1:do", "b00-3:pay:1:do")
OVERLOADS = {
    "three orders at once": ([row(0, 0, 0)], True),
    "two orders": ([row(0, 0)], False),
    "within a timeout of this one": ([row(0, TIMEOUT.total_seconds(), -5)], True),
    "one of them later": ([row(0, 0, TIMEOUT.total_seconds() + 1)], False),
    "one of them before": ([row(0, 0, -TIMEOUT.total_seconds() - 1)], False),
    "at two instances": ([row(0), elsewhere(*OTHERS)], True),
    "at another agent": ([row(0), elsewhere(*OTHERS, agent="post")], False),
    "attempts of one order": ([row(0), elsewhere("b00-1:pay:2:do", "b00-1:ship:1:do")], False),
    "steps and undos of other orders": (
        [row(0), elsewhere("b00-2:ship:1:do", "b00-3:pay:4:undo")],
        True,
    ),
    "not this one": ([elsewhere(*OTHERS, "b00-4:pay:1:do")], False),
    "no report": ([], False),
}


@pytest.mark.proves("AGT-8", "SUP-3")
@pytest.mark.parametrize("name", OVERLOADS)
def test_an_agent_is_overloaded_if_its_calls_time_out_for_several_orders(name):
    """Around the time at which this attempt timed out, and at all instances together."""
    health, expected = OVERLOADS[name]
    assert OVERLOAD_ORDERS == 3
    assert is_overloaded(health, "bank", OWN, TIMEOUT) is expected


@pytest.mark.proves("SUP-3")
def test_a_fault_that_is_no_time_out_says_nothing_of_an_overload():
    """Nor does the answer of a gateway at one of two instances."""
    others = elsewhere(*OTHERS, "b00-4:pay:1:do")
    answered = AttemptFault(text="503", requests=(OWN,))
    health = AgentHealth(agent="bank", instance="1", at=NOW, faults=(answered,))
    assert not is_overloaded([health, others], "bank", OWN, TIMEOUT)
    gateway = AttemptFault(text="404", by_gateway=True, requests=(OWN,))
    turned_away = AgentHealth(agent="bank", instance="3", at=NOW, faults=(gateway,))
    assert not is_overloaded([row(0, 0, 0), turned_away], "bank", OWN, TIMEOUT)


@pytest.mark.proves("FLT-12")
def test_rows_of_versions_before_can_be_read():
    """Their faults are no time-outs; what is none has no time in a row either."""
    health = AgentHealth(
        agent="bank",
        instance="1",
        at=NOW,
        faults=(AttemptFault(text="503", requests=(OWN,)),),
    )
    columns = FORM.columns(health)
    assert "TimedOutAt" not in columns["Faults"]
    assert FORM.record(columns) == health


def test_a_row_holds_the_times_in_few_characters():
    """There may be hundreds in one column."""
    health = row(0, 3600, 7200)
    columns = FORM.columns(health)
    assert FORM.record(columns) == health
    without = FORM.columns(
        AgentHealth(
            agent="bank",
            instance="1",
            at=NOW,
            faults=(AttemptFault(text="late", requests=health.faults[0].requests),),
        )
    )
    more = len(columns["Faults"]) - len(without["Faults"])
    assert more < 60
    assert timedelta(hours=2) == health.faults[0].timed_out_at[-1] - NOW


# Silence

report = partial(AgentHealth, agent="payment", instance="a", at=NOW)


def silence(since, at=NOW, agent="payment", instance="supervisor"):
    return AgentHealth(agent=agent, instance=instance, at=at, unresponsive_since=since)


def pause(until, at=NOW):
    return AgentHealth(
        agent="payment", instance=OPERATOR, at=at, paused_until=until, paused_by="grace"
    )


@pytest.mark.proves("SUP-10")
@pytest.mark.parametrize(
    ("silent", "expected"),
    [
        (seconds(0), SHORTEST_PROBE_PAUSE),
        (seconds(3), SHORTEST_PROBE_PAUSE),
        (seconds(62), seconds(15.5)),
        (seconds(400), seconds(100)),
        (seconds(480), LONGEST_PROBE_PAUSE),
        (timedelta(days=3), LONGEST_PROBE_PAUSE),
    ],
)
def test_the_pause_before_the_next_probe_grows_with_the_silence(silent, expected):
    """It follows from the two times of the record: no process remembers anything."""
    assert silence(NOW - silent).next_probe == NOW + expected


@pytest.mark.proves("SUP-10")
def test_a_report_has_no_next_probe():
    """Only a silent agent is probed."""
    assert report().next_probe is None


@pytest.mark.proves("SUP-9")
def test_the_record_of_a_silent_agent_outlasts_the_longest_time_between_two_findings():
    """While orders wait: a pause, an attempt of the longest time, a sweep and a poll."""
    longest_attempt, sweep, poll = timedelta(minutes=4.5), seconds(60), seconds(30)
    assert LONGEST_PROBE_PAUSE + longest_attempt + sweep + poll < SILENCE


@pytest.mark.proves("SUP-10")
def test_the_last_finding_counts():
    """A former one may not have been removed; one of another agent, or an old one, is no finding."""
    newest = silence(NOW - seconds(60), NOW - seconds(5))
    rows = [
        silence(NOW - seconds(60), NOW - seconds(50), instance="another"),
        newest,
        silence(NOW - seconds(90), NOW, agent="shipping"),
        silence(NOW - 2 * SILENCE, NOW - SILENCE, instance="former"),
    ]
    assert silence_of(rows, "payment", NOW) == newest
    assert unresponsive_since(rows, "payment", NOW) == NOW - seconds(60)
    assert silence_of(rows, "inventory", NOW) is None


@pytest.mark.proves("SUP-10", "OPR-9")
@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param(report(), True, id="the agent has reported since"),
        pytest.param(report(at=NOW - seconds(60)), True, id="it reported at that moment"),
        pytest.param(report(at=NOW - seconds(61)), False, id="it reported before"),
        pytest.param(report(agent="shipping"), False, id="another agent has reported"),
        pytest.param(pause(NOW + seconds(60)), True, id="an operator pauses it"),
        pytest.param(pause(NOW - seconds(9), NOW - seconds(90)), True, id="a pause ended since"),
        pytest.param(pause(NOW - seconds(60), NOW - seconds(90)), False, id="a pause ended before"),
    ],
)
def test_what_ends_a_silence(row, expected):
    """An agent that an operator pauses gets nothing: that is no silence."""
    found = silence(NOW - seconds(60))
    assert is_overruled(found, [found, row]) is expected
    assert (silence_of([found, row], "payment", NOW) is None) is expected


def test_a_report_is_overruled_by_nothing():
    """There is no silence that it could be about."""
    assert not is_overruled(report(), [report(instance="b")])


@pytest.mark.proves("SUP-10", "AGT-8")
def test_when_an_agent_gets_requests_again():
    """When its circuit closes, or the pause of a silent agent is over; now, if it is neither."""
    opened = report(open_until=NOW + seconds(9))
    assert requests_from([opened], "payment", NOW) == NOW + seconds(9)
    found = silence(NOW - seconds(60))
    assert requests_from([found], "payment", NOW) == NOW + seconds(15)
    assert requests_from([found], "payment", NOW + seconds(15)) is None
    assert requests_from([found, report()], "payment", NOW) is None
    assert requests_from([], "payment", NOW) is None
