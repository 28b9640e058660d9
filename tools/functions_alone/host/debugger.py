"""Lets a debugger attach to a worker process."""

import importlib
import logging
import sys
from collections.abc import Mapping

from functions_alone.faults import LocalCode, StackFault
from functions_alone.host.errors import HostError
from functions_alone.ports import HOST

PORT, PACKAGE = "LOCAL_DEBUG_PORT", "debugpy"

_log = logging.getLogger("functions_alone.host.debugger")


def listen_if_set(environ: Mapping[str, str]) -> None:
    """Listen for a debugger if the setting names a port. Raises `HostError` if that is impossible."""
    if not (text := environ.get(PORT, "")):
        return
    if not (text.isdecimal() and 1 <= int(text) <= 65535):
        raise HostError(StackFault(LocalCode.PORT_INVALID, PORT, {"value": text}))
    try:
        importlib.import_module(PACKAGE).listen((HOST, int(text)))
    except ImportError as error:
        install = {"command": f"{sys.executable} -m pip install {PACKAGE}"}
        raise HostError(StackFault(LocalCode.DEBUGGER_MISSING, PORT, install)) from error
    except (OSError, RuntimeError) as error:
        place, reason = f"port {text} ({PORT})", {"reason": str(error)}
        raise HostError(StackFault(LocalCode.CANNOT_LISTEN, place, reason)) from error
    _log.info("a debugger can attach to %s:%s", HOST, text)
