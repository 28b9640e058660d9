"""Decides to which channels an alert is sent."""

from collections.abc import Collection, Sequence

from engine.alerts.channels import ChannelRule, Severity
from engine.decisions.transitions import OperatorEvent
from engine.domain.causes import code_in


def channels_of(
    rules: Sequence[ChannelRule],
    configured: Collection[str],
    event: OperatorEvent,
    *,
    needs_action: bool,
) -> list[str]:
    """Return the configured channels that an alert is sent to, in the order of `configured`.

    Without any rule, each alert that needs an action is sent to all channels.
    """
    if not rules:
        return list(configured) if needs_action else []
    fitting = (rule for rule in rules if needs_action or rule.severity is Severity.INFO)
    chosen = {rule.channel for rule in fitting if _chooses(rule, event)}
    return [channel for channel in configured if channel in chosen]


def _chooses(rule: ChannelRule, event: OperatorEvent) -> bool:
    if rule.types and event.type not in rule.types:
        return False
    # An agent or the supervisor serves all workflows: its alert may not get lost between the rules.
    workflow, cause = (str(event.data.get(name) or "") for name in ("workflow", "cause"))
    if rule.workflows and workflow and workflow not in rule.workflows:
        return False
    return not (rule.causes and cause and code_in(cause) not in rule.causes)
