"""The script that makes the operators' sign-in, with stand-ins for azd, Resource Manager and Microsoft Graph."""

import itertools
import json
import os
import re
import signal
import threading
import urllib.parse

import pytest

from tests.support.hooks import SIGNED_IN, SIGNED_OUT, Project, serving

HOOK = "sign_in.py"
CLIENT = "11111111-2222-3333-4444-555555555555"
OBJECT = "99999999-8888-7777-6666-555555555555"
NAME = "operators-test(1)"
KNOWN = {
    "APP_URL": "https://func-x.azurewebsites.net",
    "AZURE_SUBSCRIPTION_ID": "a-subscription",
    "AZURE_RESOURCE_GROUP": "rg-test(1)",
    "AZURE_TENANT_ID": "a-tenant",
    "AZURE_ENV_NAME": "test(1)",
}
GROUP = "/subscriptions/a-subscription/resourceGroups/rg-test(1)"
IDENTITIES = ("GET", f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities")
LIST, CREATE = ("GET", "/v1.0/applications"), ("POST", "/v1.0/applications")
CHANGE = ("PATCH", f"/v1.0/applications/{OBJECT}")
TRUST = ("POST", f"/v1.0/applications/{OBJECT}/federatedIdentityCredentials")
PRINCIPAL = ("POST", "/v1.0/servicePrincipals")
SET_CLIENT = ["azd", "env", "set", "OPERATOR_SIGN_IN_CLIENT_ID", CLIENT]
NO_PAUSE = "import time\ntime.sleep = lambda _: None"
INTERRUPTED_PAUSE = """
import time
def sleep(_):
    raise KeyboardInterrupt
time.sleep = sleep
"""
INTERRUPTED_AZD = """
import subprocess
run = subprocess.run
def interrupted(command, **options):
    if "OPERATOR_SIGN_IN_CLIENT_ID" in command:
        raise KeyboardInterrupt
    return run(command, **options)
subprocess.run = interrupted
"""


def identity(name="id-app-abc", principal="the-identity"):
    return {"name": name, "properties": {"principalId": principal}}


class Azure:
    """Resource Manager and Microsoft Graph; an answer may be replaced."""

    def __init__(self):
        self.identities = [identity(), identity("id-deploy-abc", "another")]
        self.registered = []
        self.instead = {}
        """By call, an iterator of the next answers in place of the usual one; None is the usual one."""
        self.requests = []

    def answer(self, method, path, body):
        """Return status and body."""
        path, _, query = path.partition("?")
        self.requests.append((method, path, body))
        replaced = next(self.instead.get((method, path), iter(())), None)
        is_refused = replaced is not None and 400 <= replaced[0] < 500
        if (method, path) == CREATE and not is_refused:
            self.registered.append({"appId": CLIENT})
        if replaced is not None:
            return replaced
        if (method, path) == LIST:
            wanted = urllib.parse.parse_qs(query)["$filter"]
            found = [app for app in self.registered if wanted == [f"displayName eq '{NAME}'"]]
            return 200, {"value": found}
        return {
            IDENTITIES: (200, {"value": self.identities}),
            CREATE: (201, {"id": OBJECT, "appId": CLIENT}),
            CHANGE: (204, None),
            TRUST: (201, {}),
            PRINCIPAL: (201, {}),
        }[method, path]

    def changes(self):
        """What was changed, and what was sent."""
        return [request for request in self.requests if request[0] != "GET"]


@pytest.fixture
def azure():
    """Both at an address of this machine."""
    azure = Azure()
    with serving(azure.answer) as azure.url:
        yield azure


@pytest.fixture
def project(tmp_path):
    """A project whose azd is signed in and knows the environment."""
    project = Project(tmp_path)
    project.program("azd")
    replies(project)
    return project


def replies(project, *first, **known):
    values = json.dumps(KNOWN | known)
    project.replies([*first, SIGNED_IN, ["azd env get-values", [0, values, "WARNING: old\n"]]])


@pytest.fixture
def run(azure, project):
    """Run the script, without its pauses."""
    urls = {"RESOURCE_MANAGER_URL": azure.url, "MICROSOFT_GRAPH_URL": azure.url}
    return lambda before=NO_PAUSE: project.run(HOOK, before, **urls)


def stored(project):
    """What azd was let know."""
    return [call for call in project.calls if call[:3] == ["azd", "env", "set"]]


def test_the_registration_trusts_the_app_and_lets_in_those_who_are_assigned(azure, project, run):
    """Without a secret, with the audience that the template expects; azd knows it from then on."""
    ran = run()
    assert (ran.code, ran.err) == (0, "")
    assert CLIENT in ran.out
    assert [change[:2] for change in azure.changes()] == [CREATE, CHANGE, TRUST, PRINCIPAL]
    made, changed, trust, principal = (change[2] for change in azure.changes())
    assert (made["displayName"], made["signInAudience"]) == (NAME, "AzureADMyOrg")
    assert made["web"] == {
        "redirectUris": [f"{KNOWN['APP_URL']}/.auth/login/aad/callback"],
        "implicitGrantSettings": {"enableIdTokenIssuance": True},
    }
    assert changed == {"identifierUris": [f"api://{CLIENT}"]}
    assert (trust["subject"], trust["audiences"]) == (
        "the-identity",
        ["api://AzureADTokenExchange"],
    )
    assert trust["issuer"].endswith("/a-tenant/v2.0")
    assert principal == {"appId": CLIENT, "appRoleAssignmentRequired": True}
    [scope] = made["api"]["oauth2PermissionScopes"]
    [role] = made["appRoles"]
    assert (scope["value"], scope["type"], scope["isEnabled"]) == ("operate", "User", True)
    assert (role["value"], role["isEnabled"]) == ("operator", True)
    assert role["allowedMemberTypes"] == ["User", "Application"]
    assert role["id"] != scope["id"]
    for granted in (role, scope):
        assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", granted["id"])
    assert stored(project) == [SET_CLIENT]
    options = json.loads((project.root / "infra/options/app.json").read_text())
    assert role["value"] == options["operatorRole"]
    assert "secret" not in json.dumps(azure.requests).lower()
    assert "password" not in json.dumps(azure.requests).lower()


def test_the_token_is_for_graph_and_the_tenant(project, run):
    """The account may belong to several tenants."""
    run()
    tokens = [call for call in project.calls if call[1:3] == ["auth", "token"]]
    assert len(tokens) == 2
    graph = tokens[1]
    assert graph[graph.index("--scope") + 1] == "https://graph.microsoft.com/.default"
    assert graph[graph.index("--tenant-id") + 1] == "a-tenant"


def test_a_second_registration_is_not_made(azure, project, run):
    """Operators would be assigned to the one, and sign in with the other; any id that azd has counts (hooks.md 12)."""
    replies(project, OPERATOR_SIGN_IN_CLIENT_ID="gggg")
    ran = run()
    assert (ran.code, ran.faults) == (1, {("sign-in-exists", "OPERATOR_SIGN_IN_CLIENT_ID")})
    assert azure.requests == []
    assert stored(project) == []


def test_what_azd_does_not_know_is_named(azure, project, run):
    """All of it, before anything is asked (hooks.md 10)."""
    replies(project, **dict.fromkeys(KNOWN, ""))
    ran = run()
    assert (ran.code, ran.faults) == (1, {("variable-missing", name) for name in KNOWN})
    assert azure.requests == []


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (SIGNED_OUT, ("program-failed", "azd auth token")),
        (["azd auth token", [0, "{}", ""]], ("output-unreadable", "azd auth token")),
        (
            ["azd env get-values", [1, "\nERROR: no environment exists\n", ""]],
            ("program-failed", "azd env get-values"),
        ),
        (["azd env get-values", [0, "", ""]], ("output-unreadable", "azd env get-values")),
        (["azd env get-values", [0, "[]", ""]], ("output-unreadable", "azd env get-values")),
    ],
)
def test_an_azd_that_fails_is_shown(azure, project, run, reply, fault):
    """With its own words, which it prints on the output; nothing was made (hooks.md 10)."""
    replies(project, reply)
    ran = run()
    assert (ran.code, ran.faults) == (1, {fault})
    assert fault[0] != "program-failed" or reply[1][1].strip() in ran.err
    assert azure.changes() == []


@pytest.mark.parametrize(
    "identities",
    [
        [],
        [identity("id-deploy-abc")],
        [identity(principal=None)],
        [identity(principal="")],
        [{"name": "id-app-abc", "properties": None}],
        [identity(), identity("id-app-def", "another")],
    ],
)
def test_the_registration_trusts_exactly_one_identity(azure, run, identities):
    """None, an incomplete one or two are a fault, and nothing is made (hooks.md 12)."""
    azure.identities = identities
    ran = run()
    assert (ran.code, ran.faults) == (1, {("identity-not-found", "AZURE_RESOURCE_GROUP")})
    assert azure.changes() == []


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (IDENTITIES, (403, {"error": "Forbidden"})),
        (LIST, (403, {"error": "Forbidden"})),
        (CREATE, (403, {"error": "Forbidden"})),
        (IDENTITIES, (0, None)),
        (LIST, (0, None)),
    ],
)
def test_a_call_that_fails_first_makes_nothing(azure, project, run, call, answer):
    """Azure's own words are shown."""
    azure.instead[call] = iter([answer])
    ran = run()
    refused = answer[0] == 403
    assert (ran.code, ran.faults) == (1, {("azure-refused" if refused else "azure-silent", NAME)})
    assert ("Forbidden" in ran.err) == refused
    assert stored(project) == []


@pytest.mark.parametrize("call", [IDENTITIES, LIST])
@pytest.mark.parametrize("answer", [(200, b""), (200, b"<html>"), (200, {}), (200, [])])
def test_an_empty_answer_makes_nothing(azure, run, call, answer):
    """Nor one of something else (hooks.md 12)."""
    azure.instead[call] = iter([answer])
    ran = run()
    assert (ran.code, ran.faults) == (1, {("azure-refused", NAME)})
    assert azure.changes() == []


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        *((CHANGE, answer) for answer in ((403, {}), (500, {}), (0, None), (404, {}), (400, {}))),
        (TRUST, (404, {})),
        (PRINCIPAL, (403, {})),
    ],
)
def test_what_is_left_half_made_is_named(azure, project, run, call, answer):
    """With the command that deletes it. A second run finds it, and makes no other (hooks.md 1)."""
    azure.instead[call] = itertools.repeat(answer)
    ran = run()
    assert (ran.code, ran.faults) == (1, {("registration-incomplete", NAME)})
    assert f"az ad app delete --id {CLIENT}" in ran.err
    assert stored(project) == []
    made = len(azure.changes())
    again = run()
    assert (again.code, again.faults) == (1, {("registration-exists", NAME)})
    assert CLIENT in again.err
    assert len(azure.changes()) == made


LOOK_FOR_IT = f'az ad app list --display-name "{NAME}"'


@pytest.mark.parametrize(
    "answer",
    [
        (0, None),
        (500, {}),
        (503, b"<html>"),
        (201, b""),
        (201, b"<html>"),
        (201, {}),
        (201, {"appId": CLIENT}),
    ],
)
def test_a_registration_without_an_id_is_named_by_its_name(azure, project, run, answer):
    """Graph may have made it. Nothing more is called (hooks.md 12)."""
    azure.instead[CREATE] = iter([answer])
    ran = run()
    assert (ran.code, ran.faults) == (1, {("registration-unknown", NAME)})
    assert LOOK_FOR_IT in ran.err
    assert [change[:2] for change in azure.changes()] == [CREATE]
    assert stored(project) == []


def test_a_registration_that_may_be_there_is_not_made_again(azure, run):
    """By a second run, after one that had no answer (hooks.md 12)."""
    azure.instead[CREATE] = iter([(0, None)])
    run()
    again = run()
    assert (again.code, again.faults) == (1, {("registration-exists", NAME)})
    assert len(azure.changes()) == 1


def test_an_interrupt_while_graph_makes_the_registration_names_it(azure, run, tmp_path):
    """Ctrl-C before the answer came."""
    process, ended = tmp_path / "process", threading.Event()

    def interrupted():
        os.kill(int(process.read_text()), signal.SIGINT)
        ended.wait(30)
        yield 0, None

    azure.instead[CREATE] = interrupted()
    # A shell starts its background jobs with Ctrl-C ignored, and the tests may be in one.
    obeys = "import os, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)"
    ran = run(f"{obeys}\nopen({str(process)!r}, 'w').write(str(os.getpid()))")
    ended.set()
    assert (ran.code, ran.faults) == (1, {("registration-unknown", NAME)})
    assert LOOK_FOR_IT in ran.err


@pytest.mark.parametrize("status", [400, 404])
def test_a_registration_that_is_not_known_everywhere_yet_is_waited_for(azure, run, status):
    """Graph takes some seconds."""
    for call in (CHANGE, TRUST, PRINCIPAL):
        azure.instead[call] = iter([(status, {}), (status, {}), None])
    assert run().code == 0
    assert len(azure.changes()) == 10


def test_a_registration_that_azd_does_not_keep_is_named(project, run):
    """It is complete: the command is there that makes azd know it."""
    replies(project, [" ".join(SET_CLIENT[:4]), [1, "\nERROR: disk full\n", ""]])
    ran = run()
    assert (ran.code, ran.faults) == (1, {("registration-not-stored", NAME)})
    assert "disk full" in ran.err
    assert " ".join(SET_CLIENT) in ran.err


@pytest.mark.parametrize(
    ("before", "code"),
    [
        (INTERRUPTED_PAUSE, "registration-incomplete"),
        (INTERRUPTED_AZD, "registration-not-stored"),
    ],
)
def test_what_an_interrupt_leaves_is_named(azure, run, before, code):
    """Ctrl-C after the registration was made, as after a call that fails."""
    azure.instead[CHANGE] = iter([(404, {}) if before == INTERRUPTED_PAUSE else None])
    ran = run(before)
    assert (ran.code, ran.faults) == (1, {(code, NAME)})
    assert CLIENT in ran.err


def test_a_machine_without_azd_is_a_fault(project, run):
    """As before anything else."""
    (project.bin / "azd").unlink()
    assert run().faults == {("program-missing", "azd")}
