"""Translates the errors of the Azure SDKs into the few that the roles know."""

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
"""The codes of a 404 or 409 that concerns the table, not a row."""
NO_RIGHT = {401, 403}
PASSING = {408, 429}
"""The statuses below 500 of a service that is busy."""
REFUSED = (ClientAuthenticationError, ServiceBusAuthenticationError, ServiceBusAuthorizationError)
ROLES = {
    "storage queue": "Storage Queue Data Contributor",
    "queue": "Azure Service Bus Data Sender (and Data Receiver, but for private response queues)",
    "Event Grid": "EventGrid Data Sender",
    "leader election": "Storage Blob Data Contributor",
}
"""The role that the app needs, by the beginning of `what`; for tables, see `TABLES`."""
TABLES = "Storage Table Data Contributor"
TELL_AGAIN_SECONDS = 60.0

OUTAGES = (AzureError, ServiceBusError, aiohttp.ClientError, HTTPException, OSError, TimeoutError)


@contextmanager
def azure_errors(what: str, conflict: type[AppError] = ConflictError) -> Iterator[None]:
    """Translate the errors of Azure during work on `what`; the original stays the cause.

    404, 409 and 412 become `conflict`; callers pass `UnavailableError` where 404 means that a whole
    queue or topic is missing. Outages, time-outs and unreadable answers become `UnavailableError`.
    401 and 403 become an `AccessDeniedError`: nothing is lost, since it is retried like an outage,
    and it is logged with the role. A fault of the request itself (400, 413) is ours and stays as it
    is.
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
"""The time of the next log line for each refused kind of work."""


def _no_right(error: Exception, what: str) -> AccessDeniedError:
    """Return the error with the missing role, and log it once a minute, as no passing outage."""
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
