"""The check of a service's URL: one rule for the app and for the hooks of a deployment.

The hooks run on any Python that azd finds, so this module needs only Python 3.7 and its standard
library.
"""

import ipaddress
import re

# No `@`: a user name or a password would be readable in a plain setting.
URL = re.compile(
    r"(https?)://(?:([A-Za-z0-9._-]+)|\[([0-9A-Fa-f:.]+)\])(?::([0-9]{1,5}))?(?:/[!-?A-~]*)?"
)
"""A URL of printable ASCII without `@`."""
LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def is_private(url: str) -> bool:
    """Return whether requests to the URL are protected: it is https, or on this machine."""
    # Not with urlsplit: what it takes for a host differs between versions of Python.
    parts = URL.fullmatch(url)
    if parts is None:
        return False
    scheme, name, address, port = parts.groups()
    if address and not _is_ipv6(address):
        return False
    if port and not 0 < int(port) < 2**16:
        return False
    return scheme == "https" or (name or address).lower() in LOOPBACK


def takes_paths(url: str) -> bool:
    """Return whether a path can be appended to the URL: it has neither a query nor a fragment."""
    return not {"?", "#"}.intersection(url)


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True
