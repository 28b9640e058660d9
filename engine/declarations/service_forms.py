"""The form of the calls to a service: their method, path, headers and body."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from engine.declarations.faults import Fault, FaultCode

METHODS = ("POST", "PUT", "PATCH", "DELETE", "GET")
WITHOUT_BODY = ("DELETE", "GET")
"""The methods of calls without a body. Their values are in the path."""

FIELD = re.compile(r"\{([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\}", re.ASCII)
"""A field in a path: `{orderId}`, `{step}`, `{key}`, or a field of the request such as
`{result.id}`."""
_LITERAL = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
_PART = f"(?:{_LITERAL}|{FIELD.pattern})"
PATH = re.compile(rf"(?:/{_PART}+)+/?(?:\?(?:{_PART}|[/?])*)?", re.ASCII)
"""A path below the address of a service, with an optional query."""
UP = re.compile(r"/(?:\.|%2e){1,2}(?=[/?]|$)", re.IGNORECASE)
"""A part of a path (`.` or `..`) that leads to another resource than the path shows."""

HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
"""The name of a header (RFC 9110, 5.1)."""
HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,8000}[\x21-\x7e])?")
"""A header value that every service accepts: printable ASCII without a space at either end."""
NOT_DECLARED = {
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "host",
    "proxy-authorization",
    "transfer-encoding",
}
"""Headers that cannot be declared: the headers of HTTP itself, and headers with secrets."""


class Body(StrEnum):
    """The content of a call's body."""

    ENVELOPE = "envelope"
    """`{"orderId", "step", "order"}`, where `order` is the content of the request."""
    CONTENT = "content"
    """The content of the request alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OperationRoute:
    """The method and the path of an operation."""

    method: str = "POST"
    path: str | None = None
    """The path below the address of the service, or None for `/<operation>`. Its fields, such as
    `{orderId}`, are filled from the request and percent-encoded."""
    answer_may_be_empty: bool = False
    """Whether an answer without content completes the call. Otherwise the answer must be a JSON
    object."""

    @property
    def fields(self) -> Sequence[str]:
        return FIELD.findall(self.path or "")

    @property
    def has_body(self) -> bool:
        return self.method not in WITHOUT_BODY

    def leads_to(self, operation: str, path: str) -> bool:
        """Return whether this encoded path without a query belongs to the operation."""
        template = (self.path or f"/{operation}").partition("?")[0]
        parts = re.split(FIELD.pattern, template)  # every second one is the name of a field
        literals = map(re.escape, parts[::2])
        return re.fullmatch("[^/]+".join(literals), path) is not None

    def faults(self) -> Iterator[Fault]:
        if self.method not in METHODS:
            yield Fault(FaultCode.METHOD_UNKNOWN, method=self.method, methods=METHODS)
        if self.path is None:
            return
        if not PATH.fullmatch(self.path) or UP.search(self.path):
            yield Fault(FaultCode.PATH_INVALID, path=self.path)


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """The form of all calls to a service.

    The default suits a service that was built for this app.
    """

    headers: Mapping[str, str] = field(default_factory=dict)
    """The headers of every call. They contain no secrets."""
    key_header: str = "Idempotency-Key"
    """The header with the idempotency key (AGT-3)."""
    body: Body = Body.ENVELOPE
    routes: Mapping[str, OperationRoute] = field(default_factory=dict)
    """The route of each operation that is not `POST /<operation>`."""

    def route(self, operation: str) -> OperationRoute:
        return self.routes.get(operation, OperationRoute())

    def faults(self) -> Iterator[Fault]:
        for name, value in self.headers.items():
            faults = _header_faults(name, value, self.key_header)
            yield from (fault.within("headers") for fault in faults)
        if not _may_be_declared(self.key_header):
            yield Fault(FaultCode.HEADER_NOT_ALLOWED, "key_header", header=self.key_header)
        for operation, route in self.routes.items():
            yield from (fault.within(f"operation {operation}") for fault in route.faults())


def _header_faults(name: str, value: str, key_header: str) -> Iterator[Fault]:
    if not _may_be_declared(name) or name.casefold() == key_header.casefold():
        yield Fault(FaultCode.HEADER_NOT_ALLOWED, header=name)
    if not HEADER_VALUE.fullmatch(value):
        yield Fault(FaultCode.NOT_PRINTABLE, field=name)


def _may_be_declared(name: str) -> bool:
    return bool(HEADER.fullmatch(name)) and name.casefold() not in NOT_DECLARED
