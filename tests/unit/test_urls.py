"""What is taken for the URL of a service: the same in the app and in the hooks of a deployment."""

import json
import subprocess

import pytest
from hooks import OLDEST

from core.urls import is_private
from development.servicebus_config import ROOT

PRIVATE = [
    "https://service.example.com",
    "https://service.example.com/",
    "https://service_1.example.com:8443/v1/orders?kind=a%20b&c=(1)#top",
    "https://pay",
    "https://192.0.2.7:1",
    "https://[2001:db8::7]:65535/x",
    "http://localhost:7071/simulator/payment",
    "http://LOCALHOST",
    "http://127.0.0.1:80",
    "http://[::1]:7071/",
]
NOT_PRIVATE = [
    "",
    "service.example.com",
    "http://service.example.com",
    "http://localhost.example.com",
    "ftp://localhost",
    "HTTPS://service.example.com",
    "Https://service.example.com",
    "https://",
    "https:///path",
    "https://:443",
    "https://service.example.com ",
    " https://service.example.com",
    "https:// service.example.com",
    "https://service.example.com/a b",
    "https://service\t.example.com",
    "https://service.example.com\n",
    "https://service.example.com/\r\n",
    "https://service.example.com/\0",
    "https://user:password@service.example.com",
    "https://user@service.example.com",
    "https://service.example.com/@home",
    "https://user:password\uff20service.example.com",
    "https://[x]",
    "https://[::1",
    "https://[]",
    "https://[1.2.3.4]",
    "https://::1",
    "https://service.example.com:",
    "https://service.example.com:0",
    "https://service.example.com:65536",
    "https://service.example.com:x",
    "https://service\\example.com",
]
OF_HOOKS = """
import json, sys
sys.path.insert(0, sys.argv[1])
from core.urls import is_private
print(json.dumps([is_private(url) for url in json.load(sys.stdin)]))
"""


@pytest.mark.parametrize("url", PRIVATE)
def test_requests_to_it_are_protected(url):
    """With https, or on this machine."""
    assert is_private(url)


@pytest.mark.parametrize("url", NOT_PRIVATE)
def test_it_is_no_url_of_a_service(url):
    """Blanks, users, passwords, hosts that are none, and http elsewhere (hooks.md 6)."""
    assert not is_private(url)


def test_the_oldest_python_of_a_hook_decides_the_same():
    """The standard library's own parser does not: versions of Python differ in what is a host (hooks.md 6)."""
    urls = [*PRIVATE, *NOT_PRIVATE]
    ran = subprocess.run(
        [OLDEST, "-c", OF_HOOKS, str(ROOT)],
        input=json.dumps(urls),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(ran.stdout) == [is_private(url) for url in urls]
