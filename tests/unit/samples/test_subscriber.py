"""What the example of a subscriber prints of each type of event."""

from datetime import timedelta

import pytest

from engine.alerts import events as alerts
from engine.alerts.conditions import StallFinding, found
from engine.domain.clocks import ClockSkew
from engine.words.alerts import event_in_words
from samples.subscriber import read_alerts
from tests.support.builders import NOW, refusal

WAITS = event_in_words(
    alerts.stalled(
        found(None, StallFinding(key="orders-waiting", reason=refusal("they wait"), since=NOW), NOW)
    )
)
CLOCK = event_in_words(alerts.clock_off("one", ClockSkew(by=timedelta(seconds=70), since=NOW)))


@pytest.mark.parametrize("event", [WAITS, CLOCK], ids=["condition", "clock"])
def test_everything_that_stands_still_is_printed_with_its_reason(event, capsys):
    """A clock that is off is no condition, and has neither status nor count."""
    read_alerts.handle(
        {"id": event.event_id, "type": event.type, "subject": event.subject, "data": event.data}
    )
    event_id, *_, what = capsys.readouterr().out.rstrip().split("\t")
    assert event_id == event.event_id
    assert event.data["reason"] in what
