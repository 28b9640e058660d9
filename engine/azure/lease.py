"""The election of the supervisor that sweeps, by a blob lease (SUP-5)."""

# The pattern in an hour, 19 of 23: leadership by lease

import time
from collections.abc import Callable
from contextlib import suppress
from uuid import uuid4

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.blob.aio import BlobClient, BlobLeaseClient, ContainerClient

from engine.azure.failures import azure_errors
from engine.domain.errors import ConflictError

CONTAINER = "leases"
BLOB = "supervisor"
SAFETY_SECONDS = 1.0


class BlobLeadership:
    """`Leadership` by a lease on the blob `leases/supervisor`. The blob is created when needed."""

    def __init__(
        self,
        container: Callable[[], ContainerClient],
        lease_seconds: int,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._container = container
        self._lease_seconds = lease_seconds
        self._monotonic = monotonic
        self._lease_id = str(uuid4())
        """The proposed lease id, which never changes, so acquiring our own lease again renews it.

        This works even if the answer to the first request was lost.
        """
        self._until = 0.0

    async def acquire(self) -> bool:
        """Try to acquire or renew the lease. Raises `UnavailableError`."""
        requested_at = self._monotonic()
        try:
            with azure_errors("leader election"):
                await self._take()
        except ConflictError:
            self._until = 0.0
            return False
        self._until = requested_at + self._lease_seconds - SAFETY_SECONDS
        return True

    def held(self) -> bool:
        """Whether this process has the lease.

        The lease counts from before the request, and ends `SAFETY_SECONDS` early.
        """
        return self._monotonic() < self._until

    async def _take(self) -> None:
        container = self._container()
        blob = container.get_blob_client(BLOB)
        lease = BlobLeaseClient(blob, lease_id=self._lease_id)
        try:
            await lease.acquire(self._lease_seconds)
        except ResourceNotFoundError:
            await _create(container, blob)
            await lease.acquire(self._lease_seconds)


async def _create(container: ContainerClient, blob: BlobClient) -> None:
    with suppress(ResourceExistsError):  # only the blob was missing
        await container.create_container()
    with suppress(ResourceExistsError):  # another process was first
        await blob.upload_blob(b"", overwrite=False)
