"""What operators may do."""

import pytest
from builders import NOW, claimed, failed_for_good, new_order, scheduler

from core.errors import RefusedError
from core.orders import ProcessState, StepState
from operators.rules import OperatorRequest, full_view, resubmit

REQUEST = OperatorRequest(operator="grace", note="the provider is back")


@pytest.mark.proves("OPR-3", "OPR-6")
def test_a_resubmitted_order_goes_on_from_the_failed_step_with_a_fresh_count():
    """Counts start afresh, attempts go on, and the history says who did it and why; all in the state itself."""
    order, now = failed_for_good()
    change = resubmit(order, REQUEST, now)
    state, step = change.after.state, change.after.step("payment")
    assert (state.process_state, state.failure_count, state.reason, state.outcome) == (
        ProcessState.PENDING,
        0,
        None,
        None,
    )
    assert (step.state, step.failure_count, step.attempts) == (StepState.NOT_STARTED, 0, 3)
    assert (change.entry.actor, change.entry.detail) == ("operator/grace", "the provider is back")
    assert scheduler.claim(change.after, now).after.step("payment").attempts == 4


@pytest.mark.proves("OPR-3")
@pytest.mark.parametrize("order", [new_order(), claimed()], ids=["pending", "processing"])
def test_only_an_order_in_error_can_be_resubmitted(order):
    """Anything else is refused with the reason."""
    with pytest.raises(RefusedError, match=f"the order is {order.state.process_state}"):
        resubmit(order, REQUEST, NOW)


@pytest.mark.proves("OPR-1")
def test_the_full_view_shows_the_documented_properties_and_no_personal_data():
    """Null stands where a documented property has no value; the customer is not shown."""
    view = full_view(new_order(), [])
    assert {name: view[name] for name in ("lockedBy", "completeBy", "processState", "failureCount")} == {
        "lockedBy": None,
        "completeBy": None,
        "processState": "Pending",
        "failureCount": 0,
    }
    assert "ada" not in str(view).lower()
