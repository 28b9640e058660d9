"""The settings of the channels to people. A channel is on if its settings are present."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SecretStr
from pydantic_core import from_json
from pydantic_settings import BaseSettings, NoDecode

from engine.alerts.channels import ChannelName, ChannelRule
from engine.alerts.events import TYPES
from engine.azure.agent_settings import UNRESOLVED
from engine.azure.channels.addresses import (
    MOST_RECIPIENTS,
    addresses_in,
    is_mail_address,
    smtp_server,
)
from engine.declarations.faults import Fault, FaultCode
from engine.domain.causes import FACTS
from engine.urls import is_private

EXPECTED = {
    "MAIL_ENDPOINT": (
        "the address of a communication service, such as https://NAME.communication.azure.com"
    ),
    "MAIL_SENDER": "a sender of the domain that is linked with the communication service",
    "ALERT_RECIPIENTS": "mail addresses, separated by commas",
    "SMTP_URL": "the address of a mail server, such as smtps://USER:PASSWORD@HOST:465",
    "SMTP_SENDER": "the address from which the mail server sends mail",
    "ALERT_RULES": (
        'JSON such as [{"channel": "slack", "severity": "info", "types": '
        '["OrderProcessing.Stalled"], "workflows": ["order"]}]'
    ),
    "ALERT_INTERVAL_SECONDS": "the shortest time between two messages to a channel, in seconds",
}
NEEDED = {
    ChannelName.MAIL: ("MAIL_ENDPOINT", "MAIL_SENDER", "ALERT_RECIPIENTS"),
    ChannelName.TEAMS: ("TEAMS_WEBHOOK_URL",),
    ChannelName.SLACK: ("SLACK_WEBHOOK_URL",),
    ChannelName.SMTP: ("SMTP_URL", "SMTP_SENDER", "ALERT_RECIPIENTS"),
}
SHARED = "ALERT_RECIPIENTS"
"""A setting that two channels share. It does not switch on either of them."""
DAY_SECONDS = 86_400


def _decoded(value: Any) -> Any:
    """Decode JSON text. pydantic-settings' own decoding reports no fault."""
    return from_json(value) if isinstance(value, str) else value


class ChannelSettings(BaseSettings):
    """The settings of the channels."""

    mail_endpoint: (
        Annotated[str, Field(pattern=r"^https://[A-Za-z0-9.-]+(:[0-9]{1,5})?/?$")] | None
    ) = Field(None, alias="MAIL_ENDPOINT")
    """The address of the Azure communication service.

    The app's identity needs the right to send mail with this service.
    """
    mail_sender: str | None = Field(None, alias="MAIL_SENDER")
    """The address from which the communication service sends mail."""
    alert_recipients: SecretStr | None = Field(None, alias="ALERT_RECIPIENTS")
    """The addresses to which both mail channels send, separated by commas."""
    teams_webhook_url: SecretStr | None = Field(None, alias="TEAMS_WEBHOOK_URL")
    """The address of a Teams workflow. Anyone who knows the address can post."""
    slack_webhook_url: SecretStr | None = Field(None, alias="SLACK_WEBHOOK_URL")
    """The address of an incoming webhook of Slack. Anyone who knows the address can post."""
    smtp_url: SecretStr | None = Field(None, alias="SMTP_URL")
    """The address of a mail server, such as `smtps://USER:PASSWORD@HOST:465`."""
    smtp_sender: str | None = Field(None, alias="SMTP_SENDER")
    """The address from which this mail server sends mail."""
    alert_rules: Annotated[list[ChannelRule], NoDecode, BeforeValidator(_decoded)] = Field(
        default_factory=list, alias="ALERT_RULES"
    )
    """Rules that choose the channels of an alert.

    Without rules, each alert that needs an action goes to all channels.
    """
    alert_interval_seconds: Annotated[float, Field(gt=0, le=DAY_SECONDS)] = Field(
        600, alias="ALERT_INTERVAL_SECONDS"
    )
    """The shortest time between two digests to a channel."""

    @property
    def recipients(self) -> Sequence[str]:
        """The recipients of both mail channels, each once."""
        return list(dict.fromkeys(addresses_in(self.value_of(SHARED))))

    @property
    def on(self) -> Sequence[ChannelName]:
        """The channels whose settings are all present."""
        return [name for name, needed in NEEDED.items() if all(map(self.value_of, needed))]

    def value_of(self, setting: str) -> str:
        """Return the value of a setting. Empty if it is not set."""
        value = getattr(self, setting.lower())
        return value.get_secret_value() if isinstance(value, SecretStr) else value or ""


def channel_faults(settings: ChannelSettings) -> Iterator[Fault]:
    """Yield the faults of the channels' settings. No fault contains the value of a secret."""
    yield from _incomplete(settings)
    yield from _rule_faults(settings)
    for name in dict.fromkeys(name for needed in NEEDED.values() for name in needed):
        value = settings.value_of(name)
        if value.startswith(UNRESOLVED):
            yield Fault(FaultCode.KEY_VAULT_UNRESOLVED, name)
        elif value:
            yield from _value_faults(name, value)


def _incomplete(settings: ChannelSettings) -> Iterator[Fault]:
    """Yield a fault for each setting that a channel lacks although it has others."""
    missing: dict[str, ChannelName] = {}
    for channel, needed in NEEDED.items():
        unset = [name for name in needed if not settings.value_of(name)]
        if set(needed) - {*unset, SHARED}:
            missing = dict.fromkeys(unset, channel) | missing
    for name, channel in missing.items():
        yield Fault(FaultCode.CHANNEL_INCOMPLETE, name, channel=channel, expected=EXPECTED[name])


def _rule_faults(settings: ChannelSettings) -> Iterator[Fault]:
    """Yield a fault for each part of a rule that can never match."""
    rules = settings.alert_rules
    for channel in dict.fromkeys(rule.channel for rule in rules):
        # One that is on in part has a fault of its own.
        if not any(settings.value_of(name) for name in NEEDED[channel] if name != SHARED):
            yield Fault(FaultCode.RULE_CHANNEL_OFF, "ALERT_RULES", channel=channel)
    for kind in dict.fromkeys(kind for rule in rules for kind in rule.types):
        if kind not in TYPES:
            yield Fault(FaultCode.RULE_UNKNOWN_TYPE, "ALERT_RULES", type=kind, types=TYPES)
    for cause in dict.fromkeys(cause for rule in rules for cause in rule.causes):
        if cause not in FACTS:
            yield Fault(FaultCode.RULE_UNKNOWN_CAUSE, "ALERT_RULES", cause=cause)


def _value_faults(name: str, value: str) -> Iterator[Fault]:
    if name.endswith("_WEBHOOK_URL") and not is_private(value):
        yield Fault(FaultCode.NOT_HTTPS, name)
    if name == "SMTP_URL" and not _is_smtp_url(value):
        yield Fault(FaultCode.SMTP_URL_INVALID, name)
    if name.endswith("_SENDER") and not is_mail_address(value):
        yield Fault(FaultCode.MAIL_ADDRESS_INVALID, name, position=1)
    if name == SHARED:
        yield from _recipient_faults(addresses_in(value) or [""])


def _recipient_faults(addresses: Sequence[str]) -> Iterator[Fault]:
    for position, address in enumerate(addresses, start=1):
        if not is_mail_address(address):
            yield Fault(FaultCode.MAIL_ADDRESS_INVALID, SHARED, position=position)
    if len(addresses) > MOST_RECIPIENTS:
        count, limit = len(addresses), MOST_RECIPIENTS
        yield Fault(FaultCode.TOO_MANY_RECIPIENTS, SHARED, count=count, limit=limit)


def _is_smtp_url(value: str) -> bool:
    try:
        smtp_server(value)
    except ValueError:
        return False
    return True
