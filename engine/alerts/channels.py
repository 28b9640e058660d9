"""The channels to people, and the rules that select them."""

from dataclasses import dataclass
from enum import StrEnum

from pydantic import ConfigDict


class ChannelName(StrEnum):
    """The name of a channel in settings, rows and logs."""

    MAIL = "mail"
    """Mail through Azure Communication Services."""
    TEAMS = "teams"
    SLACK = "slack"
    SMTP = "smtp"
    """Mail through an SMTP server of the operators."""


class Severity(StrEnum):
    """The minimum severity of the alerts that a rule selects."""

    ACTION = "action"
    """An operator has to act."""
    INFO = "info"
    """All alerts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelRule:
    """A rule that sends the alerts which meet all of its conditions to one channel."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # a misspelt condition would choose too much

    channel: ChannelName
    severity: Severity = Severity.ACTION
    types: tuple[str, ...] = ()
    """The types of alerts, such as `OrderProcessing.Stalled`, or empty for all."""
    workflows: tuple[str, ...] = ()
    """The workflows of the orders, or empty for all. An alert about no order always meets this
    condition."""
    causes: tuple[str, ...] = ()
    """The codes of causes, such as `refused`, or empty for all. An alert without a cause always
    meets this condition."""
