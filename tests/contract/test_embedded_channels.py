"""The channels of the embedded run: what the adapters send, its stand-ins take, and their faults mean what Azure's would."""

from datetime import timedelta
from functools import partial

import pytest

from development.settings import app_settings
from engine.azure.channels.opening import open_channels
from engine.azure.connections import Connections
from engine.azure.settings import Settings
from engine.domain.errors import ChannelAwayError, ChannelRefusedError
from engine.words.digests import subject_of
from functions_alone.channels import application
from functions_alone.inbox import ChannelFault, ChannelInbox, Mode, StandInChannel
from functions_alone.mail_server import MailServer
from functions_alone.ports import Ports
from functions_alone.site import Site
from shop.business import SHOP
from tests.support.apps import SETTINGS
from tests.support.digests import DIGEST_ID, digest


@pytest.fixture
async def inbox():
    return ChannelInbox()


@pytest.fixture
async def channels(inbox):
    """The channels with the settings of the embedded run."""
    ports = Ports.free()
    settings = Settings.model_validate(app_settings(ports, "k", "k", SHOP.agents))
    stand_ins = [
        Site(ports.channels_port, partial(application, inbox)),
        MailServer(ports.smtp_port, inbox),
    ]
    pool = Connections(SETTINGS)
    for stand_in in stand_ins:
        await stand_in.start()
    yield open_channels(settings.channels, pool)
    await pool.close()
    for stand_in in stand_ins:
        await stand_in.stop()


async def test_every_channel_with_a_stand_in_is_on_and_its_message_arrives(channels, inbox):
    """Mail is recognised by the id of its digest."""
    assert set(channels) == set(StandInChannel)
    for channel in channels.values():
        await channel.send(digest())
    received = {message.channel: message for message in inbox.messages}
    assert set(received) == set(StandInChannel)
    for message in received.values():
        assert message.subject == subject_of(digest())
        assert digest().entries[0].about in message.text
    assert DIGEST_ID in received[StandInChannel.SMTP].id


@pytest.mark.parametrize("name", StandInChannel)
@pytest.mark.parametrize(
    ("mode", "error"),
    [
        (Mode.THROTTLE, ChannelAwayError),
        (Mode.CUT, ChannelAwayError),
        (Mode.REFUSE, ChannelRefusedError),
    ],
)
async def test_a_fault_is_what_it_is_called(channels, inbox, name, mode, error):
    """Only a refusal is final; a webhook says how long to wait."""
    inbox.set_fault(name, ChannelFault(mode=mode, retryAfter=7))
    with pytest.raises(error) as raised:
        await channels[name].send(digest())
    if mode is Mode.THROTTLE and name is not StandInChannel.SMTP:
        assert raised.value.retry_after == timedelta(seconds=7)
