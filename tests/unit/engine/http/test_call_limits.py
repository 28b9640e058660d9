"""Calls of the public endpoints: how many one caller may make, and who the caller is."""

from ipaddress import ip_network

import azure.functions as func
import pytest

from engine.domain.errors import TooManyCallsError
from engine.http.call_limits import MAX_CALLERS, UNKNOWN, CallLimits, caller_of
from testkit.memory import in_memory
from tests.support.apps import app, functions

PROXIES = list(map(ip_network, ("203.0.113.7", "2001:db8::/32", "10.0.0.0/8")))


def forwarded(*addresses):
    return {"X-Forwarded-For": ", ".join(addresses)}


class Clock:
    """A clock that the test sets."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize(
    ("addresses", "proxies", "caller"),
    [
        (["198.51.100.1"], [], "198.51.100.1"),
        (["198.51.100.1:49152"], [], "198.51.100.1"),
        (["::ffff:198.51.100.1"], [], "198.51.100.1"),
        (["2001:db9::1"], [], "2001:db9::/64"),
        (["[2001:db9::1]:443"], [], "2001:db9::/64"),
        # What a caller writes counts only behind a proxy that is trusted.
        (["192.0.2.1", "198.51.100.1:80"], [], "198.51.100.1"),
        (["192.0.2.1", "198.51.100.1:80"], PROXIES, "198.51.100.1"),
        (["192.0.2.1", "198.51.100.1", "203.0.113.7:80"], PROXIES, "198.51.100.1"),
        (["198.51.100.1", "10.1.2.3", "2001:db8::9"], PROXIES, "198.51.100.1"),
        (["10.1.2.3", "10.1.2.4"], PROXIES, "10.1.2.3"),
        (["nonsense", "203.0.113.7"], PROXIES, UNKNOWN),
        (["198.51.100.1", "nonsense"], [], UNKNOWN),
        ([""], [], UNKNOWN),
    ],
)
def test_the_caller_is_who_called_the_last_trusted_proxy(addresses, proxies, caller):
    assert caller_of(forwarded(*addresses), proxies) == caller


def test_without_a_forwarded_address_all_callers_are_one():
    assert caller_of({}, PROXIES) == UNKNOWN


def test_each_caller_has_a_limit_of_its_own():
    clock = Clock()
    limits = CallLimits(per_minute=60, clock=clock)
    one, other = forwarded("198.51.100.1"), forwarded("198.51.100.2")
    for _ in range(60):
        limits.check(one)
    with pytest.raises(TooManyCallsError) as refused:
        limits.check(one)
    assert refused.value.retry_after == 1
    limits.check(other)
    clock.now += 1
    limits.check(one)
    with pytest.raises(TooManyCallsError):
        limits.check(one)
    clock.now += 3600
    for _ in range(60):
        limits.check(one)
    with pytest.raises(TooManyCallsError):
        limits.check(one)


def test_the_pause_is_long_enough():
    """Whoever waits for as long as they are told is let in."""
    clock = Clock()
    limits = CallLimits(per_minute=7, clock=clock)
    for _ in range(7):
        limits.check({})
    for _ in range(20):
        with pytest.raises(TooManyCallsError) as refused:
            limits.check({})
        clock.now += refused.value.retry_after
        limits.check({})
        while limits._left[UNKNOWN][0] >= 1:
            limits.check({})


def test_no_limit_counts_nobody():
    limits = CallLimits(per_minute=0)
    for _ in range(1000):
        limits.check({})
    assert not limits._left


def test_few_callers_are_remembered():
    """Of many, the one is forgotten that called longest ago."""
    limits = CallLimits(per_minute=1, clock=Clock())
    for number in range(MAX_CALLERS + 1):
        limits.check(forwarded(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"))
    assert len(limits._left) == MAX_CALLERS
    limits.check(forwarded("10.0.0.0"))
    with pytest.raises(TooManyCallsError):
        limits.check(forwarded("10.0.0.9"))


async def test_public_calls_are_limited_and_those_with_a_key_are_not():
    """With a pause for whoever is refused; nobody else is."""
    made = functions(app(in_memory(), public_calls_per_minute=2)).get_functions()
    calls = {function.get_function_name(): function.get_user_function() for function in made}

    async def status(name, address):
        headers = forwarded(address)
        request = func.HttpRequest(method="GET", url="/", headers=headers, body=b"")
        answer = await calls[name](request)
        return answer.status_code, answer.headers.get("Retry-After")

    reports = [await status("health_report", "198.51.100.1") for _ in range(3)]
    assert reports == [(200, None), (200, None), (429, "30")]
    assert await status("health_report", "198.51.100.2") == (200, None)
    overviews = [await status("operator_overview", "198.51.100.1") for _ in range(3)]
    assert overviews == [(200, None)] * 3
