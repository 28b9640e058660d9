"""A limit of public calls for each caller and process: one token bucket for each address."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from math import ceil
from time import monotonic

from engine.domain.errors import TooManyCallsError

Network = IPv4Network | IPv6Network
MAX_CALLERS = 10_000
"""How many callers are remembered. Beyond this, the caller with the oldest last call is forgotten.
"""
UNKNOWN = "unknown"
"""Stands for all callers whose address is unknown."""
HOUSEHOLD = 64
"""The prefix length of an IPv6 network that counts as one caller."""


def caller_of(headers: Mapping[str, str], proxies: Sequence[Network]) -> str:
    """Return the caller's address.

    Each proxy appends the address that called it to `X-Forwarded-For`, and Azure's front end is the
    last proxy. Read from the end, the first address that is no trusted proxy is the caller's.
    """
    address = None
    for part in reversed(headers.get("X-Forwarded-For", "").split(",")):
        address = _address(part.strip())
        if address is None or not any(address in network for network in proxies):
            break
    if isinstance(address, IPv6Address):
        return str(ip_network((address, HOUSEHOLD), strict=False))
    return str(address) if address else UNKNOWN


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Parse an address that may have a port, as Azure writes it. None for anything else."""
    bare = text.partition("]")[0].removeprefix("[")
    for form in (bare, bare.rpartition(":")[0]):
        try:
            address = ip_address(form)
        except ValueError:
            continue
        mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        return mapped or address
    return None


class CallLimits:
    """Allows each caller a number of calls a minute, in one burst or spread out."""

    def __init__(
        self,
        per_minute: int,
        proxies: Sequence[Network] = (),
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._most, self._proxies, self._clock = per_minute, proxies, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """How many calls each caller has left, and when this was counted."""

    def check(self, headers: Mapping[str, str]) -> None:
        """Count a call. Raises `TooManyCallsError` if the caller has no call left."""
        if not self._most:
            return
        caller, now = caller_of(headers, self._proxies), self._clock()
        left, at = self._left.pop(caller, (self._most, now))
        left = min(self._most, left + (now - at) * self._most / 60)
        self._left[caller] = (left - 1 if left >= 1 else left, now)
        if len(self._left) > MAX_CALLERS:
            self._left.popitem(last=False)
        if left < 1:
            raise TooManyCallsError(ceil((1 - left) * 60 / self._most))
