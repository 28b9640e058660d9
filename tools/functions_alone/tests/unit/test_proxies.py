"""Which hosts clients call without a proxy."""

from urllib.request import getproxies_environment, proxy_bypass_environment

import pytest

from functions_alone.proxies import bypass_proxies
from functions_alone.tests.support.dead_proxy import DEAD_PROXY

OURS = ("127.0.0.1", "localhost", "127.0.0.1:10001")


@pytest.mark.parametrize(
    ("environment", "direct", "by_proxy"),
    [
        ({}, OURS, ("example.com",)),
        (DEAD_PROXY, OURS, ("example.com",)),
        ({"NO_PROXY": "corp.example, intranet"}, (*OURS, "a.corp.example"), ("example.com",)),
        ({"no_proxy": "corp.example"}, (*OURS, "corp.example"), ("example.com",)),
        ({"NO_PROXY": "*"}, (*OURS, "example.com"), ()),
    ],
)
def test_this_machine_is_called_directly_and_others_as_before(
    monkeypatch, environment, direct, by_proxy
):
    """(bugs 13) What a person has excluded stays excluded."""
    for name in DEAD_PROXY:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    bypass_proxies()
    proxies = getproxies_environment()
    assert [host for host in direct if not proxy_bypass_environment(host, proxies)] == []
    assert [host for host in by_proxy if proxy_bypass_environment(host, proxies)] == []
