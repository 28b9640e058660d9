"""Conversion of an HTTP function's return value, on its way from the worker to the host."""

from typing import NamedTuple

import azure.functions as func
from multidict import CIMultiDict

_HOSTS_OWN = frozenset({"content-length", "transfer-encoding", "connection"})


class HttpAnswer(NamedTuple):
    """The status, headers and body that are sent."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


def http_answer(result: object) -> HttpAnswer:
    """Convert a function's return value.

    Raises TypeError for a value that Azure cannot convert either, such as None.
    """
    if isinstance(result, func.HttpResponse):
        return HttpAnswer(int(result.status_code), _headers(result), result.get_body() or b"")
    if isinstance(result, str):
        return HttpAnswer(200, (("Content-Type", "text/plain; charset=utf-8"),), result.encode())
    raise TypeError(f"an HTTP function returned {type(result).__name__}")


def _headers(response: func.HttpResponse) -> tuple[tuple[str, str], ...]:
    headers = CIMultiDict[str]()
    for name, value in response.headers.items():
        if name.lower() == "set-cookie":
            headers.add(name, value)
        elif name.lower() not in _HOSTS_OWN:
            headers[name] = value  # of several with one name Azure's worker keeps the last
    if "content-type" not in headers:
        is_text = response.mimetype.startswith("text/")
        charset = f"; charset={response.charset}" if is_text else ""
        headers["Content-Type"] = f"{response.mimetype}{charset}"
    return tuple(headers.items())
