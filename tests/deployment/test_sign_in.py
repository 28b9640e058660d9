"""The script that makes the operators' sign-in, with stand-ins for `az` and `azd` that write down how they are called."""

import json
import os
import re
import subprocess
import sys

import pytest

from development.servicebus_config import ROOT

SCRIPT = ROOT / "infra/hooks/sign-in.sh"
CLIENT = "11111111-2222-3333-4444-555555555555"
KNOWN = {
    "APP_URL": "https://func-x.azurewebsites.net",
    "AZURE_RESOURCE_GROUP": "rg-test",
    "AZURE_TENANT_ID": "a-tenant",
    "AZURE_ENV_NAME": "test",
}
STAND_IN = """#!{python}
import json, os, pathlib, sys
called = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
with open({log!r}, "a") as log:
    log.write(json.dumps(called) + "\\n")
known = json.loads({known!r})
if called[:3] == ["azd", "env", "get-value"]:
    sys.exit(1) if called[3] not in known else print(known[called[3]])
elif called[:3] == ["az", "identity", "list"]:
    print("the-identity")
elif called[:4] == ["az", "ad", "app", "create"]:
    print({client!r})
"""


@pytest.fixture
def run(tmp_path):
    """Run the script in a place that knows these values of azd; return it and the calls that change something."""

    def run_with(**known):
        log, place = tmp_path / "calls", tmp_path / "bin"
        place.mkdir()
        for name in ("az", "azd"):
            text = STAND_IN.format(
                python=sys.executable, log=str(log), known=json.dumps(KNOWN | known), client=CLIENT
            )
            (place / name).write_text(text)
            (place / name).chmod(0o755)
        ran = subprocess.run(
            ["/bin/sh", SCRIPT],
            env={"PATH": f"{place}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        calls = [json.loads(line) for line in log.read_text().splitlines()]
        return ran, [each for each in calls if not {"get-value", "list"} & set(each)]

    return run_with


def after(call, option):
    """The value of an option of a call."""
    return call[call.index(option) + 1]


def test_the_registration_trusts_the_app_and_lets_in_those_who_are_assigned(run):
    """Without a secret, with the audience that the template expects; azd knows it from then on."""
    ran, calls = run()
    assert ran.returncode == 0, ran.stderr
    created, credential, api, principal, closed, *told = calls
    assert after(created, "--web-redirect-uris") == f"{KNOWN['APP_URL']}/.auth/login/aad/callback"
    trusted = json.loads(after(credential, "--parameters"))
    assert (trusted["subject"], trusted["audiences"]) == (
        "the-identity",
        ["api://AzureADTokenExchange"],
    )
    assert trusted["issuer"].endswith("/a-tenant/v2.0")
    body = json.loads(after(api, "--body"))
    assert body["identifierUris"] == [f"api://{CLIENT}"]
    [scope] = body["api"]["oauth2PermissionScopes"]
    assert re.fullmatch(r"[0-9a-f-]{36}", scope["id"])
    assert principal[:4] == ["az", "ad", "sp", "create"]
    assert after(closed, "--set") == "appRoleAssignmentRequired=true"
    [role] = body["appRoles"]
    assert (role["value"], role["isEnabled"]) == ("operator", True)
    assert role["allowedMemberTypes"] == ["User", "Application"]
    assert role["id"] != scope["id"]
    assert re.fullmatch(r"[0-9a-f-]{36}", role["id"])
    assert told == [
        ["azd", "env", "set", "OPERATOR_SIGN_IN_CLIENT_ID", CLIENT],
        ["azd", "env", "set", "OPERATOR_ROLE", "operator"],
    ]
    assert not any("secret" in word or "password" in word for call in calls for word in call)


def test_a_second_registration_is_not_made(run):
    """Operators would be assigned to the one, and asked to sign in at the other."""
    ran, calls = run(OPERATOR_SIGN_IN_CLIENT_ID=CLIENT)
    assert (ran.returncode, calls) == (1, [])
    assert CLIENT in ran.stderr


def test_windows_makes_the_same_registration():
    """Both scripts make the same calls with the same options, and speak the same words in what they send."""
    posix, windows = (SCRIPT.with_suffix(end).read_text() for end in (".sh", ".ps1"))
    calls = re.compile(r"\b(az (?:ad|rest|identity)[a-z -]*|azd env set \w+)")
    options = re.compile(r"(?<= )--[a-z-]+")
    assert [each.split(" -")[0].strip() for each in calls.findall(posix)] == [
        each.split(" -")[0].strip() for each in calls.findall(windows)
    ]
    assert sorted(options.findall(posix)) == sorted(options.findall(windows))
    for word in (
        "appRoleAssignmentRequired=true",
        "api://AzureADTokenExchange",
        "operate",
        "Operates orders",
        "allowedMemberTypes",
    ):
        assert word in posix
        assert word in windows
