"""The lock for a timer: as in Azure a lease on a blob, so that only one of all hosts fires the timer."""

import asyncio
import logging
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Protocol
from uuid import uuid4

from azure.core.exceptions import AzureError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob.aio import BlobClient, BlobLeaseClient, ContainerClient

from functions_alone.host.host_json import SHORTEST_LEASE_SECONDS
from functions_alone.host.outage import Outage, in_a_few_words, pause
from functions_alone.host.settings import HostSettings

CONTAINER = "azure-webjobs-hosts"
TAKEN = (409, 412)
"""Storage's answers when another host has the lease: 409 to a new claim, 412 to a renewal."""

_log = logging.getLogger("functions_alone.host.singleton")


class Lease:
    """A lease on a blob, which is made when it is first needed."""

    def __init__(self, container: ContainerClient, path: str, seconds: int) -> None:
        self._container = container
        self._seconds = seconds
        self._blob: BlobClient = container.get_blob_client(path)
        # Who asks under the id of the lease that it has, renews it.
        self._lease = BlobLeaseClient(self._blob, lease_id=str(uuid4()))

    async def acquire(self) -> None:
        """Get or renew the lease. Raises `AzureError` if another host has it or the storage fails."""
        try:
            await self._lease.acquire(self._seconds)
        except ResourceNotFoundError:
            await self._make_blob()
            await self._lease.acquire(self._seconds)

    async def release(self) -> None:
        """Release the lease. Raises `AzureError` if that fails."""
        await self._lease.release()

    async def _make_blob(self) -> None:
        with suppress(ResourceExistsError):
            await self._container.create_container()
        with suppress(ResourceExistsError):  # another host was faster
            await self._blob.upload_blob(b"", overwrite=False)


class ShortLease(Lease):
    """A lease shorter than the storage allows, for tests that kill hosts.

    The holder also touches the blob. A host that finds it untouched for too long breaks the lease.
    """

    def __init__(self, container: ContainerClient, path: str, seconds: int) -> None:
        super().__init__(container, path, SHORTEST_LEASE_SECONDS)
        self._longest = timedelta(seconds=seconds + 1)  # storage notes whole seconds

    async def acquire(self) -> None:
        """See `Lease.acquire`."""
        try:
            await super().acquire()
        except ResourceExistsError:
            if (
                datetime.now(UTC) - (await self._blob.get_blob_properties()).last_modified
                < self._longest
            ):
                raise
            await BlobLeaseClient(self._blob).break_lease(lease_break_period=0)
            await super().acquire()
        await self._blob.set_blob_metadata({}, lease=self._lease)


class SingletonListener(Protocol):
    """A listener that only one host may run."""

    async def run(self, stopping: asyncio.Event) -> None:
        """Serve until `stopping` is set, and then until all running calls have ended."""


class Singleton:
    """Runs a function's listener while this host has its lock. Otherwise it asks each `poll_seconds`."""

    def __init__(
        self,
        listener: SingletonListener,
        *,
        function: str,
        connection: str,
        own: HostSettings,
        poll_seconds: float,
    ) -> None:
        self._listener = listener
        self._function = function
        self._path = f"locks/{own.host_id}/{function}.Listener"
        self._connection = connection
        self._seconds = own.timer_lock_seconds
        self._short = self._seconds < SHORTEST_LEASE_SECONDS
        self._poll_seconds = min(poll_seconds, self._seconds) if self._short else poll_seconds
        self._outage = Outage(what=f"the storage of the lock of function {function}")
        self._until = 0.0
        self._pause = 0.0
        self._lease: Lease

    async def run(self, stopping: asyncio.Event) -> None:
        """Get the lock and serve, again after each loss of the lock, until the host stops."""
        async with ContainerClient.from_connection_string(
            self._connection,
            CONTAINER,
            retry_total=0,
            connection_timeout=2,
            read_timeout=5,
            use_env_settings=False,
        ) as container:
            self._lease = self._lease_in(container)
            while not stopping.is_set():
                if await self._has_lock():
                    await self._serve(stopping)
                else:
                    await pause(stopping, self._pause)

    def _lease_in(self, container: ContainerClient) -> Lease:
        lease = ShortLease if self._short else Lease
        return lease(container, self._path, self._seconds)

    async def _serve(self, stopping: asyncio.Event) -> None:
        """Run the listener until the host stops or the lock is lost.

        The lock is held for as long as a call runs.
        """
        over = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            ends: list[asyncio.Task[object]] = [
                group.create_task(stopping.wait()),
                group.create_task(self._keep()),
            ]
            for end in ends:
                end.add_done_callback(lambda _: over.set())
            await self._listener.run(over)
            for end in ends:
                end.cancel()
        if time.monotonic() < self._until:
            await self._release()

    async def _keep(self) -> None:
        """Renew the lock when half its time is over. Return when it is lost."""
        held = True
        while held:
            await asyncio.sleep(self._pause)
            held = await self._has_lock()
        _log.warning("the lock of function %s is lost; another host may run it now", self._function)

    async def _has_lock(self) -> bool:
        """Get or renew the lock, and set the pause before the next time."""
        requested_at = time.monotonic()
        try:
            await self._lease.acquire()
        except (AzureError, OSError) as error:
            self._pause = self._pause_after(error)
        else:
            self._until, self._pause = requested_at + self._seconds, self._seconds / 2
            self._outage.recovered()
        return time.monotonic() < self._until

    def _pause_after(self, error: BaseException) -> float:
        if getattr(error, "status_code", None) not in TAKEN:
            return self._outage.failed(error)
        self._until = 0.0
        self._outage.recovered()
        return self._poll_seconds

    async def _release(self) -> None:
        try:
            await self._lease.release()
        except (AzureError, OSError) as error:
            _log.warning(
                "the lock of function %s runs out by itself: %s",
                self._function,
                in_a_few_words(error),
            )
