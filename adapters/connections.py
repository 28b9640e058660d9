"""The SDK clients: each is made when it is first needed, kept for the life of the process, and closed at its end."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import cached_property
from typing import Any

import aiohttp
from azure.core.credentials import AzureKeyCredential
from azure.core.credentials_async import AsyncTokenCredential
from azure.core.pipeline.transport import AioHttpTransport, AsyncHttpTransport
from azure.data.tables.aio import TableClient, TableServiceClient
from azure.eventgrid.aio import EventGridPublisherClient
from azure.identity.aio import DefaultAzureCredential
from azure.servicebus.aio import ServiceBusClient
from azure.storage.blob.aio import BlobServiceClient, ContainerClient
from azure.storage.queue.aio import QueueClient, QueueServiceClient

from adapters.settings import Settings

CONNECT_SECONDS = 5
READ_SECONDS = 10
RETRIES = 2
"""Few and short: our handlers try again by themselves, and an outage should show soon."""
STORAGE_RETRIES = {"retry_total": RETRIES, "initial_backoff": 1, "increment_base": 2}


def http_transport() -> AioHttpTransport:
    """Return the pool of HTTP connections that all clients share.

    Without the proxy variables of the environment: looking them up takes a thread for every request, which was a fifth
    of all the CPU time that an order cost.
    """
    return AioHttpTransport(connection_timeout=CONNECT_SECONDS, read_timeout=READ_SECONDS, use_env_settings=False)


class Connections:
    """All clients of one process. Nothing here does I/O until a client is used."""

    def __init__(
        self, settings: Settings, transport: Callable[[], AsyncHttpTransport[Any, Any]] = http_transport
    ) -> None:
        self._settings = settings
        self._make_transport = transport
        self._at_exit = AsyncExitStack()
        self._tables: dict[str, TableClient] = {}
        self._queues: dict[str, QueueClient] = {}
        self._credentials: dict[str | None, DefaultAzureCredential] = {}

    def table(self, name: str) -> TableClient:
        """Return the client of a table."""
        if name not in self._tables:
            self._tables[name] = self._table_service.get_table_client(name)
        return self._tables[name]

    def queue(self, name: str) -> QueueClient:
        """Return the client of a Storage Queue."""
        if name not in self._queues:
            self._queues[name] = self._queue_service.get_queue_client(name)
        return self._queues[name]

    def container(self, name: str) -> ContainerClient:
        """Return the client of a blob container."""
        return self._blob_service.get_container_client(name)

    def service_bus(self) -> ServiceBusClient:
        """Return the client of the Service Bus namespace."""
        return self._service_bus

    def event_grid(self) -> EventGridPublisherClient:
        """Return the client of the Event Grid topic."""
        return self._event_grid

    def http(self) -> aiohttp.ClientSession:
        """Return the session for calls to remote services."""
        return self._http

    async def token(self, scope: str) -> str:
        """Return a token of the app's identity for a remote service; the library keeps it while it lasts."""
        return (await self._credential(self._settings.storage_client_id).get_token(scope)).token

    async def close(self) -> None:
        """Close whatever was opened; afterwards the clients cannot be used again."""
        await self._at_exit.aclose()

    @cached_property
    def _transport(self) -> AsyncHttpTransport[Any, Any]:
        transport = self._make_transport()
        self._at_exit.push_async_callback(transport.close)
        return transport

    @cached_property
    def _table_service(self) -> TableServiceClient:
        options: dict[str, Any] = {"transport": self._transport, "retry_total": RETRIES, "retry_backoff_factor": 0.2}
        settings = self._settings
        if settings.state_storage:
            return TableServiceClient.from_connection_string(settings.state_storage.get_secret_value(), **options)
        credential = self._credential(settings.storage_client_id)
        return TableServiceClient(settings.table_service_uri or "", credential=credential, **options)

    @cached_property
    def _queue_service(self) -> QueueServiceClient:
        options: dict[str, Any] = {"transport": self._transport, **STORAGE_RETRIES}
        settings = self._settings
        if settings.state_storage:
            return QueueServiceClient.from_connection_string(settings.state_storage.get_secret_value(), **options)
        credential = self._credential(settings.storage_client_id)
        return QueueServiceClient(settings.queue_service_uri or "", credential=credential, **options)

    @cached_property
    def _blob_service(self) -> BlobServiceClient:
        options: dict[str, Any] = {"transport": self._transport, **STORAGE_RETRIES}
        settings = self._settings
        if settings.state_storage:
            return BlobServiceClient.from_connection_string(settings.state_storage.get_secret_value(), **options)
        credential = self._credential(settings.storage_client_id)
        return BlobServiceClient(settings.blob_service_uri or "", credential=credential, **options)

    @cached_property
    def _service_bus(self) -> ServiceBusClient:
        options: dict[str, Any] = {
            "retry_total": RETRIES,
            "retry_backoff_factor": 0.2,
            "retry_backoff_max": 1,
            "try_timeout": 10,
        }
        settings = self._settings
        if settings.service_bus:
            client = ServiceBusClient.from_connection_string(settings.service_bus.get_secret_value(), **options)
        else:
            credential = self._credential(settings.service_bus_client_id)
            client = ServiceBusClient(settings.service_bus_namespace or "", credential, **options)
        self._at_exit.push_async_callback(client.close)
        return client

    @cached_property
    def _event_grid(self) -> EventGridPublisherClient:
        settings = self._settings
        credential: AzureKeyCredential | AsyncTokenCredential
        if settings.event_grid_key:
            credential = AzureKeyCredential(settings.event_grid_key.get_secret_value())
        else:
            credential = self._credential(settings.event_grid_client_id)
        return EventGridPublisherClient(
            settings.event_grid_endpoint, credential, transport=self._transport, retry_total=RETRIES
        )

    @cached_property
    def _http(self) -> aiohttp.ClientSession:
        session = aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(), connector=aiohttp.TCPConnector(limit=0), auto_decompress=True
        )
        self._at_exit.push_async_callback(session.close)
        return session

    def _credential(self, client_id: str | None) -> DefaultAzureCredential:
        """Return the app's identity, shared by all services that name the same client id."""
        if client_id not in self._credentials:
            options: dict[str, Any] = {"managed_identity_client_id": client_id} if client_id else {}
            self._credentials[client_id] = credential = DefaultAzureCredential(**options)
            self._at_exit.push_async_callback(credential.close)
        return self._credentials[client_id]
