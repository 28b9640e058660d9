"""What the SDK for .NET, and with it Azure's functions host, needs from the broker, shown without .NET.

`dotnet.json` holds what that SDK was seen to send.
"""

import json

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus._pyamqp.outcomes import Rejected
from azure.servicebus._pyamqp.performatives import DispositionFrame, SASLInit
from azure.servicebus._pyamqp.sasl import SASLAnonymousCredential

from functions_alone.tests.support.amqp_wire import (
    AMQP_HEADER,
    ATTACH,
    BEGIN,
    DETACH,
    DISPOSITION,
    FLOW,
    OPEN,
    SASL_FRAME,
    SASL_HEADER,
    SASL_MECHANISMS,
    SASL_OUTCOME,
    SETTLED,
    TRANSFER,
    attach_receiver,
    attach_sender,
    connected,
    credit,
)
from functions_alone.tests.support.broker_process import opened
from functions_alone.tests.support.places import TOOLS

DOTNET = json.loads((TOOLS.parent / "tests/data/azure_host/dotnet.json").read_text())
ADDRESSES = DOTNET["addresses"]
SASL_OK = 0
ATTACH_SOURCE, ATTACH_TARGET = 5, 6
FLOW_COUNT, FLOW_CREDIT = 5, 6
TRANSFER_DELIVERY_ID = 1


@pytest.fixture
async def wire(broker):
    """An open connection with a session, but no link."""
    async with connected(broker.port) as wire:
        await wire.start(AMQP_HEADER)
        wire.send(OPEN, BEGIN)
        yield wire


async def test_sasl_mechanism_of_dotnet_is_accepted(broker):
    """The broker offers MSSBCBS beside ANONYMOUS, and accepts it (dotnet.md 1)."""
    async with connected(broker.port) as wire:
        await wire.start(SASL_HEADER)
        [offered] = (await wire.receive_until(SASL_MECHANISMS))[-1].fields
        mechanism = DOTNET["saslMechanism"].encode()
        wire.send(SASLInit(mechanism, b"", "localhost"), kind=SASL_FRAME)
        outcome = (await wire.receive_until(SASL_OUTCOME))[-1]
        await wire.start(AMQP_HEADER)
    assert sorted(offered) == [b"ANONYMOUS", mechanism]
    assert outcome.fields[0] == SASL_OK


async def test_client_that_knows_that_mechanism_alone_can_work(broker, monkeypatch):
    """A client sends and receives after SASL with MSSBCBS (dotnet.md 1)."""
    monkeypatch.setattr(SASLAnonymousCredential, "mechanism", DOTNET["saslMechanism"].encode())
    async with broker.connect(retry_total=0) as client:
        await send_and_complete(
            client.get_queue_sender("plain"), client.get_queue_receiver("plain")
        )


async def test_address_with_a_leading_slash_names_the_queue(broker):
    """Links to /q send and receive, and a lock is renewed over /q/$management (dotnet.md 2)."""
    async with broker.connect(retry_total=0) as client:
        sender, receiver = client.get_queue_sender("plain"), client.get_queue_receiver("plain")
        # The SDK for Python has no leading slash by itself.
        sender._entity_uri = receiver._entity_uri = ADDRESSES["queue"].format(queue="plain")
        receiver._mgmt_target = ADDRESSES["management"].format(queue="plain")
        await send_and_complete(sender, receiver)


async def send_and_complete(sender, receiver):
    """Use what a function app uses: a link that sends, one that receives, and the renewal of a lock."""
    async with opened(sender, receiver):
        await sender.send_messages(ServiceBusMessage("from .NET"))
        [message] = await receiver.receive_messages(1, max_wait_time=10)
        await receiver.renew_message_lock(message)
        await receiver.complete_message(message)
    assert str(message) == "from .NET"


async def test_address_with_a_leading_slash_names_the_dead_letter_queue(wire, plain):
    """A receiver of /q/$DeadLetterQueue gets the dead letters (dotnet.md 2)."""
    await plain.send("dead")
    [message] = await plain.receive()
    await plain.receiver.dead_letter_message(message)
    address = ADDRESSES["deadLetterQueue"].format(queue="plain")
    wire.send(attach_receiver(address, SETTLED), credit(1))
    assert (await wire.receive_until(TRANSFER))[-1].code == TRANSFER


@pytest.mark.parametrize(
    ("attach", "missing", "condition"),
    [
        pytest.param(attach_receiver("/none"), ATTACH_SOURCE, b"amqp:not-found", id="receiver"),
        pytest.param(attach_sender("/none"), ATTACH_TARGET, b"amqp:not-found", id="sender"),
        pytest.param(
            attach_sender("/plain/$DeadLetterQueue"),
            ATTACH_TARGET,
            b"amqp:not-allowed",
            id="sender to a dead-letter queue",
        ),
    ],
)
async def test_refused_attach_is_answered_without_the_terminus(wire, attach, missing, condition):
    """The answer to a refused attach has no source or target, and a detach with the error follows (dotnet.md 3).

    An empty terminus would be a link that is open: the SDK for .NET would lose the refusal.
    """
    wire.send(attach)
    frames = [frame for frame in await wire.receive_until(DETACH) if frame.code >= ATTACH]
    assert [frame.code for frame in frames] == [ATTACH, DETACH]
    assert frames[0].fields[missing] is None
    _handle, closed, error = frames[1].fields
    assert (closed, error[0]) == (True, condition)


async def test_accepted_attach_is_answered_with_both_ends(wire):
    """Only a refusal lacks a source or a target: the answer repeats the addresses of the attach."""
    wire.send(attach_receiver("/plain"))
    answer = (await wire.receive_until(ATTACH))[-1].fields
    assert [answer[end][0] for end in (ATTACH_SOURCE, ATTACH_TARGET)] == [b"/plain", b"mine"]


async def test_dead_lettering_without_an_error_keeps_the_connection(wire, plain):
    """A rejected outcome whose error is null dead-letters the message; other links live on (dotnet.md 4)."""
    await plain.send("dead")
    wire.send(attach_receiver("plain"), credit(1))
    delivery = (await wire.receive_until(TRANSFER))[-1].fields[TRANSFER_DELIVERY_ID]
    wire.send(DispositionFrame(True, delivery, None, False, Rejected(error=None), None))
    await wire.receive_until(DISPOSITION)
    dead = await plain.receive_dead()
    await plain.dead_letters.complete_message(dead)
    assert (str(dead), dead.dead_letter_reason) == ("dead", None)


async def test_drain_is_answered_when_messages_use_up_all_credit(wire, plain):
    """The flow follows the messages, so that a client that closes need not wait for 60 s (dotnet.md 5)."""
    await plain.send("1", "2", "3")
    wire.send(attach_receiver("plain", SETTLED), credit(2, drain=True))
    *frames, flow = await wire.receive_until(FLOW)
    await plain.complete(*await plain.receive())
    assert [frame.code for frame in frames].count(TRANSFER) == 2
    assert (flow.fields[FLOW_COUNT], flow.fields[FLOW_CREDIT]) == (2, 0)
