"""Conversion of the SDK's messages into the trigger data that Azure passes to a Python function."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import SimpleNamespace

from azure.functions.meta import Datum
from azure.servicebus import ServiceBusReceivedMessage
from azure.servicebus.amqp import AmqpMessageBodyType

from functions_alone.host.bodies import Metadata, of_many, of_one

_Getter = Callable[[ServiceBusReceivedMessage], str | int | None]


def _time(value: datetime | None) -> str | None:
    return value.isoformat() if value else None


def _delivery_count(message: ServiceBusReceivedMessage) -> int:
    # On the wire the first delivery has 0; Azure's host shows 1.
    return (message.delivery_count or 0) + 1


_TEXTS: Mapping[str, _Getter] = {
    "ContentType": lambda m: m.content_type,
    "CorrelationId": lambda m: m.correlation_id,
    "DeadLetterSource": lambda m: m.dead_letter_source,
    "Label": lambda m: m.subject,
    "LockToken": lambda m: str(m.lock_token),
    "MessageId": lambda m: m.message_id,
    "PartitionKey": lambda m: m.partition_key,
    "ReplyTo": lambda m: m.reply_to,
    "ReplyToSessionId": lambda m: m.reply_to_session_id,
    "SessionId": lambda m: m.session_id,
    "Subject": lambda m: m.subject,
    "To": lambda m: m.to,
}
_TIMES: Mapping[str, _Getter] = {
    "EnqueuedTimeUtc": lambda m: _time(m.enqueued_time_utc),
    "ExpiresAtUtc": lambda m: _time(m.expires_at_utc),
    "LockedUntil": lambda m: _time(m.locked_until_utc),
}
_NUMBERS: Mapping[str, _Getter] = {
    "DeliveryCount": _delivery_count,
    "EnqueuedSequenceNumber": lambda m: m.enqueued_sequence_number,
    "SequenceNumber": lambda m: m.sequence_number,
}


def single(
    messages: Sequence[ServiceBusReceivedMessage], *, binary: bool
) -> tuple[Datum, Metadata]:
    """Return the body and the metadata of the only message."""
    [message] = messages
    metadata = {
        n: Datum(v, "string")
        for n, get in {**_TEXTS, **_TIMES}.items()
        if (v := get(message)) is not None
    }
    metadata |= {
        n: Datum(v, "int") for n, get in _NUMBERS.items() if (v := get(message)) is not None
    }
    properties = Datum(json.dumps(_properties(message)), "json")
    metadata["ApplicationProperties"] = metadata["UserProperties"] = properties
    return of_one(_body(message), metadata, binary=binary)


def many(messages: Sequence[ServiceBusReceivedMessage], *, binary: bool) -> tuple[Datum, Metadata]:
    """Return the bodies and the metadata of a batch: an array for each property.

    As in Azure's host, empty texts are left out of their arrays, so the texts of later messages move up.
    """
    metadata: dict[str, Datum] = {}
    for name, get in _TEXTS.items():
        texts = SimpleNamespace(string=[text for message in messages if (text := get(message))])
        metadata[f"{name}Array"] = Datum(texts, "collection_string")
    for name, get in _TIMES.items():
        metadata[f"{name}Array"] = Datum(json.dumps([get(message) for message in messages]), "json")
    for name, get in _NUMBERS.items():
        numbers = SimpleNamespace(sint64=[get(message) for message in messages])
        metadata[f"{name}Array"] = Datum(numbers, "collection_sint64")
    properties = Datum(json.dumps([_properties(message) for message in messages]), "json")
    metadata["ApplicationPropertiesArray"] = metadata["UserPropertiesArray"] = properties
    return of_many([_body(message) for message in messages], binary=binary), metadata


def _properties(message: ServiceBusReceivedMessage) -> dict[str, object]:
    return {
        str(_text(key)): _plain(value)
        for key, value in (message.application_properties or {}).items()
    }


def _text(value: object) -> object:
    return value.decode() if isinstance(value, bytes) else value


def _plain(value: object) -> object:
    """Convert a property's value for JSON. A value that JSON lacks becomes its text."""
    text = _text(value)
    return text if isinstance(text, str | int | float | bool | None) else str(text)


def _body(message: ServiceBusReceivedMessage) -> bytes:
    """Return the body for a function.

    Raises `ValueError` for other kinds of bodies, as Azure's extension does.
    """
    if message.body_type == AmqpMessageBodyType.DATA:
        return b"".join(message.body)
    if message.body_type == AmqpMessageBodyType.VALUE and isinstance(message.body, str | bytes):
        return message.body.encode() if isinstance(message.body, str) else message.body
    raise ValueError("no function can be given a body that is neither data nor a text")
