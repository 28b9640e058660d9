"""The words of alerts and notices, also of those that a newer version of the app has recorded."""

import json

import pytest

from engine.alerts.events import STALLED, notice_given_up
from engine.decisions.transitions import OperatorEvent
from engine.domain.messages import BusMessage
from engine.words.alerts import event_in_words, notice_in_words
from tests.support.builders import NOW, ORDER_ID

NEWER = {"code": "melted", "facts": {"detail": "too warm"}}


def event(**data):
    return OperatorEvent(event_id="e1", type=STALLED, subject="x", at=NOW, data=data)


def test_an_alert_says_what_to_do_with_the_facts_of_its_cause():
    said = event_in_words(notice_given_up(ORDER_ID, "status-x", "gone", NOW)).data
    (advice,) = said["actions"]
    assert "status-x" in advice
    assert {"status-x", "gone"} <= set(said["reason"].replace(":", "").split())


@pytest.mark.parametrize(
    ("newer", "said"),
    [
        (
            {"reason": NEWER, "actions": ["repair-queue"]},  # without the queue that it names
            {"reason": "melted: too warm", "actions": ["repair-queue"]},
        ),
        (
            {"reason": NEWER, "actions": ["cool-down"]},
            {"reason": "melted: too warm", "actions": ["cool-down"]},
        ),
        ({"reason": NEWER}, {"reason": "melted: too warm", "actions": []}),
        ({"reason": {"code": "melted"}, "actions": ["x"]},) * 2,
        ({"reason": "in words", "actions": ["in words too"]},) * 2,
    ],
)
def test_an_alert_of_another_version_goes_out(newer, said):
    """One that cannot be put into words would hold up all others of its bucket (FLT-12)."""
    assert event_in_words(event(**newer)).data == said


@pytest.mark.parametrize(
    ("newer", "said"), [(NEWER, "melted: too warm"), ({"code": "melted"},) * 2, (None, None)]
)
def test_a_notice_of_another_version_goes_out(newer, said):
    """As alerts do (FLT-12)."""
    notice = BusMessage(
        queue="q", message_id="m", correlation_id=ORDER_ID, body=json.dumps({"reason": newer})
    )
    assert json.loads(notice_in_words(notice).body) == {"reason": said}
