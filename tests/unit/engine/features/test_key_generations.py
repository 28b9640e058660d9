"""How long an idempotency key counts, and the next one (AGT-3, AGT-12)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from engine.domain.effects import Done, InDoubt, NotDone, UndoInDoubt
from engine.domain.states import Completed, Failed, Undoing, UndoPending, Waiting
from engine.domain.steps import Counts
from engine.features.key_generations import (
    is_forgotten,
    is_undone_by_key,
    known_until,
    retry_with_new_key,
)
from tests.support.engine_records import DECLINED, HOUR, KEY, NOW, TIMEOUT, external, step

FIRST = "first"
DAY = timedelta(days=1)
LATER = NOW + HOUR
KNOWN = replace(KEY, known_until=LATER)
SOON = LATER - TIMEOUT
"""An attempt that starts now may end when the key is forgotten."""


def test_a_step_is_done_again_under_its_next_key():
    """AGT-12: no provider knows that key, so any may do the step; it starts afresh."""
    failed = step(
        Failed(DECLINED), effect=InDoubt(key=KNOWN), counts=Counts(attempts=2, failures=1)
    )
    again = retry_with_new_key(replace(failed, callback_token=FIRST))
    assert again.state == Waiting()
    assert again.effect == NotDone(key=replace(KNOWN, generation=1, provider=None))
    assert (again.counts, again.callback_token) == (Counts(attempts=2), None)


def test_an_external_step_has_no_key():
    """Nothing was sent."""
    with pytest.raises(ValueError, match="approve"):
        retry_with_new_key(external(Failed(DECLINED)))


@pytest.mark.parametrize(
    ("state", "effect"),
    [
        (Waiting(), InDoubt(key=KNOWN)),
        (UndoPending(), UndoInDoubt(key=KNOWN, result={"reference": "r"})),
        (UndoPending(), Done(key=KNOWN, result={})),
        (Undoing(LATER), Done(key=KNOWN, result={"reference": None})),
    ],
)
def test_what_needs_a_key_that_may_be_forgotten_is_not_requested(state, effect):
    """A step in doubt, and an undo of which nothing is kept: the service knows it by the key alone."""
    needs = step(state, effect=effect)
    assert is_forgotten(needs, SOON)
    assert not is_forgotten(needs, SOON - TIMEOUT)


@pytest.mark.parametrize(
    ("state", "effect"),
    [
        (Waiting(), NotDone(key=KNOWN)),
        (Completed(), Done(key=KNOWN)),
        (UndoPending(), Done(key=KNOWN, result={"reference": "r"})),
        (Waiting(), InDoubt(key=KEY)),
    ],
)
def test_what_needs_no_key_or_one_that_lasts_is_requested(state, effect):
    """It was certainly not done, its result names it, or the service never forgets."""
    assert not is_forgotten(step(state, effect=effect), SOON)


def test_a_step_that_was_never_tried_has_no_key_to_forget():
    """Its first attempt brings the key there."""
    assert not is_forgotten(step(), LATER)
    assert not is_undone_by_key(step())


def test_a_key_counts_from_the_attempt_that_may_have_brought_it_there():
    """The service has had it since the first one whose outcome is unknown."""
    assert known_until(step(), DAY, NOW) == NOW + DAY
    assert known_until(step(), None, NOW) is None
    assert known_until(step(effect=NotDone(key=KNOWN)), DAY, NOW) == NOW + DAY
    assert known_until(step(effect=InDoubt(key=KNOWN)), DAY, NOW) == LATER
    assert known_until(step(effect=InDoubt(key=KEY)), DAY, NOW) is None


def test_the_key_of_an_undo_counts_since_the_step_was_done_if_nothing_is_kept():
    """AGT-12; where certainly nothing was done there is no such time, and the undo brings the key."""
    by_key = step(UndoPending(), effect=Done(key=KNOWN, result={}))
    assert known_until(by_key, DAY, NOW) == LATER
    kept = step(UndoPending(), effect=Done(key=KNOWN, result={"reference": "r"}))
    assert known_until(kept, DAY, NOW) == NOW + DAY
    nothing = step(UndoPending(), effect=NotDone(key=KEY))
    assert known_until(nothing, DAY, NOW) == NOW + DAY
