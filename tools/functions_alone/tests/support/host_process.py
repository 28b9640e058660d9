"""A local host that runs the sample app, in a process of its own."""

import http.client
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass

from functions_alone.tests.support.places import PLATFORM, TOOLS
from functions_alone.tests.support.starts import STARTED
from functions_alone.tests.support.waiting import PATIENCE_SECONDS, until

SAMPLE_APP = PLATFORM / "tests/host/sample_app"
FUNCTION_KEY = "the-functions-key"
LISTED_ORIGINS = ("http://localhost:5173", "https://pages.example")
"""Of pages that may call the shared host from other sites."""
WORKER = re.compile(r"worker process (\d+) runs")
_numbers = itertools.count()


@dataclass(kw_only=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self):
        return json.loads(self.body)


class HostProcess:
    """Its log is the file `log`, looked at from byte `log_start` on. Its timers have locks of their own."""

    log_start = 0

    def __init__(
        self, folder, settings, functions=None, listen=("--port", "0"), app=SAMPLE_APP, **options
    ):
        number = next(_numbers)
        self.log = folder / f"host-{number}.log"
        command = [sys.executable, "-m", "functions_alone.host", "--app-dir", app, *listen]
        if functions:
            command += ["--functions", functions]
        options["env"] = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(TOOLS),
            "LOCAL_FUNCTION_KEY": FUNCTION_KEY,
        }
        options["env"] |= {"AzureFunctionsWebHost__hostid": f"alone{number}"} | settings
        with self.log.open("w") as log:
            STARTED["hosts"] += 1
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, **options
            )

    def ready(self):
        self.line = self.process.stdout.readline()
        if not self.line.startswith("host is ready"):
            self.stop()
            raise AssertionError(self.log.read_text())
        self.port = int(self.line.split("127.0.0.1:")[1].split()[0])
        return self

    def call(self, path, method="GET", headers=None, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return Answer(status=answer.status, headers=answer.headers, body=answer.read())
        finally:
            connection.close()

    def call_of_1_0(self, path):
        """What a caller with HTTP/1.0 gets: the status, the headers and the body."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE_SECONDS) as connection:
            connection.sendall(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            return answer.status, answer.headers, answer.read()

    def seen(self, kind):
        """What the functions of one kind of trigger were called with."""
        return self.call(f"/seen/{kind}").json()["seen"]

    def running(self, kind):
        """How many calls of one kind run, and how many ran at once."""
        answer = self.call(f"/seen/{kind}").json()
        return answer["running"], answer["highest"]

    def wait_for(self, kind, wanted=bool):
        """Wait until what was seen is as wanted, and return it."""
        return until(lambda: self.seen(kind), wanted)

    def wait_for_log(self, text, times):
        until(self.log.read_text, lambda log: log.count(text) == times)

    def let_time_pass(self, seconds):
        """Wait for as many runs of the timer, by the clock of the host, as take that long."""
        before = len(self.seen("timer"))
        self.wait_for("timer", lambda seen: len(seen) > before + seconds / TIMER_SECONDS)

    def logged(self, text):
        return self.log_text().count(text)

    def log_text(self):
        return self.log.read_bytes()[self.log_start :].decode()

    def ask_to_stop(self):
        """SIGTERM; returns when the host takes no calls any more."""
        self.process.send_signal(signal.SIGTERM)
        until(lambda: _refuses(self.port))

    def open_gate(self):
        """Let what waits at the gate go on, also when the host takes no calls any more."""
        os.kill(self.workers()[-1], signal.SIGUSR1)

    def workers(self):
        """The ids of its worker processes so far, as the log has them."""
        return [int(pid) for pid in WORKER.findall(self.log.read_text())]

    def stop(self, number=signal.SIGTERM):
        """Send the signal and wait for the end; returns the exit code."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self):
        """Wait for the end; returns the exit code."""
        try:
            return self.process.wait(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.process.stdout.close()


TIMER_SECONDS = 0.3
"""How long a run of the sample app's timer takes, at least."""


def _refuses(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
