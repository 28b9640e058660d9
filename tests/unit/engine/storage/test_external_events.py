"""What is kept of external events alone."""

from datetime import timedelta

import pytest

from engine.domain.errors import TooManyTriesError
from engine.storage.external_events import MOST_ORDERS, MOST_TRIES, WrongTries
from tests.support.builders import NOW


def test_wrong_tries_are_counted_for_so_many_orders_and_no_more():
    """The order that was counted longest ago is forgotten first."""
    now = [NOW]
    tries = WrongTries(clock=lambda: now[0])
    for _ in range(MOST_TRIES):
        tries.add("first")
    with pytest.raises(TooManyTriesError):
        tries.check("first")
    for number in range(MOST_ORDERS):
        tries.add(str(number))
    tries.check("first")
    assert len(tries._times) == MOST_ORDERS
    for passed in range(MOST_TRIES):
        now[0] = NOW + timedelta(minutes=passed * 5)
        tries.add("slow")
    tries.check("slow")
