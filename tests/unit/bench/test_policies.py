"""The comparison of the admission policies, with few orders."""

import pytest

from bench.policies import Scenario, measure
from scheduler.admission.adaptive import AdaptiveLimit
from scheduler.admission.policy import FixedLimit

ORDERS = 60
TOO_MUCH = Scenario(name="too much", declared=100, at_a_time=2, takes=1, timeout=15)


@pytest.mark.parametrize("policy", [FixedLimit(), AdaptiveLimit()], ids=["fixed", "adaptive"])
@pytest.mark.parametrize("processes", [1, 2])
def test_each_order_takes_one_attempt_where_the_service_works_as_declared(policy, processes):
    """Under either policy."""
    scenario = Scenario(name="as declared", declared=10, at_a_time=10, processes=processes)
    measured = measure(scenario, policy, ORDERS)
    assert (measured.attempts, measured.failures) == (ORDERS, 0)


@pytest.mark.soak
@pytest.mark.proves("AGT-10", "WRK-2")
def test_where_too_much_is_declared_the_adaptive_policy_needs_fewer_attempts():
    """The fixed limit sends what the agent cannot begin in time."""
    fixed, adaptive = (
        measure(TOO_MUCH, policy, ORDERS) for policy in (FixedLimit(), AdaptiveLimit())
    )
    assert adaptive.attempts < fixed.attempts
    assert adaptive.seconds <= fixed.seconds
