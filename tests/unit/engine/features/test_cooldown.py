"""The end of a cooldown by an operator (OPR-8)."""

import pytest

from engine.domain.effects import UndoInDoubt
from engine.domain.states import BackingOff, CoolingDown, UndoPending, Waiting
from engine.domain.verbs import InvalidTransitionError
from engine.features.cooldown import end_cooldown, is_cooling_down
from tests.support.engine_records import HOUR, KEY, NOT_BEGUN, NOW, TIMED_OUT, in_doubt, step

LATER = NOW + HOUR
COOLING = CoolingDown(LATER, TIMED_OUT, retry_by=LATER)


def test_a_cooldown_ends_when_the_order_is_expedited():
    """The step may start now; why it failed, and by when it is tried, stay."""
    cooling = in_doubt(COOLING)
    assert is_cooling_down(cooling)
    assert end_cooldown(cooling).state == Waiting(TIMED_OUT, retry_by=LATER)


def test_the_cooldown_of_an_undo_ends_too():
    """Engine 23."""
    cooling = step(UndoPending(COOLING), effect=UndoInDoubt(key=KEY))
    assert is_cooling_down(cooling)
    assert end_cooldown(cooling).state == UndoPending(Waiting(TIMED_OUT, retry_by=LATER))


def test_other_waits_stay():
    """A pause is no cooldown."""
    pausing = in_doubt(BackingOff(LATER, NOT_BEGUN))
    assert not is_cooling_down(pausing)
    with pytest.raises(InvalidTransitionError):
        end_cooldown(pausing)
