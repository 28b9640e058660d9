"""Translates the errors of the Azure SDKs into the errors that the roles handle."""

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

from engine.domain.errors import AccessDeniedError, AppError, ConflictError, UnavailableError

log = logging.getLogger(__name__)

CONFLICTS = {404, 409, 412}
NO_TABLE = {"TableNotFound", "TableBeingDeleted"}
"""The codes of a 404 or 409 that concern the table instead of a row."""
NO_RIGHT = {401, 403}
PASSING = {408, 429}
"""The statuses below 500 of a busy service."""
REFUSED = (ClientAuthenticationError, ServiceBusAuthenticationError, ServiceBusAuthorizationError)
ROLES = {
    "storage queue": "Storage Queue Data Contributor",
    "queue": "Azure Service Bus Data Sender (and Data Receiver, but for private response queues)",
    "Event Grid": "EventGrid Data Sender",
    "leader election": "Storage Blob Data Contributor",
}
"""The role that the app needs, by the beginning of `what`. For tables, see `TABLES`."""
TABLES = "Storage Table Data Contributor"
TELL_AGAIN_SECONDS = 60.0

OUTAGES = (AzureError, ServiceBusError, aiohttp.ClientError, HTTPException, OSError, TimeoutError)


@contextmanager
def azure_errors(what: str, conflict: type[AppError] = ConflictError) -> Iterator[None]:
    """Translate the errors of Azure during work on `what`. The original error stays the cause.

    * 404, 409 and 412 become `conflict`. Pass `UnavailableError` if a 404 means that a whole queue
      or topic is missing.
    * Outages, time-outs and unreadable answers become `UnavailableError`.
    * 401 and 403 become `AccessDeniedError`. It is logged with the missing role, and retried like
      an outage.
    * 400 and 413 are faults of our own request, and are raised unchanged.
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
    if status in CONFLICTS and not any(missing in code for missing in NO_TABLE):
        return conflict(f"{what}: {summary(error)}")
    if status in NO_RIGHT or isinstance(error, REFUSED):
        return _no_right(error, what)
    if 400 <= status < 500 and status not in CONFLICTS | PASSING:
        return error
    return UnavailableError(f"{what}: {summary(error)}")


_next_log_at: dict[str, float] = {}
"""When the next log line is due for each kind of refused work."""


def _no_right(error: Exception, what: str) -> AccessDeniedError:
    """Make the error with the missing role.

    Log it once a minute, because it does not pass by itself.
    """
    role = next((role for work, role in ROLES.items() if what.startswith(work)), TABLES)
    now = time.monotonic()
    if now >= _next_log_at.get(what, now):
        _next_log_at[what] = now + TELL_AGAIN_SECONDS
        log.error("right.missing", extra={"what": what, "role": role, "why": summary(error)})
    return AccessDeniedError(f"{what}: {summary(error)}; the app's identity needs the role {role}")


def summary(error: BaseException) -> str:
    """Return the type of an error and the first line of its message."""
    first_line = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__} {first_line[:200]}".strip()
