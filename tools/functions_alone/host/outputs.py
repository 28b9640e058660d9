"""Queue outputs: the values that a function sets are sent when it has returned, as in Azure."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import azure.functions as func
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.functions.meta import Datum
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient
from azure.storage.queue.aio import QueueClient

from functions_alone.host.index import RETURNED, Output

Produced = Mapping[str, Datum]
"""The values of a function's outputs, by the output's name."""


class Out(func.Out[Any]):
    """The parameter with which a function sets an output."""

    def __init__(self) -> None:
        self._value: Any = None

    def set(self, val: Any) -> None:
        """Set the value that is sent when the function returns."""
        self._value = val

    def get(self) -> Any:
        """Return the value that was set, or None."""
        return self._value


def produced(outputs: Sequence[Output], given: Mapping[str, Out], result: object) -> Produced:
    """Return the values to send. An output without a value sends nothing."""
    values = {
        output: result if output.name == RETURNED else given[output.name].get()
        for output in outputs
    }
    registry = func.get_binding_registry()
    return {
        output.name: registry.get(output.type).encode(value, expected_type=None)
        for output, value in values.items()
        if value is not None
    }


async def send(outputs: Sequence[Output], values: Produced, *, in_base64: bool) -> None:
    """Send everything. Raises the SDKs' errors.

    A Storage Queue that does not exist is made.
    """
    for output in outputs:
        if output.name not in values:
            continue
        messages = _messages(values[output.name])
        if output.type == "queue":
            await _to_storage_queue(output, messages, in_base64=in_base64)
        else:
            await _to_service_bus(output, messages)


def _messages(datum: Datum) -> Sequence[bytes]:
    """Return the messages of an output. Several messages come as a JSON array."""
    if datum.type != "json":
        return [datum.value if isinstance(datum.value, bytes) else str(datum.value).encode()]
    content = json.loads(datum.value)
    every = content if isinstance(content, list) else [content]
    return [
        str(message["body"] if isinstance(message, dict) else message).encode() for message in every
    ]


async def _to_storage_queue(output: Output, messages: Sequence[bytes], *, in_base64: bool) -> None:
    async with QueueClient.from_connection_string(output.connection, output.queue) as queue:
        for message in messages:
            text = base64.b64encode(message).decode() if in_base64 else message.decode()
            try:
                await queue.send_message(text)
            except ResourceNotFoundError:
                await _make(queue)
                await queue.send_message(text)


async def _make(queue: QueueClient) -> None:
    try:
        await queue.create_queue()
    except ResourceExistsError:
        return  # another was faster


async def _to_service_bus(output: Output, messages: Sequence[bytes]) -> None:
    async with (
        ServiceBusClient.from_connection_string(output.connection) as client,
        client.get_queue_sender(output.queue) as sender,
    ):
        await sender.send_messages([ServiceBusMessage(message) for message in messages])
