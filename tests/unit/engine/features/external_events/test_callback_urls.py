"""The tokens of callback URLs."""

import pytest

from engine.domain.errors import InvalidCallbackUrlError
from engine.domain.states import AwaitingExternalEvent
from engine.features.external_events.callback_urls import step_of
from engine.features.external_events.steps import with_callback_token
from tests.support.engine_records import NOW, TIMEOUT, external, order


@pytest.mark.proves("ANS-6")
def test_a_right_that_no_text_can_hold_is_a_wrong_one():
    """Half a character comes from a hostile sender only."""
    awaited = external(AwaitingExternalEvent(NOW + TIMEOUT))
    waiting = order(with_callback_token(awaited, "r"))
    assert step_of(waiting, "approve", "r").name == "approve"
    for wrong in ("\ud800", "", "R"):
        with pytest.raises(InvalidCallbackUrlError):
            step_of(waiting, "approve", wrong)
