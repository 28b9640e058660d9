"""The two SDKs for Python spoken to in one way, so that one test shows what both do."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import azure.servicebus
import azure.servicebus.aio
from azure.servicebus import ServiceBusReceivedMessage


class Awaited:
    """A link of the synchronous SDK, awaited like one of the other: each call runs in a thread."""

    def __init__(self, link: Any) -> None:
        self.link = link

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.link, name)
        return lambda *arguments, **options: asyncio.to_thread(method, *arguments, **options)

    async def __aenter__(self) -> "Awaited":
        await asyncio.to_thread(self.link.__enter__)
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self.link.close)

    async def __aiter__(self) -> AsyncIterator[ServiceBusReceivedMessage]:
        while (message := await asyncio.to_thread(next, self.link, None)) is not None:
            yield message


class SyncClient:
    """A client of the synchronous SDK whose links are awaited."""

    def __init__(self, connection_string: str, **options: Any) -> None:
        self._client = azure.servicebus.ServiceBusClient.from_connection_string(
            connection_string, **options
        )

    def __getattr__(self, name: str) -> Any:
        open_link = getattr(self._client, name)
        return lambda *arguments, **options: Awaited(open_link(*arguments, **options))

    async def __aenter__(self) -> "SyncClient":
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self._client.close)


CLIENTS: dict[str, Any] = {
    "aio": azure.servicebus.aio.ServiceBusClient.from_connection_string,
    "sync": SyncClient,
}


@asynccontextmanager
async def renewed_locks(
    receiver: Any, messages: Iterable[ServiceBusReceivedMessage]
) -> AsyncIterator[None]:
    """Have the SDK's `AutoLockRenewer` renew the locks of these messages."""
    if isinstance(receiver, Awaited):
        renewer = azure.servicebus.AutoLockRenewer()
        try:
            for message in messages:
                renewer.register(receiver.link, message)
            yield
        finally:
            # Without waiting for its threads: they share a connection, and one may for ever wait for an answer that
            # another one has read, until the connection is closed.
            renewer.close(wait=False)
        return
    async with azure.servicebus.aio.AutoLockRenewer() as renewer:
        for message in messages:
            renewer.register(receiver, message)
        yield
