"""An erasure takes who the customer is out of the records, and moves nothing of the order."""

from dataclasses import replace

import pytest

from engine.storage.archive import ArchivedOrder
from operations.api.requests import OperatorRequest
from operations.api.retention import erase, is_over
from tests.support.builders import (
    NOW,
    PAYLOAD,
    claimed,
    index_rows,
    orders,
    scheduler,
    seconds,
    steps,
    supervisor,
)

REQUEST = OperatorRequest(operator="grace", note="asked for it")
DAY = seconds(86_400)
STANDS = {
    "pending": orders.new(),
    "waits for a time": orders.pending(steps=[steps.scheduled(at=NOW + seconds(60))]),
    "handled": claimed(),
    "waits for a retry": supervisor.recover(claimed(), NOW + seconds(7)).after,
    "in error": orders.in_error(),
    "processed": orders.processed(),
}


@pytest.mark.proves("OPR-1", "SCH-11", "ALR-1")
@pytest.mark.parametrize("how", STANDS)
def test_an_erasure_leaves_an_order_where_it_was(how):
    """Its place in the queue and in the list of errors, its age and its last change (engine 29f)."""
    order = STANDS[how]
    change = erase(order, REQUEST, PAYLOAD, NOW + DAY)
    after = replace(change.after, submitted=order.submitted)
    assert after == orders.having(order, version=order.version + 1)
    assert index_rows(change.after).keys() == index_rows(order).keys()
    assert change.messages == ()
    assert "Ada" not in str(change.after)


@pytest.mark.proves("OPR-1")
def test_an_erasure_does_not_make_retention_wait():
    """What has ended is kept from its end on (engine 29f)."""
    after = erase(STANDS["processed"], REQUEST, PAYLOAD, NOW + DAY).after
    kept = ArchivedOrder(order_id=after.order_id, record=after, keys=())
    assert is_over(kept, since=NOW + seconds(1))
    assert not is_over(kept, since=NOW)


@pytest.mark.proves("SCH-2")
def test_an_order_that_was_erased_goes_on_as_before():
    """It is claimed when it would have been."""
    after = erase(orders.new(), REQUEST, PAYLOAD, NOW + seconds(1)).after
    assert scheduler.claim(after, NOW + seconds(2)).after.process_state == "Processing"
