"""Services at which a slow call may still take effect after its undo (UND-2)."""

from dataclasses import replace
from datetime import timedelta

from engine.domain.effects import Done, InDoubt
from engine.domain.states import UndoPending, Waiting
from engine.features.late_effects import effects_final_at
from tests.support.engine_records import HOUR, KEY, NOW, TIMEOUT, step

TOLERANCE = timedelta(seconds=1)
LATE = replace(KEY, effects_final_at=NOW + 2 * HOUR)


def test_an_attempt_may_take_effect_until_its_window_has_passed():
    """From the end of its time by any clock; an earlier attempt may take effect even later."""
    expected = NOW + TIMEOUT + TOLERANCE + HOUR
    assert effects_final_at(step(late_effect_window=HOUR), NOW, TOLERANCE) == expected
    earlier = step(Waiting(), effect=InDoubt(key=LATE), late_effect_window=HOUR)
    assert effects_final_at(earlier, NOW, TOLERANCE) == NOW + 2 * HOUR
    assert effects_final_at(earlier, NOW + 2 * HOUR, TOLERANCE) == expected + 2 * HOUR


def test_a_service_that_refuses_undone_keys_has_no_such_time():
    """Nothing has to wait."""
    assert effects_final_at(step(), NOW, TOLERANCE) is None


def test_an_attempt_to_undo_changes_nothing():
    """It takes back what was done before."""
    back = step(UndoPending(), effect=Done(key=LATE), late_effect_window=HOUR)
    assert effects_final_at(back, NOW + 2 * HOUR, TOLERANCE) == NOW + 2 * HOUR
    never = step(UndoPending(), effect=Done(key=KEY), late_effect_window=HOUR)
    assert effects_final_at(never, NOW, TOLERANCE) is None
