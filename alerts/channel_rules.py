"""Which channels an alert is sent to."""

from collections.abc import Collection, Sequence

from core.channels import ChannelRule, Severity


def channels_of(
    rules: Sequence[ChannelRule],
    configured: Collection[str],
    *,
    needs_action: bool,
    alert_type: str,
    workflow: str,
) -> list[str]:
    """Return the configured channels that an alert is sent to, in the order of `configured`.

    `workflow` is empty for an alert about no order. Without any rule, each alert that needs an
    action is sent to all channels.
    """
    if not rules:
        return list(configured) if needs_action else []
    chosen = {rule.channel for rule in rules if _chooses(rule, needs_action, alert_type, workflow)}
    return [channel for channel in configured if channel in chosen]


def _chooses(rule: ChannelRule, needs_action: bool, alert_type: str, workflow: str) -> bool:  # noqa: FBT001 - see its caller
    if not needs_action and rule.severity is Severity.ACTION:
        return False
    if rule.types and alert_type not in rule.types:
        return False
    # An agent or the supervisor serves all workflows: its alert may not get lost between the rules.
    return not (rule.workflows and workflow and workflow not in rule.workflows)
