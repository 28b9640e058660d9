"""Runs the hooks of a deployment as azd does, with stand-ins for the programs and the APIs that they call."""

import http.server
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from development.servicebus_config import ROOT

HOOKS = ROOT / "infra/hooks"
TOKEN = "a-token-of-azd"  # noqa: S105 - not one
READ = (
    *(
        "infra/main.parameters.json",
        "infra/options/app.json",
        "infra/agents.json",
    ),
    *("engine/__init__.py", "engine/urls.py", "requirements.txt"),
)
"""What the hooks read of the project, beside their own folder."""
FAULT = re.compile(r"^- ([^:\n]+): .*?\[([a-z-]+)\]$", re.MULTILINE | re.DOTALL)
STAND_IN = """#!{python} -S
import json, os, sys
from pathlib import Path
here, command = Path(sys.argv[0]).resolve().parent, [os.path.basename(sys.argv[0]), *sys.argv[1:]]
if "--file" in command:
    command[-1] = Path(command[-1]).read_text()
with (here / "calls").open("a") as calls:
    calls.write(json.dumps(command) + "\\n")
if "--target" in command:
    folder = Path(command[command.index("--target") + 1])
    (folder / "bin").mkdir(parents=True)
    (folder / "module.py").write_text("new")
    (folder / "bin/uv").symlink_to(here / "uv")
for start, (code, out, err) in json.loads((here / "replies").read_text()):
    if " ".join(command).startswith(start):
        sys.stdout.buffer.write(out.encode())
        sys.stderr.buffer.write(err.encode())
        sys.exit(code)
"""
RUN = "import sys, runpy; sys.path.insert(0, {folder!r}); runpy.run_path({hook!r}, run_name='__main__')"


@cache
def oldest_python() -> str:
    """Return the oldest Python here that azd would take: 3.7.6 or later."""
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for minor in range(7, sys.version_info.minor):
        kept = sorted(versions.glob(f"3.{minor}.*/bin/python3"))
        named = shutil.which(f"python3.{minor}")
        for python in filter(None, [*map(str, kept), named]):
            probe = [python, "-c", "import ssl, sys; sys.exit(sys.version_info < (3, 7, 6))"]
            if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
                return python
    return sys.executable


class Ran(NamedTuple):
    """What a hook did."""

    code: int
    out: str
    err: str

    @property
    def faults(self):
        """The codes and places of the faults that it printed."""
        found = FAULT.findall(self.err)
        assert len(found) == len(re.findall(r"^- ", self.err, re.MULTILINE)), self.err
        assert "Traceback" not in self.err, self.err
        return {(code, place) for place, code in found}


class Project:
    """A copy of what the hooks read, in a folder whose name shells and Windows take for syntax."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / 'it\'s a "project" $HOME; (1) & 100%'
        self.hooks = self.root / "infra/hooks"
        ignore = shutil.ignore_patterns("__pycache__", "hooks_env")
        shutil.copytree(HOOKS, self.hooks, ignore=ignore)
        for name in READ:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        self.bin = folder / "bin"
        self.bin.mkdir()
        (self.bin / "calls").touch()
        self.replies([])

    def program(self, name: str) -> None:
        """Put a stand-in on the path."""
        (self.bin / name).write_text(STAND_IN.format(python=sys.executable))
        (self.bin / name).chmod(0o755)

    def options(self, **changes) -> None:
        """Change options of the app."""
        path = self.root / "infra/options/app.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    def replies(self, replies) -> None:
        """Let stand-ins answer commands that begin like this: exit code, output, error output."""
        (self.bin / "replies").write_text(json.dumps(replies))

    @property
    def calls(self):
        """The commands that the stand-ins were called with."""
        return [json.loads(line) for line in (self.bin / "calls").read_text().splitlines()]

    def environment(self, **given):
        """What azd gives a hook: here nothing but this, and only stand-ins on the path."""
        return {"PATH": str(self.bin), "PYTHONDONTWRITEBYTECODE": "1", **given}

    def command(self, hook, before=""):
        """How azd starts a hook; `before` is run first."""
        path = str(self.hooks / hook)
        if not before:
            return [oldest_python(), path]
        code = before + "\n" + RUN.format(folder=str(self.hooks), hook=path)
        return [oldest_python(), "-c", code]

    def run(self, hook, before="", **given) -> Ran:
        """Run a hook without a terminal."""
        ran = subprocess.run(
            self.command(hook, before),
            cwd=self.hooks,
            env=self.environment(**given),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        assert TOKEN not in ran.stdout + ran.stderr
        return Ran(ran.returncode, ran.stdout, ran.stderr)


@contextmanager
def serving(answer, certificate=None):
    """An HTTP server; `answer(method, path, body)` returns status and content. Status 0 breaks the connection.

    With the file of a certificate and its key, it is an HTTPS server.
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.command in ("POST", "PUT", "PATCH"):
                assert self.headers["Content-Length"] is not None
            if self.headers["Authorization"]:
                assert self.headers["Authorization"] == f"Bearer {TOKEN}"
            status, content = answer(self.command, self.path, json.loads(body or "null"))
            if not status:
                return
            self.send_response(status)
            if isinstance(content, str):
                self.send_header("Location", content)
                content = b""
            self.end_headers()
            given = b"" if content is None else content
            self.wfile.write(given if isinstance(given, bytes) else json.dumps(given).encode())

        do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815 - the names are the server's

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        yield f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}"
        server.shutdown()


SIGNED_IN = ["azd auth token", [0, json.dumps({"token": TOKEN}), "WARNING: azd is out of date\n"]]
"""How azd answers where somebody is signed in: warnings are on the error output."""
SIGNED_OUT = ["azd auth token", [1, "\nERROR: not logged in, run `azd auth login`\n", ""]]
"""azd prints its errors on the output."""
