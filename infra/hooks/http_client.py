"""Sends one HTTP request, with a time limit for the whole exchange, and follows no redirect."""

from __future__ import annotations

import queue
import ssl
import threading
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, NamedTuple

from faults import HookError, HookFault


class HookAnswer(NamedTuple):
    """An answer with any status."""

    status: int
    body: bytes


class NoAnswerError(Exception):
    """No complete answer arrived in time."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Do not follow the redirect, because another page's answer says nothing about this one."""


def send(request: urllib.request.Request, seconds: float) -> HookAnswer:
    """Return the answer. Raises `NoAnswerError` if it is not complete after this many seconds.

    Raises `HookError` if this machine does not trust the server, because a retry would not change
    that.
    """
    # The time-out of a socket begins anew with every byte, so another thread waits for the answer.
    found: queue.Queue[Any] = queue.Queue()

    def exchange() -> None:
        try:
            found.put(_exchange(request, seconds))
        except Exception as error:  # noqa: BLE001 - whatever it is, there is no answer
            found.put(error)

    threading.Thread(target=exchange, daemon=True).start()
    try:
        result = found.get(timeout=seconds)
    except queue.Empty:
        raise NoAnswerError("no complete answer in {:.0f} s".format(seconds)) from None
    if isinstance(result, HookAnswer):
        return result
    cause = getattr(result, "reason", result)  # of a URLError
    if isinstance(cause, ssl.SSLCertVerificationError):
        host = urllib.parse.urlsplit(request.full_url).hostname or ""
        raise HookError(HookFault("certificate-untrusted", host, {"reason": cause}))
    raise NoAnswerError("{}: {}".format(type(result).__name__, result))


def _exchange(request: urllib.request.Request, seconds: float) -> HookAnswer:
    try:
        response: Any = urllib.request.build_opener(_NoRedirects).open(request, timeout=seconds)
    except urllib.error.HTTPError as refused:
        response = refused
    with response:
        return HookAnswer(response.getcode(), response.read())
