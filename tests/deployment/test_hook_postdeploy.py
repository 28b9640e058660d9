"""The hook that waits after a deployment until the app is healthy."""

import contextlib
import socket
import subprocess
import threading
import time
from contextlib import contextmanager

import pytest

from tests.support.certificates import authority, signed_by
from tests.support.hooks import serving

HOOK = "postdeploy.py"
KNOWN = {
    "APP_NAME": "func-x",
    "AZURE_RESOURCE_GROUP": "rg-test",
    "AZURE_SUBSCRIPTION_ID": "a-subscription",
    "RESOURCE_MANAGER_URL": "http://127.0.0.1:1",
    "POSTDEPLOY_SECONDS": "0",
}
NOT_HEALTHY = {("app-not-healthy", "APP_URL")}
FAST_CLOCK = """
import queue, threading, time  # which keep the real clock
now = [0.0]
time.monotonic = lambda: now[0]
def sleep(seconds):
    now[0] += seconds
time.sleep = sleep
"""


@pytest.fixture
def app():
    """An app that gives one answer after the other to a health check, and the last one for ever."""

    class App:
        def __init__(self):
            self.answers = []
            self.requests = 0

        def answer(self, method, path, _):
            assert (method, path) == ("GET", "/api/health")
            self.requests += 1
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    app = App()
    with serving(app.answer) as app.url:
        yield app


def look(project, url, before="", **given):
    return project.run(HOOK, before, **KNOWN | {"APP_URL": url} | given)


def test_a_deployment_is_a_success_once_the_app_is_healthy(project, app):
    """It may take a moment; then the pages are named, and how to get the key."""
    app.answers += [(404, b""), (0, b""), (200, b"{}")]
    ran = look(project, app.url, FAST_CLOCK, POSTDEPLOY_SECONDS="30")
    assert (ran.code, ran.err) == (0, "")
    assert f"{app.url}/console" in ran.out
    assert "az functionapp keys list" in ran.out


@pytest.mark.parametrize("status", [201, 301, 302, 307, 404, 500, 503])
def test_an_app_that_does_not_work_is_a_failure(project, app, status):
    """azd alone would call it a success. A redirect says nothing, wherever it leads (hooks.md 8)."""
    with serving(lambda *_: (200, b"{}")) as elsewhere:
        content = f"{elsewhere}/healthy" if status in (301, 302, 307) else b'{"tables": "refused"}'
        app.answers.append((status, content))
        ran = look(project, app.url)
    assert (ran.code, ran.faults) == (1, NOT_HEALTHY)
    assert str(status) in ran.err
    assert '--apps "appi-x"' in ran.err
    assert isinstance(content, str) or '{"tables": "refused"}' in ran.err


@contextmanager
def trickling(sent):
    """A server that sends this, and then a byte now and then until the client gives up."""
    ended = threading.Event()

    def answer(connection):
        with contextlib.suppress(OSError), connection:
            connection.recv(10_000)
            connection.sendall(sent)
            while not ended.wait(0.2):
                connection.sendall(b"x")

    def serve():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=answer, args=[connection]).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        ended.set()


@pytest.mark.parametrize(
    "sent",
    [b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{", b"HTTP/1.1 200 OK\r\nX: "],
    ids=["body", "headers"],
)
def test_an_answer_that_stalls_is_no_answer(project, sent):
    """The limit is that of the whole answer, not of each byte (hooks.md 7)."""
    began = time.monotonic()
    with trickling(sent) as url:
        ran = look(project, url)
    assert (ran.code, ran.faults) == (1, NOT_HEALTHY)
    assert time.monotonic() - began < 30


@pytest.fixture
def untrusted(tmp_path):
    """The URL of an HTTPS server whose certificate nobody trusts, which is healthy."""
    certificate = tmp_path / "server.pem"
    certificate.write_text(signed_by(authority(), "127.0.0.1").pem())
    with serving(lambda *_: (200, b"{}"), certificate) as url:
        yield url


def test_a_certificate_that_is_not_trusted_here_is_no_fault_of_the_app(project, untrusted):
    """The hook fails immediately, since waiting changes nothing."""
    ran = look(project, untrusted, FAST_CLOCK, POSTDEPLOY_SECONDS="600")
    assert (ran.code, ran.faults) == (1, {("certificate-untrusted", "127.0.0.1")})
    assert ran.out == ""


def test_an_azure_that_is_not_trusted_here_is_not_waited_for(project, untrusted):
    """The hook prints immediately that it could not look for the functions."""
    given = {"RESOURCE_MANAGER_URL": untrusted, "FRONT_DOOR_ID": "an-id"}
    ran = look(project, untrusted, FAST_CLOCK, POSTDEPLOY_SECONDS="600", **given)
    assert (ran.code, ran.err) == (0, "")
    assert "[certificate-untrusted]" in ran.out
    assert "so far" not in ran.out  # no report of a wait


def test_an_app_that_is_not_there_is_a_failure(project):
    """Nobody listens at that address."""
    ran = look(project, "http://127.0.0.1:1")
    assert (ran.code, ran.faults) == (1, NOT_HEALTHY)


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b'{"title": "caf\xc3\xa9"}', '{"title": "caf\u00e9"}'),
        (b"\x1b[31mred\r\n\x00line\x07", "[31mred line"),
        (b"\x1f\x8b\x08\xff", "\ufffd"),
        (("\u00e9" * 600).encode(), "\u00e9" * 500),
    ],
    ids=["UTF-8", "control characters", "no text", "long"],
)
def test_the_answer_is_shown_as_text(project, app, body, shown):
    """Whatever its type: 500 characters at most, and none that a terminal obeys (hooks.md 13)."""
    app.answers.append((503, body))
    ran = look(project, app.url)
    assert ran.faults == NOT_HEALTHY
    assert shown in ran.err
    assert shown * 2 not in ran.err
    assert all(character.isprintable() or character == "\n" for character in ran.err)


def test_a_terminal_of_another_encoding_breaks_nothing(project, app):
    """As where Windows reads what a hook prints of another program's words (hooks.md 13)."""
    app.answers.append((200, b"{}"))
    project.replies([["azd", [1, "\u2603", ""]]])
    ran = look(project, app.url, PYTHONIOENCODING="ascii")
    assert (ran.code, ran.err) == (0, "")


@pytest.mark.parametrize(
    ("given", "faults"),
    [
        (
            dict.fromkeys(["APP_NAME", "APP_URL", "AZURE_RESOURCE_GROUP"], ""),
            {
                ("variable-missing", "APP_NAME"),
                ("variable-missing", "APP_URL"),
                ("variable-missing", "AZURE_RESOURCE_GROUP"),
            },
        ),
        ({"APP_URL": "https://app x"}, {("url-invalid", "APP_URL")}),
        ({"APP_URL": "https://[app"}, {("url-invalid", "APP_URL")}),
        ({"APP_URL": "http://app.example.com"}, {("url-invalid", "APP_URL")}),
        (
            {"POSTDEPLOY_SECONDS": "1.5", "APP_NAME": ""},
            {("number-invalid", "POSTDEPLOY_SECONDS"), ("variable-missing", "APP_NAME")},
        ),
    ],
)
def test_what_azd_does_not_know_is_named(project, given, faults):
    """Before anything is called, all of it together (hooks.md 15)."""
    ran = look(project, "http://127.0.0.1:1", **given)
    assert (ran.code, ran.faults, project.calls) == (1, faults, [])


def test_an_app_of_another_name_is_named_as_it_is(project, app):
    """The command for the log holds no name that was made up (hooks.md 15)."""
    app.answers.append((503, b""))
    assert '--apps "other"' in look(project, app.url, APP_NAME="other").err


def test_what_cannot_be_reached_from_here_is_no_failure(project):
    """Behind Front Door the app answers nobody else; the command to ask there is printed."""
    ran = look(project, "http://127.0.0.1:1", FRONT_DOOR_ID="an-id")
    assert (ran.code, ran.err, "curl" in ran.out) == (0, "", True)


def test_a_long_wait_is_reported_twice_a_minute(project, app):
    """Nobody takes it for dead, and nobody reads a line for each try."""
    app.answers.append((503, b""))
    ran = look(project, app.url, FAST_CLOCK, POSTDEPLOY_SECONDS="100")
    assert ran.faults == NOT_HEALTHY
    assert app.requests > 40
    assert len(ran.out.splitlines()) == 3


def test_progress_is_seen_at_once(project, app):
    """azd shows what comes through a pipe."""
    app.answers += [(200, b"{}")]
    given = {"APP_URL": app.url, "POSTDEPLOY_SECONDS": "600"}
    with subprocess.Popen(
        project.command(HOOK),
        env=project.environment(**KNOWN | given),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as hook:
        watchdog = threading.Timer(20, hook.kill)
        watchdog.start()
        assert hook.stdout.readline()
        watchdog.cancel()
        assert hook.poll() is None  # it goes on asking for the functions
        hook.kill()
