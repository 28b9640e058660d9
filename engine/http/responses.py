"""JSON answers, and errors as RFC 9457 problem details."""

import functools
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, TypeVar

import azure.functions as func
import simplejson
from pydantic import BaseModel

from engine.domain.errors import (
    AppError,
    ConflictError,
    InputFault,
    InvalidCallbackUrlError,
    InvalidError,
    NotAllowedError,
    NotSignedInError,
    OutOfTimeError,
    RefusedError,
    TooManyCallsError,
    TooManyTriesError,
    UnavailableError,
    UnknownAgentError,
    UnknownLengthError,
    UnknownMessageError,
    UnknownOrderError,
    UnreadableRowError,
)
from engine.domain.keys import ORDER_ID
from engine.domain.messages import decode
from engine.http.models import Problem
from engine.words.catalogue import text
from engine.words.errors import name_of, words_of_error, words_of_fault

log = logging.getLogger(__name__)

Handler = Callable[[func.HttpRequest], Awaitable[func.HttpResponse]]

MAX_BODY_BYTES = 256 * 1024


def ok(
    body: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> func.HttpResponse:
    return func.HttpResponse(
        simplejson.dumps(body, default=_text),
        status_code=status,
        headers=dict(headers or {}),
        mimetype="application/json",
    )


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def unless_known(req: func.HttpRequest, answer: func.HttpResponse) -> func.HttpResponse:
    """Add an ETag to the answer. Replace it by an empty 304 if the caller already has it."""
    tag = f'"{sha256(answer.get_body()).hexdigest()[:32]}"'
    answer.headers["ETag"], answer.headers["Cache-Control"] = tag, "no-cache"
    listed = req.headers.get("If-None-Match", "").split(",")
    known = {entity_tag.strip().removeprefix("W/") for entity_tag in listed}
    if known & {tag, "*"}:
        return func.HttpResponse(status_code=304, headers=dict(answer.headers))
    return answer


def problem(
    status: int,
    title: str,
    detail: str | None = None,
    *,
    faults: Sequence[str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> func.HttpResponse:
    body = Problem(title=title, status=status, detail=detail, faults=faults)
    return func.HttpResponse(
        body.model_dump_json(exclude_none=True),
        status_code=status,
        headers=dict(headers or {}),
        mimetype="application/problem+json",
    )


STATUS: Mapping[type[AppError], int] = {
    InvalidError: 400,
    NotSignedInError: 401,
    NotAllowedError: 403,
    UnknownLengthError: 411,
    UnknownOrderError: 404,
    InvalidCallbackUrlError: 403,
    TooManyTriesError: 429,
    TooManyCallsError: 429,
    UnknownAgentError: 404,
    UnknownMessageError: 404,
    RefusedError: 409,
    UnreadableRowError: 409,
    OutOfTimeError: 503,
    ConflictError: 503,
    UnavailableError: 503,
}
"""The status for each error and for errors derived from it. Any other error is 500."""

RETRY_AFTER: Mapping[type[AppError], int] = {
    UnknownOrderError: 1,
    TooManyTriesError: 600,
    OutOfTimeError: 1,
    ConflictError: 1,
    UnavailableError: 1,
}
"""The seconds after which a caller may try again."""

TITLE_SAYS_ALL = (UnknownOrderError, ConflictError, TooManyCallsError)
"""The errors whose answer has no detail."""


def problem_of(error: AppError) -> func.HttpResponse:
    kind = next((kind for kind in type(error).__mro__ if kind in STATUS), None)
    if kind is None:
        return unexpected()
    title = text(f"problem.{name_of(kind)}")
    if isinstance(error, InvalidError):
        return problem(STATUS[kind], title, faults=list(map(words_of_fault, error.faults)))
    detail = None if kind in TITLE_SAYS_ALL else words_of_error(error) or None
    wait = error.retry_after if isinstance(error, TooManyCallsError) else RETRY_AFTER.get(kind)
    headers = {} if wait is None else {"Retry-After": str(wait)}
    return problem(STATUS[kind], title, detail, headers=headers)


def unexpected() -> func.HttpResponse:
    """Return the answer for an unexpected error."""
    return problem(500, text("problem.unexpected"))


def answers(handler: Handler) -> Handler:
    """Turn the errors of a handler into problem details. No other place does this.

    An unexpected error is logged with its text, and answered without it.
    """

    @functools.wraps(handler)
    async def answering(req: func.HttpRequest) -> func.HttpResponse:
        route = req.url.partition("?")[0]
        try:
            return await handler(req)
        except Exception as raised:
            error = _one_of(raised)
            if error is None:
                log.exception("http.broke", extra={"route": route})
                return unexpected()
            answer = problem_of(error)
            # All other errors are the caller's own.
            if answer.status_code >= 500 or isinstance(error, UnreadableRowError):
                log.warning("http.failed", extra={"route": route, "why": str(error)})
            return answer

    return answering


def _one_of(raised: Exception) -> AppError | None:
    """Return the error of the app, or None. A group of outages counts as its first error."""
    if isinstance(raised, ExceptionGroup) and raised.split(UnavailableError)[1] is None:
        return _one_of(raised.exceptions[0])
    return raised if isinstance(raised, AppError) else None


T = TypeVar("T", bound=BaseModel)


def body_of(req: func.HttpRequest, model: type[T]) -> T:
    """Read the request's JSON body. Raises `InvalidError` with all faults.

    Raises `UnknownLengthError` for a chunked body, which Azure's host does not pass on.
    """
    return decode(model, content_of(req))


def content_of(req: func.HttpRequest) -> bytes:
    """Return the request's body. Raises `InvalidError` if it is too long.

    Raises `UnknownLengthError` as `body_of` does.
    """
    body = bytes(req.get_body())
    if not body and "Content-Length" not in req.headers:
        raise UnknownLengthError
    if len(body) > MAX_BODY_BYTES:
        facts = {"length": len(body), "limit": MAX_BODY_BYTES}
        raise InvalidError([InputFault("body", "too-many-bytes", facts)])
    return body


def order_id_of(req: func.HttpRequest) -> str:
    """Return the order id in the path. Raises `UnknownOrderError` if it is malformed."""
    order_id = str(req.route_params.get("orderId", ""))
    if not ORDER_ID.fullmatch(order_id):
        raise UnknownOrderError
    return order_id
