"""Which channels an alert is sent to."""

import pytest

from engine.alerts.channels import ChannelName, ChannelRule, Severity
from engine.decisions.transitions import OperatorEvent
from operations.alerts.channel_rules import channels_of
from tests.support.builders import NOW

CONFIGURED = ["mail", "teams", "slack"]
MAIL, TEAMS, SLACK, SMTP = (
    ChannelName.MAIL, ChannelName.TEAMS, ChannelName.SLACK, ChannelName.SMTP
)  # fmt: skip
STALLED = ChannelRule(channel=TEAMS, types=("OrderProcessing.Stalled",))
OF_TRIPS = ChannelRule(channel=SLACK, workflows=("trip", "order"))
INFORMED = ChannelRule(channel=MAIL, severity=Severity.INFO)


def event(alert_type, data):
    return OperatorEvent(event_id="e", type=alert_type, subject="s", at=NOW, data=data)


@pytest.mark.parametrize(
    ("rules", "needs_action", "alert_type", "workflow", "chosen"),
    [
        ([], True, "OrderProcessing.Stalled", "", CONFIGURED),
        ([], False, "OrderProcessing.Stalled", "", []),
        ([ChannelRule(channel=SLACK)], True, "any", "order", ["slack"]),
        ([ChannelRule(channel=SLACK)], False, "any", "order", []),
        ([INFORMED], False, "any", "order", ["mail"]),
        ([INFORMED], True, "any", "order", ["mail"]),
        ([STALLED], True, "OrderProcessing.Stalled", "order", ["teams"]),
        ([STALLED], True, "OrderProcessing.OrderFailed", "order", []),
        ([OF_TRIPS], True, "any", "order", ["slack"]),
        ([OF_TRIPS], True, "any", "claim", []),
        ([OF_TRIPS], True, "any", "", ["slack"]),
        ([OF_TRIPS, STALLED, INFORMED], True, "OrderProcessing.Stalled", "trip", CONFIGURED),
        ([STALLED, ChannelRule(channel=TEAMS, workflows=("claim",))], True, "any", "claim", ["teams"]),
        ([ChannelRule(channel=SMTP)], True, "any", "order", []),
    ],
)  # fmt: skip
def test_an_alert_is_sent_to_the_channels_whose_rule_it_meets(
    rules, needs_action, alert_type, workflow, chosen
):
    """One rule of a channel is enough, and all conditions of it must hold; an alert about no order meets any workflow."""
    alert = event(alert_type, {"workflow": workflow} if workflow else {})
    assert channels_of(rules, CONFIGURED, alert, needs_action=needs_action) == chosen


@pytest.mark.parametrize(
    ("cause", "chosen"),
    [
        ("refused: card declined", ["slack"]),
        ("refused", ["slack"]),
        ("refused-otherwise", []),
        ("timed-out: refused", []),
        (None, ["slack"]),
    ],
)
def test_a_rule_chooses_alerts_by_the_codes_of_their_causes(cause, chosen):
    """Whatever the service's own word is; an alert without a cause meets any."""
    rules = [ChannelRule(channel=SLACK, causes=("refused", "cancelled"))]
    alert = event("any", {"cause": cause})
    assert channels_of(rules, CONFIGURED, alert, needs_action=True) == chosen
