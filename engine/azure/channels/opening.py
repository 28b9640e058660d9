"""The channels of a deployment, as its settings configure them."""

from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from engine.alerts.channels import ChannelName
from engine.alerts.digests import Digest
from engine.azure.channels.addresses import smtp_server
from engine.azure.channels.mail import MailChannel
from engine.azure.channels.settings import ChannelSettings
from engine.azure.channels.slack import slack_body
from engine.azure.channels.smtp import SmtpChannel
from engine.azure.channels.teams import teams_body
from engine.azure.channels.webhook import WebhookChannel
from engine.azure.clock import utc_now
from engine.azure.connections import Connections
from engine.ports import Channel

BODIES: Mapping[ChannelName, Callable[[Digest], bytes]] = {
    ChannelName.TEAMS: teams_body,
    ChannelName.SLACK: slack_body,
}


def open_channels(settings: ChannelSettings, pool: Connections) -> Mapping[str, Channel]:
    """Make the configured channels, by name. Nothing connects before a channel sends.

    Closing the pool closes their connections, too.
    """
    return {name: _channel(name, settings, pool) for name in settings.on}


def _channel(name: ChannelName, settings: ChannelSettings, pool: Connections) -> Channel:
    if name is ChannelName.MAIL:
        return MailChannel(
            host=urlsplit(settings.value_of("MAIL_ENDPOINT")).hostname or "",
            client=lambda: pool.email,
            sender=settings.value_of("MAIL_SENDER"),
            recipients=settings.recipients,
            clock=utc_now,
        )
    if name is ChannelName.SMTP:
        return SmtpChannel(
            server=smtp_server(settings.value_of("SMTP_URL")),
            sender=settings.value_of("SMTP_SENDER"),
            recipients=settings.recipients,
        )
    return WebhookChannel(
        name=name,
        url=settings.value_of(f"{name.upper()}_WEBHOOK_URL"),
        body=BODIES[name],
        session=lambda: pool.http,
        clock=utc_now,
    )
