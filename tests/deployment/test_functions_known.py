"""The script that looks for the functions after a deployment, with stand-ins for azd and Resource Manager."""

import http.server
import itertools
import json
import os
import re
import subprocess
import sys
import threading

import pytest
from deploying import AGENTS

from development.servicebus_config import ROOT

SCRIPT = ROOT / "infra/hooks/functions.py"
TOKEN = "a-token-of-azd"  # noqa: S105 - not one
SITE = "/subscriptions/a-subscription/resourceGroups/rg-test/providers/Microsoft.Web/sites/func-abc"
KNOWN = {
    "AZURE_SUBSCRIPTION_ID": "a-subscription",
    "AZURE_RESOURCE_GROUP": "rg-test",
    "APP_NAME": "func-abc",
    "SIMULATED_SERVICES": "true",
    "POSTDEPLOY_SECONDS": "0",
}


@pytest.fixture(scope="module")
def started(functions, required_functions):
    """The functions of the app that no HTTP call starts: with all agents, and without the optional ones."""
    found = {
        which: {name for name, each in some.items() if each["type"] != "httpTrigger"}
        for which, some in (("all", functions), ("required", required_functions))
    }
    assert len(found["required"]) > 12
    return found


class Azure:
    """Azure's list of functions, on two pages; it gets what is missing with a renewal, if that works."""

    def __init__(self, names):
        self.names = sorted(names)
        self.missing = []
        self.works = True
        self.refusals = iter(())
        """Statuses of the next answers to a question for the list; zero breaks the connection."""
        self.asked = []

    def answer(self, method, path, address):
        """Return status and body."""
        self.asked.append((method, path.partition("?")[0].removeprefix(SITE)))
        if method == "POST":
            self.names, self.missing = self.names + (self.missing if self.works else []), []
            return (204, None) if self.works else (400, {"error": "the host does not run"})
        refusal = next(self.refusals, None)
        if refusal is not None:
            return refusal, {"error": "ask again later"}
        first = "$skip" not in path
        shown = self.names[:5] if first else self.names[5:]
        value = [{"name": f"func-abc/{name}", "properties": {}} for name in shown]
        more = {"nextLink": f"{address}{path}&$skip=5"} if first else {}
        return 200, {"value": value, **more}


@pytest.fixture
def azure(started):
    """Azure's Resource Manager, at an address of this machine."""
    known = Azure(started["all"])

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self):
            assert self.headers["Authorization"] == f"Bearer {TOKEN}"
            assert self.command == "GET" or self.headers["Content-Length"] == "0"
            status, told = known.answer(self.command, self.path, known.url)
            if not status:
                return  # the connection is closed
            self.send_response(status)
            self.end_headers()
            if told:
                self.wfile.write(json.dumps(told).encode())

        do_GET = do_POST = answer  # noqa: N815 - the names are the server's

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        known.url = f"http://127.0.0.1:{server.server_port}"
        yield known
        server.shutdown()


@pytest.fixture
def run(azure, tmp_path):
    """Run the script as the hook does; its pauses are none."""

    def run_with(**given):
        azd = tmp_path / "azd"
        azd.write_text(f"""#!{sys.executable}\nprint('{{"token": "{TOKEN}"}}')\n""")
        azd.chmod(0o755)
        code = f"import runpy, sys, time; time.sleep = lambda _: None; sys.path.insert(0, {str(SCRIPT.parent)!r}); runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
        return subprocess.run(
            [sys.executable, "-c", code],
            env=KNOWN
            | {"RESOURCE_MANAGER_URL": azure.url, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
            | given,
            capture_output=True,
            text=True,
            check=False,
        )

    return run_with


def test_azure_knows_each_function_that_it_has_to_start(azure, run, started):
    """Those of all agents here; it is asked once, and told nothing."""
    ran = run()
    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"all {len(started['all'])} functions" in ran.stdout
    assert azure.asked == [("GET", "/functions")] * 2


@pytest.mark.parametrize("name", ["submission_record", "supervisor_sweep", "given_up_dead_letters"])
def test_a_function_that_nothing_would_start_is_a_failure(azure, run, name):
    """Its name is said, and what to do."""
    azure.names.remove(name)
    ran = run()
    assert ran.returncode == 1
    assert f"nothing starts {name}." in ran.stderr
    assert "az functionapp restart" in ran.stderr


def test_a_list_that_was_not_renewed_is_renewed(azure, run):
    """As *Refresh* in the portal does, while there is time."""
    azure.missing = [azure.names.pop() for _ in range(12)]
    ran = run(POSTDEPLOY_SECONDS="60")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [each for each in azure.asked if each[0] == "POST"] == [("POST", "/host/default/sync")]


def test_a_renewal_that_fails_is_tried_again(azure, run):
    """Until the time is up."""
    azure.works = False
    azure.names.remove("scheduler_wake")
    ran = run(POSTDEPLOY_SECONDS="1")
    assert ran.returncode == 1
    assert len([each for each in azure.asked if each[0] == "POST"]) > 1


def test_a_refusal_that_passes_is_waited_for(azure, run, started):
    """Azure asks for less, or is away for a while: what it says later counts."""
    azure.refusals = iter([429, 502, 503, 0])
    ran = run(POSTDEPLOY_SECONDS="60")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"all {len(started['all'])} functions" in ran.stdout


def test_a_refusal_that_lasts_is_told_when_the_time_is_up(azure, run):
    """Nobody knows then whether anything is missing."""
    azure.refusals = itertools.repeat(503)
    ran = run(POSTDEPLOY_SECONDS="1")
    assert ran.returncode == 0
    assert "Nobody looked whether Azure knows all functions: 503" in ran.stdout
    assert azure.asked.count(("GET", "/functions")) > 1


def test_a_refusal_after_an_answer_does_not_hide_what_was_missing(azure, run):
    """The last list counts."""
    azure.names.remove("scheduler_wake")
    azure.refusals = itertools.chain([None, None], itertools.repeat(503))
    ran = run(POSTDEPLOY_SECONDS="1")
    assert ran.returncode == 1
    assert "nothing starts scheduler_wake." in ran.stderr


@pytest.mark.parametrize("status", [401, 403, 404])
def test_whoever_may_not_ask_does_not_wait(azure, run, status):
    """Time changes nothing in that."""
    azure.refusals = itertools.repeat(status)
    ran = run(POSTDEPLOY_SECONDS="60")
    assert ran.returncode == 0
    assert f"Nobody looked whether Azure knows all functions: {status}" in ran.stdout
    assert azure.asked == [("GET", "/functions")]


def test_an_agent_without_an_address_is_not_missed(azure, run, started):
    """The app leaves it out."""
    azure.names = sorted(started["required"])
    given = {agent.address: "https://x" for agent in AGENTS if not agent.optional and agent.address}
    ran = run(SIMULATED_SERVICES="false", **given)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"all {len(started['required'])} functions" in ran.stdout


@pytest.mark.parametrize(
    "given",
    [{"RESOURCE_MANAGER_URL": "http://127.0.0.1:1"}, {"AZURE_RESOURCE_GROUP": "another"}],
    ids=["away", "no such app"],
)
def test_whoever_may_not_ask_is_told_how(azure, run, given):
    """Nothing fails, and the token is in no line."""
    azure.answer = lambda *_: (404, {"error": "ResourceNotFound"})
    ran = run(**given)
    assert ran.returncode == 0
    assert "az functionapp function list" in ran.stdout
    assert TOKEN not in ran.stderr + ran.stdout


def test_azd_runs_it_after_a_deployment_on_windows_too():
    """Whether the app may be called from here or not."""
    for end in ("sh", "ps1"):
        text = (ROOT / f"infra/hooks/postdeploy.{end}").read_text()
        assert "functions.py" in text
        assert len(re.findall(r"^ *(?:look_at_functions|Test-Functions)$", text, re.MULTILINE)) == 2


def test_who_takes_answers_is_looked_for_where_their_queue_is(tmp_path):
    """A business in which nobody outside is asked has neither."""
    (tmp_path / "hooks").mkdir()
    for name in ("functions.py", "manager.py"):
        (tmp_path / "hooks" / name).write_text((SCRIPT.parent / name).read_text())
    (tmp_path / "simulated.json").write_text("{}")
    found = {}
    for queue in ("answers", "status-example"):
        (tmp_path / "queues.json").write_text(json.dumps({"serviceBusQueues": [{"name": queue}]}))
        command = [sys.executable, "-c", "import functions; print(*functions.wanted({}))"]
        said = subprocess.run(
            command, cwd=tmp_path / "hooks", capture_output=True, text=True, check=True
        )
        found[queue] = "customers_answers" in said.stdout.split()
    assert found == {"answers": True, "status-example": False}
