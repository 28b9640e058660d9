"""The channels to people, and the rules that choose them."""

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
    """Mail through a server of one's own."""


class Severity(StrEnum):
    """The least severity of the alerts that a rule chooses."""

    ACTION = "action"
    """An operator has to act."""
    INFO = "info"
    """Any alert."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelRule:
    """Sends the alerts that meet all of its conditions to one channel."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # a misspelt condition would choose too much

    channel: ChannelName
    severity: Severity = Severity.ACTION
    types: tuple[str, ...] = ()
    """The types of alerts, such as `OrderProcessing.Stalled`; empty for all."""
    workflows: tuple[str, ...] = ()
    """The workflows of the orders; empty for all. Alerts about no order meet it always."""
    causes: tuple[str, ...] = ()
    """The codes of causes, such as `refused`; empty for all. Alerts without one meet it always."""
