"""Which agent is asked next, where another provider would not know the idempotency key."""

from dataclasses import replace

import pytest

from engine.decisions.transitions import NotClaimed
from engine.domain.attempts import NotAttemptedReason
from engine.domain.statuses import NotClaimable
from tests.support.builders import NOW, PROVIDERS, answer, claimed, orders, scheduler, timed_out
from tests.support.builders import supervisor as recovery

BOTH = {"payment": ("payment", "payment-backup")}
BACKUP = {"payment": ("payment-backup",)}
APART = replace(scheduler, providers={**PROVIDERS, "payment-backup": "another"})


def put_back(how):
    """An order whose first attempt, at `payment`, has come to nothing, and when that was seen."""
    order = claimed()
    if how == "expired":
        now = timed_out(order)
        return recovery.recover(order, now).after, now
    waiting = scheduler.receive(
        order,
        answer(outcome="notAttempted", detail="open", reason=NotAttemptedReason.CIRCUIT_OPEN),
        NOW,
        {},
    ).after
    return waiting, waiting.derived.not_before


@pytest.mark.proves("AGT-3")
@pytest.mark.parametrize("how", ["expired", "not tried"])
def test_what_was_ever_tried_waits_for_its_own_provider(how):
    """A request that the agent says was not tried may have been delivered twice, and done."""
    order, now = put_back(how)
    assert APART.claim(order, now, BACKUP) == NotClaimed(why=NotClaimable.NO_CAPACITY_AT_ITS_OWN)
    assert APART.claim(order, now, BOTH).after.step("payment").agent == "payment"


@pytest.mark.parametrize("how", ["expired", "not tried"])
def test_what_was_tried_goes_to_another_agent_of_the_same_provider(how):
    """It knows the same idempotency keys."""
    order, now = put_back(how)
    assert scheduler.claim(order, now, BACKUP).after.step("payment").agent == "payment-backup"


def test_what_was_never_tried_goes_to_any_provider():
    """Nobody knows its key yet."""
    assert APART.claim(orders.new(), NOW, BACKUP).after.step("payment").agent == "payment-backup"
