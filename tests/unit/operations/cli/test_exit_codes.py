"""The exit codes of the command line hold for every failure, and no message repeats a secret."""

import os
import pwd
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import click
import httpx2
import pytest
from click.testing import CliRunner

from development.servicebus_config import ROOT
from operations.cli import main
from operations.cli.client import (
    Api,
    BrokenError,
    KeyRefusedError,
    UnreachableError,
    WrongUsageError,
)
from operations.cli.commands.options import given_time
from operations.cli.terminal import in_zone, show, table

SECRET = "s3cret"  # noqa: S105 - it is none
ORDER = {
    "orderId": "b00-1",
    "situation": "failed",
    "failedSteps": [],
    "waitsFor": [],
    "step": None,
    "completeBy": None,
    "notBefore": None,
    "updatedAt": "then",
    "reason": "☕ Zoë",
}
LIST = {"orders": [ORDER], "continuation": None}
SIGNED = ("--operator", "grace", "-m", "why")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    """Of this machine, nothing counts."""
    for name in ("HTTP_PORT", "OPERATOR_URL", "OPERATOR_KEY", "OPERATOR_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def run(*words, env=None, answer=None, monkeypatch=None):
    """Run a command, against an API that answers so."""
    if answer is not None:
        transport = httpx2.MockTransport(answer)
        monkeypatch.setattr(main, "Api", lambda url, *secrets: Api(url, *secrets, transport))
    return CliRunner().invoke(main.main, words, env=env)


def says_why(ran):
    """Whether a failure is one message without a traceback and a secret."""
    return bool(ran.stderr) and "Traceback" not in ran.stderr and SECRET not in ran.output


@pytest.mark.parametrize(
    "variables",
    [
        {"OPERATOR_KEY": f"{SECRET}\n"},
        {"OPERATOR_KEY": f"{SECRET}\r"},
        {"OPERATOR_KEY": f" {SECRET}"},
        {"OPERATOR_KEY": f"{SECRET}ü"},
        {"OPERATOR_TOKEN": f"{SECRET}\n"},
        {"OPERATOR_URL": f"http://127.0.0.1:{SECRET}"},
        {"OPERATOR_URL": f"https://[{SECRET}"},
        {"OPERATOR_URL": f"https://grace:{SECRET}@app.example"},
        {"OPERATOR_URL": f"https://app.example/api?code={SECRET}"},
        {"OPERATOR_URL": "https://app.example\r"},
        {"OPERATOR_URL": "https://"},
        {"OPERATOR_URL": f"https://{'a' * 70}.example", "OPERATOR_KEY": SECRET},
        {
            "OPERATOR_URL": "https://app.example",
            "OPERATOR_KEY": "k",
            "HTTPS_PROXY": f"no://grace:{SECRET}@proxy",
        },
        {
            "OPERATOR_URL": "https://app.example",
            "OPERATOR_KEY": "k",
            "HTTPS_PROXY": f"http://grace:{SECRET}/@proxy",
        },
        {
            "OPERATOR_URL": "https://app.example",
            "OPERATOR_KEY": "k",
            "SSL_CERT_FILE": "/no/such/file",
        },
    ],
)
def test_a_wrong_setting_is_wrong_usage_and_no_outage(variables):
    """A script that waits for an outage to pass would wait for ever (bugs2 56, bugs2 57)."""
    ran = run("list", env=variables)
    assert (ran.exit_code, says_why(ran)) == (2, True)


@pytest.mark.parametrize(
    "words",
    [
        ("answer", "b00-1", "photos", "[" * 20_000, "--operator", "grace"),
        ("answer", "b00-1", "photos", '{"n": NaN}', "--operator", "grace"),
        ("hold", "b00-\udcff", *SIGNED),
        ("hold", "b00-1", "--operator", "grace", "-m", "why \udcff"),
        ("show", "b" * 70_000),
        ("search", "key \udcff"),
        ("overview", "--watch", "nan"),
        ("overview", "--watch", "inf"),
        ("check", "--patience", "nan"),
        ("export", "/no/such/folder/file", *SIGNED),
        ("restore", "/no/such/file", *SIGNED),
    ],
    ids=lambda words: words[0],
)
def test_what_cannot_be_sent_or_read_is_wrong_usage(words, monkeypatch):
    """1 comes from the app alone (bugs2 57)."""
    ran = run(*words, answer=lambda _: pytest.fail("nothing can be sent"), monkeypatch=monkeypatch)
    assert (ran.exit_code, says_why(ran)) == (2, True)


def test_a_user_without_a_name_has_to_give_one(monkeypatch):
    """As in a container that runs as a number (bugs2 57)."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    ran = run("hold", "b00-1", "-m", "why")
    assert (ran.exit_code, "--operator" in ran.stderr) == (2, True)
    sent = run(
        *("hold", "b00-1", *SIGNED),
        answer=lambda _: httpx2.Response(202, json={"orderId": "b00-1", "status": "held"}),
        monkeypatch=monkeypatch,
    )
    assert sent.exit_code == 0


class App(BaseHTTPRequestHandler):
    """An app with one order, whose reason is in no machine's old code page."""

    def do_GET(self):
        body = httpx2.Response(200, json=LIST).content
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="module")
def app():
    """The address of the app."""
    server = HTTPServer(("127.0.0.1", 0), App)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def in_process(url, *words, stdout=subprocess.PIPE, **variables):
    """Run a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "operations", *words],
        cwd=ROOT,
        env={**os.environ, "OPERATOR_URL": url, "OPERATOR_KEY": SECRET, **variables},
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("words", [("list",), ("--help",), ("list", "--json", "--watch", "1")])
def test_an_output_that_cannot_be_written_is_a_fault_of_this_machine(app, words):
    """One line of a full disk, and none of a pipe that nobody reads any more (bugs2 57)."""
    with Path("/dev/full").open("wb") as full:
        ended = in_process(app, *words, stdout=full)
    assert (ended.returncode, len(ended.stderr.splitlines())) == (2, 1)
    reading, writing = os.pipe()
    os.close(reading)
    ended = in_process(app, *words, stdout=writing)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (2, b"")


def test_a_character_that_the_output_lacks_is_escaped(app):
    """As in the code page of a redirected output on Windows (bugs2 57)."""
    shown = in_process(app, "list", PYTHONIOENCODING="cp1252")
    assert (shown.returncode, b"\\u2615 Zo\xeb" in shown.stdout) == (0, True)


def always(status, **answer):
    return lambda request: httpx2.Response(status, **answer)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (always(200, json={}), BrokenError.exit_code),
        (always(200, json={"orders": None, "continuation": None}), BrokenError.exit_code),
        (always(200, content=b"[" * 100_000), UnreachableError.exit_code),
        (always(408), UnreachableError.exit_code),
        (always(429, json={"title": "too many"}), UnreachableError.exit_code),
        (always(400, json={"title": 1, "faults": None}), 1),
        (always(400, json={"title": "no", "faults": [{"a": 1}]}), 1),
        (always(401), KeyRefusedError.exit_code),
    ],
)
def test_an_answer_that_no_app_gives_has_an_exit_code_too(monkeypatch, answer, code):
    """From a proxy, or from an app of another version."""
    ran = run("list", answer=answer, monkeypatch=monkeypatch)
    assert (ran.exit_code, says_why(ran)) == (code, True)


def test_an_interrupted_command_was_not_refused(monkeypatch):
    """Shells have a code of their own for Ctrl-C."""

    def interrupted(_):
        raise KeyboardInterrupt

    assert run("list", answer=interrupted, monkeypatch=monkeypatch).exit_code == 130


def test_a_watch_outlives_every_failure_of_the_app(monkeypatch):
    """A restart, a fault of the app, a limit on calls; but no wrong key (bugs2 58)."""
    answers = [503, 500, 429, 200, 401]

    def answer(_):
        status = answers.pop(0)
        return httpx2.Response(status, json=LIST if status == 200 else {"title": "no"})

    monkeypatch.setattr("operations.cli.terminal.time.sleep", lambda _: None)
    ran = run("list", "--watch", "1", answer=answer, monkeypatch=monkeypatch)
    assert (ran.exit_code, answers, ran.stdout.count("b00-1")) == (4, [], 1)


@pytest.mark.parametrize(
    "text", ["2026-13-45T99:99:99Z", "0001-01-01T00:00:00Z", "2026-02-30 25:00 UTC"]
)
def test_digits_that_are_no_time_are_shown_as_they_are(monkeypatch, text):
    """A service may send them as its reason."""
    monkeypatch.setenv("TZ", "America/New_York")
    with click.Context(click.Command("list")) as context:
        context.meta["operators.in_utc"] = False
        assert in_zone(text)


def test_a_time_before_all_times_is_left_to_the_api():
    with click.Context(click.Command("bulk")) as context:
        context.meta["operators.in_utc"] = False
        assert given_time("0001-01-01 00:00")
    assert given_time("9999-12-31 23:59")


def test_a_terminal_may_be_of_any_width(monkeypatch):
    monkeypatch.setenv("COLUMNS", "2")
    assert table(("A", "B"), [("1", "some text")])


def test_a_key_that_is_sent_is_in_no_message(app):
    """Not even in that of the library which sends it (bugs2 56)."""
    api = Api(app, f"{SECRET}\n")
    with pytest.raises(WrongUsageError) as wrong:
        api.get("overview")
    assert SECRET not in str(wrong.value)


def test_a_watched_command_ends_with_a_fault_of_this_side():
    """It does not pass by itself."""

    def draw():
        raise WrongUsageError("a file")

    with pytest.raises(WrongUsageError):
        show(draw, in_json=False, every=1)
