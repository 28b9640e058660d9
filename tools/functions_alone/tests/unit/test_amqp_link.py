"""What the host's link does with frames that only other brokers send."""

from unittest.mock import AsyncMock, MagicMock

from azure.servicebus._pyamqp._encode import encode_payload
from azure.servicebus._pyamqp.aio._receiver_async import ReceiverLink
from azure.servicebus._pyamqp.message import Message

from functions_alone.host.amqp_link import Link


async def test_undecodable_message_of_several_frames_is_abandoned_alone():
    """The next message is decoded without what was left of it (real-behaviour.md P1)."""
    received, errors = AsyncMock(return_value=None), []
    handler, receiver = MagicMock(settle_messages_async=AsyncMock()), AsyncMock()
    handler._link = ReceiverLink(
        MagicMock(), 0, "queue", on_transfer=received, network_trace=False, network_trace_params={}
    )
    receiver._handler = handler
    await Link(receiver, on_undecodable=errors.append).open()
    good = bytes(encode_payload(bytearray(), Message(data=[b"good"])))
    await handler._link._incoming_transfer(transfer(0, b"tag 0", b"\x00\x53\x75", more=True))
    await handler._link._incoming_transfer(transfer(None, None, b"\x73bad", more=False))
    await handler._link._incoming_transfer(transfer(1, b"tag 1", good, more=False))
    handler.settle_messages_async.assert_awaited_once_with(
        0, b"tag 0", "modified", delivery_failed=True
    )
    assert len(errors) == 1
    assert [list(call.args[1].data) for call in received.await_args_list] == [[b"good"]]


def transfer(delivery_id, tag, payload, *, more):
    """Return the fields of a transfer, in the order of the standard, and its payload."""
    return [
        0,
        delivery_id,
        tag,
        0,
        False,
        more,
        None,
        None,
        False,
        False,
        False,
        memoryview(payload),
    ]
