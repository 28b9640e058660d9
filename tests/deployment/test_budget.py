"""The script that makes the budget, with stand-ins for azd and for Azure's Resource Manager."""

import http.server
import json
import os
import subprocess
import sys
import threading
from datetime import UTC, datetime

import pytest
import yaml

from development.servicebus_config import ROOT

SCRIPT = ROOT / "infra/hooks/postprovision.sh"
TOKEN = "a-token-of-azd"  # noqa: S105 - not one
KNOWN = {
    "AZURE_SUBSCRIPTION_ID": "a-subscription",
    "AZURE_RESOURCE_GROUP": "rg-test",
    "APP_NAME": "func-abc",
    "OPERATOR_EMAIL": "ada@example.com, grace@example.com",
}
PLACE = (
    "/subscriptions/a-subscription/resourceGroups/rg-test"
    "/providers/Microsoft.Consumption/budgets/budget-abc?api-version=2024-08-01"
)
OFFER = "Cost Management supports only Enterprise Agreement, Web direct and Microsoft Customer Agreement offer types."


class Azure:
    """What Azure has of one budget, and how it answers: as it did to others.

    It takes no other start (Azure/azure-quickstart-templates issue 7095), and no budget at all of a subscription
    whose offer has no cost management (Azure/azure-powershell issue 11642).
    """

    def __init__(self):
        self.budget = None
        self.has_budgets = True
        self.has_group = True
        self.asked = []

    def answer(self, method, body):
        """Return status and body."""
        if not self.has_budgets:
            return 400, {"error": {"code": "400", "message": OFFER}}
        if not self.has_group:
            return 404, {"error": {"code": "ResourceGroupNotFound"}}
        if method == "PUT":
            if self.budget and body["properties"]["timePeriod"] != self.start:
                return 400, {"error": {"message": "Start date of budgets cannot be updated."}}
            self.budget = body
        elif self.budget is None:
            return 404, {"error": {"code": "404"}}
        elif method == "DELETE":
            self.budget = None
        return 200, self.budget

    @property
    def start(self):
        """When the budget begins."""
        return self.budget["properties"]["timePeriod"]


@pytest.fixture
def azure():
    """Azure's Resource Manager, at an address of this machine."""
    found = Azure()

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found.asked.append((self.command, self.path, self.headers["Authorization"]))
            status, told = found.answer(self.command, json.loads(body or "null"))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(told).encode())

        do_GET = do_PUT = do_DELETE = answer  # noqa: N815 - the names are the server's

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        found.url = f"http://127.0.0.1:{server.server_port}"
        yield found
        server.shutdown()


@pytest.fixture
def run(azure, tmp_path):
    """Run the script as azd does."""

    def run_with(*, signed_in=True, **given):
        azd = tmp_path / "azd"
        says = f"""print('{{"token": "{TOKEN}"}}')""" if signed_in else "raise SystemExit(1)"
        azd.write_text(f"#!{sys.executable}\n{says}\n")
        azd.chmod(0o755)
        known = KNOWN | {"RESOURCE_MANAGER_URL": azure.url, **given}
        return subprocess.run(
            ["/bin/sh", SCRIPT],
            env=known | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )

    return run_with


def test_operators_are_told_what_a_month_costs_unless_somebody_wants_otherwise(azure, run):
    """From the month in which it was made, before the amount is spent; each operator by mail."""
    ran = run()
    assert (ran.returncode, ran.stderr) == (0, "")
    assert {each[1:] for each in azure.asked} == {(PLACE, f"Bearer {TOKEN}")}
    made = azure.budget["properties"]
    assert (made["amount"], made["timeGrain"], made["category"]) == (100, "Monthly", "Cost")
    assert azure.start == {"startDate": datetime.now(UTC).strftime("%Y-%m-01T00:00:00Z")}
    mails = ["ada@example.com", "grace@example.com"]
    told = {
        name: (each["thresholdType"], each["threshold"], each["contactEmails"], each["enabled"])
        for name, each in made["notifications"].items()
    }
    assert told == {
        "forecast": ("Forecasted", 100, mails, True),
        "spent": ("Actual", 80, mails, True),
    }


def test_a_budget_keeps_the_month_in_which_it_was_made(azure, run):
    """Azure is asked for it, so that any machine can deploy in any month; the amount may change."""
    run()
    azure.start["startDate"] = "2025-01-01T00:00:00Z"
    azure.start["endDate"] = "2035-01-01T00:00:00Z"
    begun = dict(azure.start)
    ran = run(MONTHLY_BUDGET="70", OPERATOR_EMAIL="ada@example.com")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert azure.start == begun
    assert azure.budget["properties"]["amount"] == 70


def test_who_wants_no_budget_has_none(azure, run):
    """Also if there was one; that nobody is told is said."""
    run()
    for _ in range(2):
        ran = run(MONTHLY_BUDGET="0")
        assert (ran.returncode, ran.stderr, azure.budget) == (0, "", None)
        assert "azd env set MONTHLY_BUDGET" in ran.stdout


def test_a_subscription_without_budgets_still_deploys(azure, run):
    """The reason is Azure's own; the token is in no line."""
    azure.has_budgets = False
    ran = run()
    assert ran.returncode == 0
    assert OFFER in ran.stderr
    assert TOKEN not in ran.stderr + ran.stdout


def test_no_budget_is_said_to_be_made_of_a_group_that_is_not_there(azure, run):
    """That there is no budget yet has the same status."""
    azure.has_group = False
    ran = run()
    assert (ran.returncode, ran.stdout) == (0, "")
    assert "ResourceGroupNotFound" in ran.stderr


@pytest.mark.parametrize(
    "given",
    [
        {"signed_in": False},
        {"RESOURCE_MANAGER_URL": "http://127.0.0.1:1"},
        {"MONTHLY_BUDGET": "a lot"},
    ],
    ids=["signed out", "away", "no number"],
)
def test_whatever_goes_wrong_the_deployment_goes_on(azure, run, given):
    """It is said, with how to try again."""
    ran = run(**given)
    assert (ran.returncode, azure.budget) == (0, None)
    assert "No budget was made" in ran.stderr
    assert "azd provision" in ran.stderr


def test_azd_runs_it_after_it_has_provisioned_and_on_windows_too():
    """The same script, whose fault azd would not take for its own."""
    hook = yaml.safe_load((ROOT / "azure.yaml").read_text())["hooks"]["postprovision"]
    assert hook["posix"]["run"] == str(SCRIPT.relative_to(ROOT))
    for each in hook.values():
        assert each["continueOnError"] is True
        assert "budget.py" in (ROOT / each["run"]).read_text()
