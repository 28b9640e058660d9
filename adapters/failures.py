"""What the Azure SDKs raise, as the few errors that the roles know."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException

import aiohttp
from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError
from azure.servicebus.exceptions import (
    ServiceBusAuthenticationError,
    ServiceBusAuthorizationError,
    ServiceBusError,
)

from core.errors import AppError, ConflictError, NoRightError, UnavailableError

log = logging.getLogger(__name__)

CONFLICTS = {404, 409, 412}
NO_TABLE = {"TableNotFound", "TableBeingDeleted"}
"""Which say nothing of any row."""
NO_RIGHT = {401, 403}
PASSING = {408, 429}
"""Besides 5xx: busy."""
REFUSED = (ClientAuthenticationError, ServiceBusAuthenticationError, ServiceBusAuthorizationError)
ROLES = {
    "storage queue": "Storage Queue Data Contributor",
    "queue": "Azure Service Bus Data Sender (and Data Receiver, but for private response queues)",
    "Event Grid": "EventGrid Data Sender",
    "leader election": "Storage Blob Data Contributor",
}
"""What the app must be there, by what it works on; for all else, which is tables, see `TABLES`."""
TABLES = "Storage Table Data Contributor"
TELL_AGAIN_SECONDS = 60.0

OUTAGES = (AzureError, ServiceBusError, aiohttp.ClientError, HTTPException, OSError, TimeoutError)


@contextmanager
def azure_errors(what: str, conflict: type[AppError] = ConflictError) -> Iterator[None]:
    """Translate what Azure raises while we work on `what`; the original stays the cause.

    404, 409 and 412 become `conflict`: of a thing that is not there, `UnavailableError` says more. Outages, time-outs
    and answers that cannot be read become `UnavailableError`; 401 and 403 a `NoRightError`, which is tried again like
    an outage, so nothing is lost, but told aloud, with the role.
    What is wrong with the request itself (400, 413) is a fault of ours and passes through as it is.
    """
    try:
        yield
    except HttpResponseError as error:
        if (translated := _by_status(error, what, conflict)) is error:
            raise
        raise translated from error
    except REFUSED as error:
        raise _no_right(error, what) from error
    except OUTAGES as error:
        raise UnavailableError(f"{what}: {summary(error)}") from error


def _by_status(error: HttpResponseError, what: str, conflict: type[AppError]) -> Exception:
    status = error.status_code or 0
    code = str(getattr(error, "error_code", ""))
    if status in CONFLICTS and not any(each in code for each in NO_TABLE):
        return conflict(f"{what}: {summary(error)}")
    if status in NO_RIGHT or isinstance(error, REFUSED):
        return _no_right(error, what)
    if 400 <= status < 500 and status not in CONFLICTS | PASSING:
        return error
    return UnavailableError(f"{what}: {summary(error)}")


_told: dict[str, float] = {}
"""What was refused, and until when that need not be told again."""


def _no_right(error: Exception, what: str) -> NoRightError:
    """Return what it means, and tell it as an error once a minute: nobody may take it for an outage that passes."""
    role = next((role for place, role in ROLES.items() if what.startswith(place)), TABLES)
    if (now := time.monotonic()) >= _told.get(what, now):
        _told[what] = now + TELL_AGAIN_SECONDS
        log.error("right.missing", extra={"what": what, "role": role, "why": summary(error)})
    return NoRightError(f"{what}: {summary(error)}; the app's identity needs the role {role}")


def summary(error: BaseException) -> str:
    """Return the kind of error and the first line of what it says."""
    first_line = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__} {first_line[:200]}".strip()
