"""What the Azure SDKs raise, as the few errors that the roles know."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException

import aiohttp
from azure.core.exceptions import AzureError, HttpResponseError
from azure.servicebus.exceptions import ServiceBusError

from core.errors import AppError, ConflictError, UnavailableError

CONFLICTS = {404, 409, 412}
NO_TABLE = {"TableNotFound", "TableBeingDeleted"}
"""Which say nothing of any row."""
PASSING = {401, 403, 408, 429}
"""Besides 5xx: busy, or access that is not granted yet. No reason to call a message poisonous."""

OUTAGES = (AzureError, ServiceBusError, aiohttp.ClientError, HTTPException, OSError, TimeoutError)


@contextmanager
def azure_errors(what: str, conflict: type[AppError] = ConflictError) -> Iterator[None]:
    """Translate what Azure raises while we work on `what`; the original stays the cause.

    404, 409 and 412 become `conflict`: of a thing that is not there, `UnavailableError` says more. Outages, time-outs
    and answers that cannot be read become `UnavailableError`.
    What is wrong with the request itself (400, 413) is a fault of ours and passes through as it is.
    """
    try:
        yield
    except HttpResponseError as error:
        if (translated := _by_status(error, what, conflict)) is error:
            raise
        raise translated from error
    except OUTAGES as error:
        raise UnavailableError(f"{what}: {summary(error)}") from error


def _by_status(error: HttpResponseError, what: str, conflict: type[AppError]) -> Exception:
    status = error.status_code or 0
    code = str(getattr(error, "error_code", ""))
    if status in CONFLICTS and not any(each in code for each in NO_TABLE):
        return conflict(f"{what}: {summary(error)}")
    if 400 <= status < 500 and status not in CONFLICTS | PASSING:
        return error
    return UnavailableError(f"{what}: {summary(error)}")


def summary(error: BaseException) -> str:
    """Return the kind of error and the first line of what it says."""
    first_line = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__} {first_line[:200]}".strip()
