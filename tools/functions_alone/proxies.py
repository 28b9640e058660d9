"""Keeps calls to this machine away from proxies."""

import os
from collections.abc import MutableMapping

THIS_MACHINE = ("127.0.0.1", "localhost", "::1")
EVERY_HOST = "*"


def bypass_proxies(environment: MutableMapping[str, str] = os.environ) -> None:
    """Add this machine to the hosts that clients call directly, here and in child processes.

    A company's `HTTP_PROXY` leads to the Internet, but the parts of a stack listen on 127.0.0.1.
    """
    names = ("NO_PROXY", "no_proxy")  # some clients read only one of them
    given = [host.strip() for name in names for host in environment.get(name, "").split(",")]
    hosts = dict.fromkeys(filter(None, [*given, *THIS_MACHINE]))
    for name in names:
        # Python's own clients know the asterisk only if it stands alone.
        environment[name] = EVERY_HOST if EVERY_HOST in hosts else ",".join(hosts)
