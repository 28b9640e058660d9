"""Converts an agent's request to a call of its service: the address and the body."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from engine.declarations.service_forms import FIELD, UP, Body, Form, OperationRoute
from engine.domain.errors import InvalidRequestError
from engine.domain.messages import OPERATION, AgentRequest

STEPS_UP = {"", ".", ".."}
"""Parts of a value that a server could treat as a path to another resource."""
MAX_FIELD = 500
"""The longest value of a field in a path, in characters."""


def path_of(form: Form, request: AgentRequest) -> str:
    """Return the encoded path of the call, with its query.

    Raises `InvalidRequestError` if the path leads to another resource, or if the request lacks a
    field of the path. The error contains no values, because they may be personal.
    """
    operation = request.operation
    # A malformed operation could be a path to another resource of the same host.
    if not OPERATION.fullmatch(operation):
        raise InvalidRequestError("the request names no operation")
    route = form.route(operation)
    if route.path is None:
        return f"/{operation}"
    path = FIELD.sub(lambda found: _encoded(found[1], request), route.path)
    if UP.search(unquote(path)):
        raise InvalidRequestError(f"the path of {operation} leads to another address")
    return path


def _encoded(field: str, request: AgentRequest) -> str:
    value = _value(field, request)
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    fits = len(text) <= MAX_FIELD and text.isprintable()
    if not fits or STEPS_UP.intersection(re.split(r"[/\\]", text)):
        raise InvalidRequestError(f"the path of {request.operation} cannot contain this {field}")
    return quote(text, safe="")


def _value(field: str, request: AgentRequest) -> Any:
    """Return the value of a field. None if the request has none."""
    own = {"orderId": request.order_id, "step": request.step, "key": request.idempotency_key}
    if field in own:
        return own[field]
    value: Any = request.content
    for name in field.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def body_of(form: Form, route: OperationRoute, request: AgentRequest) -> Mapping[str, Any] | None:
    """Return the body of the call, or None if it has none."""
    if not route.has_body:
        return None
    content = dict(request.content)
    if form.body is Body.CONTENT:
        return content
    return {"orderId": request.order_id, "step": request.step, "order": content}
