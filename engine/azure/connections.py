"""The SDK clients. Each is made when it is first needed, and kept as long as the process runs."""

import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, TypeVar

import aiohttp
from azure.communication.email.aio import EmailClient
from azure.core.credentials import AccessToken, AzureKeyCredential
from azure.core.credentials_async import AsyncTokenCredential
from azure.core.pipeline.transport import AioHttpTransport, AsyncHttpTransport
from azure.data.tables.aio import TableClient, TableServiceClient
from azure.eventgrid.aio import EventGridPublisherClient
from azure.identity.aio import DefaultAzureCredential
from azure.servicebus.aio import ServiceBusClient
from azure.storage.blob.aio import BlobServiceClient, ContainerClient
from azure.storage.queue.aio import QueueClient, QueueServiceClient

from engine.azure.clock import utc_now
from engine.azure.credentials import Token, usable
from engine.azure.settings import Settings
from engine.azure.tables.store_clock import StoreClock

Client = TypeVar("Client", TableServiceClient, QueueServiceClient, BlobServiceClient)

CONNECT_SECONDS = 5
READ_SECONDS = 10
RETRIES = 2
"""Few retries, because our handlers retry themselves and an outage should show soon."""
STORAGE_RETRIES = {"retry_total": RETRIES, "initial_backoff": 1, "increment_base": 2}


def http_transport() -> AioHttpTransport:
    """Make the pool of HTTP connections that all clients share."""
    # The proxy variables of the environment are ignored: to look them up takes a thread for every
    # request, which was a fifth of all CPU time of an order.
    return AioHttpTransport(
        connection_timeout=CONNECT_SECONDS, read_timeout=READ_SECONDS, use_env_settings=False
    )


class Connections:
    """All clients of a process. Nothing connects until a client is used."""

    def __init__(
        self,
        settings: Settings,
        transport: Callable[[], AsyncHttpTransport[Any, Any]] = http_transport,
    ) -> None:
        self._settings = settings
        self.store_clock = StoreClock(timedelta(seconds=settings.clock_tolerance_seconds))
        self._make_transport = transport
        self._at_exit = AsyncExitStack()
        self._credentials: dict[str | None, DefaultAzureCredential] = {}

    def table(self, name: str) -> TableClient:
        return self._table_service.get_table_client(name)

    def queue(self, name: str) -> QueueClient:
        return self._queue_service.get_queue_client(name)

    def container(self, name: str) -> ContainerClient:
        return self._blob_service.get_container_client(name)

    async def token(self, scope: str, refused: bool) -> Token:  # noqa: FBT001 - see `Fetch`
        """Return a token of the app's identity for a remote service.

        If the last token was `refused`, a new identity gets the token, because the old one would
        return the cached token. Even so, Azure may return the same token again.
        """
        client_id = self._settings.storage_client_id
        if not refused:
            return _token(await self._credential(client_id).get_token(scope))
        async with _identity(client_id) as fresh:
            return _token(await fresh.get_token(scope))

    async def close(self) -> None:
        """Close all clients. They cannot be used again."""
        await self._at_exit.aclose()

    @cached_property
    def _transport(self) -> AsyncHttpTransport[Any, Any]:
        transport = self._make_transport()
        self._at_exit.push_async_callback(transport.close)
        return transport

    @cached_property
    def _table_service(self) -> TableServiceClient:
        return self._storage(
            TableServiceClient,
            self._settings.table_service_uri,
            retry_total=RETRIES,
            retry_backoff_factor=0.2,
            raw_request_hook=self.store_clock.before_request,
            raw_response_hook=self.store_clock.after_response,
        )

    @cached_property
    def _queue_service(self) -> QueueServiceClient:
        return self._storage(
            QueueServiceClient, self._settings.queue_service_uri, **STORAGE_RETRIES
        )

    @cached_property
    def _blob_service(self) -> BlobServiceClient:
        return self._storage(BlobServiceClient, self._settings.blob_service_uri, **STORAGE_RETRIES)

    def _storage(self, client: type[Client], uri: str | None, **options: Any) -> Client:
        settings = self._settings
        if settings.state_storage:
            secret = settings.state_storage.get_secret_value()
            return client.from_connection_string(secret, transport=self._transport, **options)
        credential = self._credential(settings.storage_client_id)
        return client(uri or "", credential=credential, transport=self._transport, **options)

    @cached_property
    def service_bus(self) -> ServiceBusClient:
        options: dict[str, Any] = {
            "retry_total": RETRIES,
            "retry_backoff_factor": 0.2,
            "retry_backoff_max": 1,
            "try_timeout": 10,
            # Read once here. Each sender has its own connection, for which the SDK would read the
            # machine's CA certificates again. That takes 50 ms, in which the whole process stands
            # still.
            "ssl_context": ssl.create_default_context(),
        }
        settings = self._settings
        if settings.service_bus:
            client = ServiceBusClient.from_connection_string(
                settings.service_bus.get_secret_value(), **options
            )
        else:
            credential = self._credential(settings.service_bus_client_id)
            client = ServiceBusClient(settings.service_bus_namespace or "", credential, **options)
        self._at_exit.push_async_callback(client.close)
        return client

    @cached_property
    def event_grid(self) -> EventGridPublisherClient:
        """The client of the Event Grid topic.

        It does not retry, because the relay sends again, with growing pauses.
        """
        settings = self._settings
        credential: AzureKeyCredential | AsyncTokenCredential
        if settings.event_grid_key:
            credential = AzureKeyCredential(settings.event_grid_key.get_secret_value())
        else:
            credential = self._credential(settings.event_grid_client_id)
        return EventGridPublisherClient(
            settings.event_grid_endpoint, credential, transport=self._transport, retry_total=0
        )

    @cached_property
    def email(self) -> EmailClient:
        """The client of the communication service."""
        settings = self._settings
        # It does not retry, because it would sleep for as long as the service requests.
        return EmailClient(
            settings.mail_endpoint or "",
            self._credential(settings.storage_client_id),
            transport=self._transport,
            retry_total=0,
            permit_redirects=False,
        )

    @cached_property
    def http(self) -> aiohttp.ClientSession:
        """The session for calls to remote services and webhooks."""
        session = aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(),
            connector=aiohttp.TCPConnector(limit=0),
            auto_decompress=True,
        )
        self._at_exit.push_async_callback(session.close)
        return session

    def _credential(self, client_id: str | None) -> DefaultAzureCredential:
        """Return the app's identity. Services with the same client id share it."""
        if client_id not in self._credentials:
            self._credentials[client_id] = credential = _identity(client_id)
            self._at_exit.push_async_callback(credential.close)
        return self._credentials[client_id]


def _identity(client_id: str | None) -> DefaultAzureCredential:
    options: dict[str, Any] = {"managed_identity_client_id": client_id} if client_id else {}
    return DefaultAzureCredential(**options)


def _token(given: AccessToken) -> Token:
    ends, now = datetime.fromtimestamp(given.expires_on, UTC), utc_now()
    return Token(text=given.token, ends=now + usable(ends - now))
