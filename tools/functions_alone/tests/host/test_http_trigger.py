"""HTTP: routes, methods, keys, bodies, failures."""

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from aiohttp.test_utils import make_mocked_request

from functions_alone.host.http import MAX_BODY_BYTES, MAX_REQUEST_LINE_BYTES, HttpListener
from functions_alone.host.routes import compile_route, without_dots
from functions_alone.host.settings import HostSettings
from functions_alone.tests.support.host_process import FUNCTION_KEY, LISTED_ORIGINS

FACTS = json.loads((Path(__file__).parents[4] / "tests/data/azure_host/http.json").read_text())


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
    ("method", "status"),
    [("GET", 200), ("DELETE", 200), ("HEAD", 404), ("OPTIONS", 404), ("POST", 404)],
)
def test_a_method_that_the_function_does_not_name_is_404(host, method, status):
    """HEAD and OPTIONS too: the route is not there for them."""
    answer = host.call("/items/5", method)
    assert (answer.status, answer.headers["Allow"]) == (status, None)


@pytest.mark.parametrize(
    ("query", "given"),
    [
        ("limit=", {}),
        ("limit", {}),
        ("&=&a=1&", {"a": "1"}),
        ("a=&a=1", {"a": ",1"}),
        ("a+b=c%2Bd%26", {"a b": "c+d&"}),
        ("a=%ff", {"a": "%ff"}),
        ("a=%C3%A9%ff%C3", {"a": "é%ff%C3"}),
        ("a=%c0%80%ED%A0%80", {"a": "%c0%80%ED%A0%80"}),
    ],
)
def test_of_the_query_empty_values_are_dropped_and_what_is_no_utf_8_stays(host, query, given):
    """Several values of one name become one."""
    assert host.call(f"/items/5?{query}").json()["query"] == given


@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("/files/a%2Fb", "a%2Fb"),
        ("/files/a%252Fb", "a%2Fb"),
        ("/files/a/b/", "a/b/"),
        ("/files/%ff%C3%A9", "%ffé"),
    ],
)
def test_a_path_is_decoded_but_for_slashes_and_what_is_no_utf_8(host, path, given):
    """And the rest of a path keeps the slash at its end."""
    assert host.call(path).json()["path"] == given


@pytest.mark.parametrize(
    ("template", "path", "parameters"),
    [
        ("a/{x}", "/a/b%2Fc", {"x": "b%2Fc"}),
        ("a/{x}", "/a/b/", {"x": "b"}),
        ("a/{x}", "/a/b//", None),
        ("a/{x}", "//a/b", None),
        ("a/{x?}", "/a", {}),
        ("a/{*x}", "/a", {}),
        ("a/{x:int}", "/a/+5", {"x": "+5"}),
        ("a/{x:int}", "/a/-2147483648", {"x": "-2147483648"}),
        ("a/{x:int}", "/a/2147483648", None),
        ("a/{x:int}", "/a/99999999999", None),
        ("a/{x:int}", "/a/5x", None),
        ("a/{x:long}", "/a/99999999999", {"x": "99999999999"}),
        ("{x:maxlength(0)?}", "/", {}),
        ("{x:maxlength(0)?}", "/a", None),
        ("a/{x:alpha}", "/a/Ab", {"x": "Ab"}),
        ("a/{x:alpha}", "/a/a1", None),
        ("a/{x:bool}-{y:int}", "/a/True-1", {"x": "True", "y": "1"}),
        ("a/{x:bool}-{y:int}", "/a/1-1", None),
    ],
)
def test_routes_match_as_in_azure(template, path, parameters):
    """What a constraint takes, and what becomes of slashes."""
    assert compile_route("", template).match(path) == parameters


def test_the_first_route_that_fits_answers_by_the_names_of_the_functions(host):
    """Not the most specific one: `shadow_any` comes before `shadow_exact` (host.md 1)."""
    assert host.call("/shadow/exact").json() == {"route": "any"}


@pytest.mark.parametrize("path", FACTS["paths"], ids=str)
def test_dots_are_followed_and_a_number_sign_is_part_of_a_path(host, path):
    """Encoded or not, before a route is looked for."""
    assert host.call(path["sent"]).status == path["status"]


@pytest.mark.parametrize(
    ("path", "followed"),
    [
        ("/", "/"),
        ("/a//b/", "/a//b/"),
        ("/a/./b/.", "/a/b/"),
        ("/a/b/..", "/a/"),
        ("/a/../../b", "/b"),
        ("/..a/.b./c..", "/..a/.b./c.."),
        ("/a%2F../b", "/a%2F../b"),
    ],
)
def test_dots_in_a_path_lead_to_another(path, followed):
    """Only where they are a whole part of it, and never above the root."""
    assert without_dots(path) == followed


@pytest.mark.parametrize("url", FACTS["urls"], ids=lambda url: url["sent"])
def test_a_function_sees_an_address_that_was_encoded_anew(host, url):
    """Its path; the query stays as it was sent."""
    seen = host.call(url["sent"]).json()["url"]
    assert seen == f"http://127.0.0.1:{host.port}{url['seen']}"


def test_a_header_without_a_value_is_dropped(host):
    """A function does not see it."""
    seen = host.call("/headers?add=[]", headers={"X-Empty": "", "X-Full": "yes"}).json()
    assert ("x-empty" in seen, seen["x-full"]) == (False, "yes")


def test_of_several_headers_of_an_answer_with_one_name_the_last_is_sent(host):
    """But each cookie is."""
    facts = FACTS["answer headers"]
    answer = host.call(f"/headers?add={quote(json.dumps(facts['set']))}")
    names = {name for name, _ in facts["sent"]}
    sent = [(name, value) for name, value in answer.headers.items() if name in names]
    assert sorted(sent) == sorted(map(tuple, facts["sent"]))


def test_a_body_of_unknown_length_arrives_empty(host):
    """Azure's host hands over what a Content-Length announces, and nothing else."""
    answer = host.call("/echo", "POST", {"X-Given": "yes"}, iter([b"a chunk"]))
    assert (answer.status, answer.headers["X-Length"]) == (201, "0")


def test_a_body_that_is_announced_as_too_large_is_500_at_once(host):
    """Before any of it has come."""
    announced = {"Content-Length": str(MAX_BODY_BYTES + 1)}
    assert host.call("/echo", "POST", announced).status == 500
    assert host.call("/nowhere", "POST", announced).status == 404


def test_a_header_that_is_not_ascii_is_400(host):
    """Whatever function it was meant for."""
    assert host.call("/items/5", headers={"X-Name": b"\xc3\xa9"}).status == 400


def test_a_request_line_that_is_too_long_is_414(host):
    """With method and version it may have 8 kB."""
    longest = "/items/5?a=".ljust(MAX_REQUEST_LINE_BYTES - len("GET  HTTP/1.1\r\n"), "x")
    assert [host.call(longest + more).status for more in ("", "x")] == [200, 414]


def test_the_home_page_can_be_switched_off(host):
    """By the setting that the deployed app has; else `/` answers 200."""
    assert [(answer.status, answer.body) for answer in [host.call("/")]] == [(204, b"")]


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
    assert (
        host.logged("function broken failed"),
        host.logged("RuntimeError: broken on purpose"),
    ) == (1, 1)


def test_a_function_that_returns_nothing_is_500(host):
    """As on Azure, whose worker cannot convert None."""
    assert host.call("/does/none").status == 500
    assert host.logged("an HTTP function returned NoneType") == 1


@pytest.mark.parametrize(
    ("headers", "query", "status"),
    [
        ({}, "", 401),
        ({"x-functions-key": "wrong"}, "", 401),
        ({"x-functions-key": FUNCTION_KEY}, "", 200),
        ({}, f"?code={FUNCTION_KEY}", 200),
    ],
)
def test_keys(host, headers, query, status):
    """FUNCTION level needs the functions' key; without it the answer is an empty 401."""
    answer = host.call(f"/secret{query}", headers=headers)
    assert answer.status == status
    assert answer.body == (b"" if status == 401 else b'{"secret": true}')


WITH_KEY = {"x-functions-key": FUNCTION_KEY}


@pytest.mark.parametrize("headers", [{}, WITH_KEY], ids=["no key", "the key"])
def test_what_needs_the_master_key_stays_shut(host, headers):
    """Of functions those of ADMIN level: this host has no such key."""
    assert host.call("/admin-only", headers=headers).status == 401


@pytest.mark.parametrize("page", FACTS["pages of the host"], ids=str)
def test_pages_of_the_host_are_shut_as_in_azure(host, page):
    """But for the one that says that the host is there."""
    answer = host.call(page["path"].upper(), headers=WITH_KEY if page["key"] else {})
    assert answer.status == page["status"]
    if "authenticate" in page:
        assert answer.headers["WWW-Authenticate"] == page["authenticate"]


@pytest.mark.parametrize("sent", FACTS["headers"], ids=str)
def test_headers_may_have_32_kilobytes_and_be_a_hundred(host, sent):
    """All together, and not each."""
    headers = {f"X-{number}": "x" * sent["bytes"] for number in range(sent["count"])}
    assert host.call("/items/5", headers=headers).status == sent["status"]


def test_an_answer_has_no_length(host):
    """It is sent in chunks; one without a body is not."""
    answers = [host.call("/items/5"), host.call("/nowhere")]
    assert [
        (answer.headers["Transfer-Encoding"], answer.headers["Content-Length"])
        for answer in answers
    ] == [("chunked", None), (None, "0")]


def test_a_caller_that_knows_no_chunks_gets_a_length(host):
    """HTTP/1.0 has none; such a caller is a proxy or a tool for load."""
    status, headers, body = host.call_of_1_0("/items/special")
    assert (status, headers["Transfer-Encoding"]) == (200, None)
    assert int(headers["Content-Length"]) == len(body)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example:80"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "localhost"}, 200),
        ({"Host": "[::1]:80", "Origin": "http://[::1]:80"}, 200),
    ],
)
def test_pages_of_other_sites_get_nothing(host, headers, status):
    """Neither by their own address nor by a name of theirs that leads here, also if they know the key."""
    assert host.call(f"/secret?code={FUNCTION_KEY}", headers=headers).status == status


@pytest.mark.parametrize("origin", LISTED_ORIGINS)
def test_a_page_of_a_listed_origin_may_call(host, origin):
    """Whatever it asks for, also where a key is needed, which a question has not; and for that origin alone."""
    headers = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "idempotency-key,content-type",
    }
    answer = host.call("/secret", "OPTIONS", {"Origin": origin} | headers)
    assert (answer.status, answer.body) == (204, b"")
    assert {
        name: answer.headers[f"Access-Control-Allow-{name}"]
        for name in ("Origin", "Methods", "Headers")
    } == {
        "Origin": origin,
        "Methods": "POST",
        "Headers": "idempotency-key,content-type",
    }
    assert (answer.headers["Vary"], answer.headers["Access-Control-Allow-Credentials"]) == (
        "Origin",
        None,
    )
    for foreign in ("https://evil.example", f"{origin}.evil.example", "*", ""):
        refused = host.call("/secret", "OPTIONS", {"Origin": foreign} | headers)
        assert (refused.status, refused.headers["Access-Control-Allow-Origin"]) == (403, None)


def test_a_page_of_a_listed_origin_reads_what_is_answered_and_needs_the_key_as_ever(host):
    """It reads refusals too. Whoever comes without an origin is told nothing of it."""
    listed = {"Origin": LISTED_ORIGINS[0]}
    for path, status in (
        ("/items/5", 200),
        ("/nowhere", 404),
        ("/secret", 401),
        (f"/secret?code={FUNCTION_KEY}", 200),
    ):
        answer = host.call(path, headers=listed)
        assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (
            status,
            LISTED_ORIGINS[0],
        )
        assert host.call(path).headers["Access-Control-Allow-Origin"] is None


def test_whoever_has_the_key_may_kill_a_host(start_host):
    """It says which one it is; after the answer nothing of it is left, and no other method does anything."""
    host = start_host("echo")
    key = {"x-functions-key": FUNCTION_KEY}
    assert [host.call("/local/host", method).status for method in ("GET", "DELETE")] == [401, 401]
    assert host.call("/local/host", "POST", key).status == 404
    assert host.call("/local/host", headers=key).json() == {"host": host.process.pid}
    assert host.call("/local/host", "DELETE", key).status == 200
    assert host.process.wait() == -signal.SIGKILL


def test_a_host_lists_all_hosts_of_its_runner_and_kills_the_one_that_is_named(start_host, tmp_path):
    """No process that the runner does not know, and none that has ended."""
    hosts_file = tmp_path / "hosts.json"
    host = start_host("echo", LOCAL_HOSTS_FILE=str(hosts_file))
    key = {"x-functions-key": FUNCTION_KEY}
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(99)"]) as other:
        hosts = [
            {"name": "host-1", "pid": host.process.pid, "runs": True, "endedAt": None},
            {"name": "host-2", "pid": other.pid, "runs": True, "endedAt": None},
            {"name": "host-3", "pid": 1, "runs": False, "endedAt": "2026-01-31T08:15:00+00:00"},
        ]
        hosts_file.write_text(json.dumps(hosts))
        seen = host.call("/local/host", headers=key).json()
        assert seen == {"host": host.process.pid, "hosts": hosts}
        for pid in (1, os.getpid(), "x", f"0{other.pid}"):
            assert host.call(f"/local/host?pid={pid}", "DELETE", key).status == 404
        assert host.call(f"/local/host?pid={other.pid}", "DELETE").status == 401
        assert host.call(f"/local/host?pid={other.pid}", "DELETE", key).status == 200
        assert other.wait() == -signal.SIGKILL
    assert host.call("/local/host", headers=key).status == 200


async def test_without_a_key_nothing_is_open():
    """An empty LOCAL_FUNCTION_KEY matches no key, not even an empty one."""
    listener = HttpListener(functions=[], prefix="", own=HostSettings.read({}), invoker=None)
    assert not listener._has_key(make_mocked_request("GET", "/secret"))
    assert not listener._has_key(
        make_mocked_request("GET", "/secret?code=", {"x-functions-key": ""})
    )


def test_a_packed_body_arrives_as_it_was_sent(host):
    """As in Azure; and what is small on its way does not grow in the host."""
    packed = gzip.compress(b"x" * 10_000_000)
    headers = {"Content-Encoding": "gzip", "X-Given": "a"}
    answer = host.call("/echo", "POST", headers, packed)
    assert (answer.body, answer.headers["X-Length"]) == (packed[:100], str(len(packed)))
