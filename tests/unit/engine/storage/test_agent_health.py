"""What the health rows of agents say (AGT-8, SUP-3)."""

from datetime import timedelta

import pytest

from engine.storage.agent_health import (
    FORM,
    OVERLOAD_ORDERS,
    AgentHealth,
    AttemptFault,
    is_overloaded,
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
