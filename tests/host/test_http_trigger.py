"""HTTP: routes, methods, keys, bodies, failures."""

import pytest
from aiohttp.test_utils import make_mocked_request
from host_process import OPERATOR_KEY

from local.host.http import HttpListener


def test_parameters_and_query_reach_the_function(host):
    """A typed route parameter and repeated query values arrive as in Azure."""
    answer = host.call("/Items/5?x=a%20b&x=c")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert answer.json() == {"route": "item", "params": {"id": "5"}, "query": {"x": "a b,c"}}


@pytest.mark.parametrize(
    ("path", "status"),
    [("/items/special", 200), ("/items/other", 404), ("/nowhere", 404), ("/items/1/2", 404)],
)
def test_what_has_no_route_is_404(host, path, status):
    """A literal route wins over a parameter, a constraint must hold, and anything else is 404."""
    assert host.call(path).status == status


@pytest.mark.parametrize(
    ("method", "status", "allow"),
    [
        ("GET", 200, None),
        ("HEAD", 200, None),
        ("OPTIONS", 204, "DELETE, GET, OPTIONS"),
        ("POST", 405, "DELETE, GET, OPTIONS"),
    ],
)
def test_methods(host, method, status, allow):
    """HEAD is GET without a body, OPTIONS names the methods, others are 405."""
    answer = host.call("/items/5", method)
    assert (answer.status, answer.headers["Allow"]) == (status, allow)


def test_a_sync_function_runs_in_a_thread_and_takes_the_rest_of_the_path(host):
    """A function that is not async leaves the loop alone; {*path} and context work."""
    answer = host.call("/files/a/b%20c.txt").json()
    assert answer["path"] == "a/b c.txt"
    assert answer["thread"].startswith("function")
    assert answer["function"] == "files"


def test_request_and_response_keep_their_parts(host):
    """Status, headers, media type with charset and a large body survive the way in and out."""
    answer = host.call("/echo?q=1", "POST", {"X-Given": "yes"}, b"x" * 5_000_000)
    assert (answer.status, answer.body) == (201, b"x" * 100)
    assert answer.headers["Content-Type"] == "text/x; charset=latin-1"
    assert answer.headers["X-Url"] == f"http://127.0.0.1:{host.port}/echo?q=1"
    assert (answer.headers["X-Seen"], answer.headers["X-Length"]) == ("yes", "5000000")


def test_an_exception_is_500_and_logged_once(host):
    """The caller learns nothing; the log has the function's name and one traceback."""
    answer = host.call("/broken")
    assert (answer.status, answer.body) == (500, b"")
    assert (host.logged("function broken failed"), host.logged("RuntimeError: broken on purpose")) == (1, 1)


def test_a_function_that_returns_nothing_is_500(host):
    """As on Azure, whose worker cannot convert None."""
    assert host.call("/does/none").status == 500
    assert host.logged("an HTTP function returned NoneType") == 1


@pytest.mark.parametrize("path", ["/secret", "/admin-only"])
@pytest.mark.parametrize(
    ("headers", "query", "status"),
    [
        ({}, "", 401),
        ({"x-functions-key": "wrong"}, "", 401),
        ({"x-functions-key": OPERATOR_KEY}, "", 200),
        ({}, f"?code={OPERATOR_KEY}", 200),
    ],
)
def test_keys(host, path, headers, query, status):
    """FUNCTION and ADMIN level need the operator's key; without it the answer is an empty 401."""
    answer = host.call(path + query, headers=headers)
    assert answer.status == status
    assert answer.body == (b"" if status == 401 else b'{"secret": true}')


async def test_without_a_key_nothing_is_open():
    """An empty OPERATOR_KEY matches no key, not even an empty one."""
    listener = HttpListener(functions=[], prefix="", key="", invoker=None, grace=1.0)
    assert not listener._has_key(make_mocked_request("GET", "/secret"))
    assert not listener._has_key(make_mocked_request("GET", "/secret?code=", {"x-functions-key": ""}))
