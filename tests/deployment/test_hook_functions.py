"""The check after a deployment that Azure knows every function, with stand-ins for azd and Resource Manager."""

import itertools
import json

import pytest

from tests.support.deploying import AGENTS
from tests.support.hooks import SIGNED_OUT, TOKEN, serving

HOOK = "postdeploy.py"
NO_PAUSE = "import time\ntime.sleep = lambda _: None"
SITE = "/subscriptions/a-subscription/resourceGroups/rg-test/providers/Microsoft.Web/sites/func-abc"
KNOWN = {
    "AZURE_SUBSCRIPTION_ID": "a-subscription",
    "AZURE_RESOURCE_GROUP": "rg-test",
    "APP_NAME": "func-abc",
    "APP_URL": "http://127.0.0.1:1",
    "FRONT_DOOR_ID": "an-id",  # so that it does not call the app
    "SIMULATED_SERVICES": "true",
    "POSTDEPLOY_SECONDS": "0",
}


@pytest.fixture(scope="module")
def started(functions, required_functions):
    """The functions of the app that no HTTP call starts: with all agents, and without the optional ones."""
    found = {
        which: {name for name, trigger in some.items() if trigger["type"] != "httpTrigger"}
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
        self.requests = []

    def answer(self, method, path, body):
        """Return status and body."""
        assert body is None
        self.requests.append((method, path.partition("?")[0].removeprefix(SITE)))
        if method == "POST":
            self.names, self.missing = self.names + (self.missing if self.works else []), []
            return (204, None) if self.works else (400, {"error": "the host does not run"})
        refusal = next(self.refusals, None)
        if refusal is not None:
            return refusal, {"error": "ask again later"}
        first = "$skip" not in path
        shown = self.names[:5] if first else self.names[5:]
        value = [{"name": f"func-abc/{name}", "properties": {}} for name in shown]
        more = {"nextLink": f"{self.url}{path}&$skip=5"} if first else {}
        return 200, {"value": value, **more}


@pytest.fixture
def azure(started):
    """Azure's Resource Manager, at an address of this machine."""
    known = Azure(started["all"])
    with serving(known.answer) as known.url:
        yield known


@pytest.fixture
def run(azure, project):
    """Run the hook as azd does, without its pauses."""
    url = {"RESOURCE_MANAGER_URL": azure.url}
    return lambda **given: project.run(HOOK, NO_PAUSE, **KNOWN | url | given)


def missing(ran, *names):
    """Whether the hook failed because Azure does not know these functions."""
    assert (ran.code, ran.faults) == (1, {("functions-missing", "Azure's list of functions")})
    return all(name in ran.err for name in names)


def not_checked(ran, reason):
    """Whether the hook only printed that it could not look, and why."""
    assert (ran.code, ran.err) == (0, "")
    return "[functions-not-checked]" in ran.out and reason in ran.out


def test_azure_knows_every_function_that_it_has_to_start(azure, run, started):
    """Those of all agents here; it is asked once, and told nothing."""
    ran = run()
    assert (ran.code, ran.err) == (0, "")
    assert f"all {len(started['all'])} functions" in ran.out
    assert azure.requests == [("GET", "/functions")] * 2


@pytest.mark.parametrize("name", ["submission_record", "supervisor_sweep", "given_up_dead_letters"])
def test_a_function_that_nothing_would_start_is_a_failure(azure, run, name):
    """Its name is said, and what to do."""
    azure.names.remove(name)
    assert missing(run(), name)


def test_a_list_that_was_not_renewed_is_renewed(azure, run):
    """As *Refresh* in the portal does, while there is time."""
    azure.missing = [azure.names.pop() for _ in range(12)]
    ran = run(POSTDEPLOY_SECONDS="60")
    assert (ran.code, ran.err) == (0, "")
    assert [request for request in azure.requests if request[0] == "POST"] == [
        ("POST", "/host/default/sync")
    ]


def test_a_renewal_that_fails_is_tried_again(azure, run):
    """Until the time is up."""
    azure.works = False
    azure.names.remove("scheduler_order_ready")
    assert missing(run(POSTDEPLOY_SECONDS="1"), "scheduler_order_ready")
    assert len([request for request in azure.requests if request[0] == "POST"]) > 1


def test_a_refusal_that_passes_is_waited_for(azure, run, started):
    """Azure asks for less, or is away for a while: what it says later counts."""
    azure.refusals = iter([429, 502, 503, 0])
    ran = run(POSTDEPLOY_SECONDS="60")
    assert (ran.code, ran.err) == (0, "")
    assert f"all {len(started['all'])} functions" in ran.out


def test_a_refusal_that_lasts_is_reported_when_the_time_is_up(azure, run):
    """Nobody knows then whether anything is missing."""
    azure.refusals = itertools.repeat(503)
    assert not_checked(run(POSTDEPLOY_SECONDS="1"), "503")
    assert azure.requests.count(("GET", "/functions")) > 1


def test_a_refusal_after_an_answer_does_not_hide_what_was_missing(azure, run):
    """The last list counts."""
    azure.names.remove("scheduler_order_ready")
    azure.refusals = itertools.chain([None, None], itertools.repeat(503))
    assert missing(run(POSTDEPLOY_SECONDS="1"), "scheduler_order_ready")


@pytest.mark.parametrize("status", [401, 403, 404])
def test_whoever_may_not_ask_does_not_wait(azure, run, status):
    """Time changes nothing in that."""
    azure.refusals = itertools.repeat(status)
    assert not_checked(run(POSTDEPLOY_SECONDS="60"), str(status))
    assert azure.requests == [("GET", "/functions")]


def test_an_agent_without_an_address_is_not_missed(azure, run, started):
    """The app leaves it out."""
    azure.names = sorted(started["required"])
    given = {agent.address: "https://x" for agent in AGENTS if not agent.optional and agent.address}
    ran = run(SIMULATED_SERVICES="false", **given)
    assert (ran.code, ran.err) == (0, "")
    assert f"all {len(started['required'])} functions" in ran.out


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"RESOURCE_MANAGER_URL": "http://127.0.0.1:1"}, "azure-silent"),
        ({"AZURE_RESOURCE_GROUP": "another"}, "azure-refused"),
        ({"AZURE_SUBSCRIPTION_ID": ""}, "variable-missing"),
    ],
    ids=["away", "no such app", "no subscription"],
)
def test_a_caller_that_may_not_check_gets_the_command_for_it(azure, run, given, code):
    """Nothing fails: the app is deployed."""
    azure.refusals = itertools.repeat(404)
    ran = run(**given)
    assert not_checked(ran, f"[{code}]")
    assert "az functionapp function list" in ran.out


@pytest.mark.parametrize(
    ("reply", "code"),
    [(SIGNED_OUT, "program-failed"), (["azd", [0, "{}", ""]], "output-unreadable")],
    ids=["signed out", "no token"],
)
def test_an_azd_without_a_token_fails_nothing(project, run, reply, code):
    """Its own words are shown."""
    project.replies([reply])
    ran = run()
    assert not_checked(ran, f"[{code}]")
    assert reply[1][1].strip().split("\n")[0] in ran.out or code == "output-unreadable"
    assert TOKEN not in ran.out


def test_who_takes_answers_is_looked_for_where_their_queue_is(project):
    """A business in which nobody outside is asked has neither."""
    found = {}
    for queue in ("answers", "gift-wrap-requests"):
        content = {"agents": [], "queues": [{"name": queue}], "settings": []}
        (project.root / "infra/agents.json").write_text(json.dumps(content))
        (project.hooks / "wanted.py").write_text("import functions\nprint(*functions.wanted({}))")
        found[queue] = "customers_answers" in project.run("wanted.py").out.split()
    assert found == {"answers": True, "gift-wrap-requests": False}
