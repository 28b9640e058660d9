"""The row keys of the work index by themselves."""

import pytest

from engine.domain.keys import sortable
from engine.domain.states import BackingOff, Scheduled
from engine.domain.work_index import IndexRow, first_need, may_be_claimed, was_announced
from tests.support.engine_records import HOUR, NOT_BEGUN, NOW, external, in_doubt, order, step

LATER = NOW + HOUR
READY = IndexRow(key="!pending|1|bank|2026-01-31T09:15:00.000000Z|b00-1", order_id="b00-1")
CHOSEN = IndexRow(key="!pending|1|bank|later|2026-01-31T09:15:00.000000Z|b00-1", order_id="b00-1")


def test_a_claim_waits_for_a_chosen_time_and_for_no_foreign_clock():
    """Engine 24: a place in the future was written by a host whose clock is ahead."""
    assert may_be_claimed(READY, NOW)
    assert not may_be_claimed(CHOSEN, NOW)
    assert may_be_claimed(CHOSEN, LATER)


def test_the_first_step_by_its_turn_names_the_need_of_a_wake_up():
    """SUP-3: an external step comes before one of an agent, and what may start before what waits."""
    bank, carrier = step(name="a"), step(name="b", capability="carrier")
    assert first_need(order(bank, carrier), NOW) == "bank"
    assert first_need(order(bank, carrier, external()), NOW) == "-"
    later = step(Scheduled(LATER), "a")
    assert first_need(order(later, carrier), NOW) == "carrier"
    pausing = in_doubt(BackingOff(LATER, NOT_BEGUN), name="a")
    assert first_need(order(pausing, carrier), NOW) == "carrier"
    assert first_need(order(), NOW) == "-"


@pytest.mark.parametrize(("place", "announced"), [(sortable(NOW), True), ("later", False)])
def test_nobody_has_announced_an_order_for_a_chosen_time(place, announced):
    """Whatever else its row has."""
    time = f"|{sortable(NOW)}" if place == "later" else ""
    key = f"!pending|1|bank|{place}{time}|b00-1"
    row = IndexRow(key=key, order_id="b00-1", data={"ProcessState": "Pending"})
    assert was_announced(row) is announced
