"""The hook that makes the budget, with stand-ins for azd and for Azure's Resource Manager."""

import json
from datetime import UTC, datetime

import pytest

from tests.support.hooks import SIGNED_OUT, serving

HOOK = "postprovision.py"
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
        self.broken = set()
        self.requests = []

    def answer(self, method, path, body):
        """Return status and body."""
        self.requests.append((method, path))
        if method in self.broken:
            return 200, b"<html>"
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
    azure = Azure()
    with serving(azure.answer) as azure.url:
        yield azure


@pytest.fixture
def run(azure, project):
    """Run the hook as azd does."""
    return lambda **given: project.run(HOOK, RESOURCE_MANAGER_URL=azure.url, **KNOWN | given)


def test_operators_learn_what_a_month_costs_unless_somebody_wants_otherwise(azure, run):
    """From the month in which it was made, before the amount is spent; each operator by mail."""
    ran = run()
    assert (ran.code, ran.err) == (0, "")
    assert azure.requests == [("GET", PLACE), ("PUT", PLACE)]
    made = azure.budget["properties"]
    assert (made["amount"], made["timeGrain"], made["category"]) == (100, "Monthly", "Cost")
    assert azure.start == {"startDate": datetime.now(UTC).strftime("%Y-%m-01T00:00:00Z")}
    mails = ["ada@example.com", "grace@example.com"]
    printed = {
        name: (
            notification["thresholdType"],
            notification["threshold"],
            notification["contactEmails"],
            notification["enabled"],
        )
        for name, notification in made["notifications"].items()
    }
    assert printed == {
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
    assert (ran.code, ran.err) == (0, "")
    assert azure.start == begun
    assert azure.budget["properties"]["amount"] == 70


@pytest.mark.parametrize("amount", ["0", "00"])
def test_who_wants_no_budget_has_none(azure, run, amount):
    """Also if there was one."""
    run()
    for _ in range(2):
        ran = run(MONTHLY_BUDGET=amount)
        assert (ran.code, ran.err, azure.budget) == (0, "", None)
    assert azure.requests[-3:] == [("GET", PLACE), ("DELETE", PLACE), ("GET", PLACE)]


@pytest.mark.parametrize(
    "emails",
    [
        "ada@example.com,grace@example.com,",
        ",ada@example.com, , grace@example.com",
        "ada@example.com, grace@example.com,ada@example.com",
    ],
    ids=["a comma at the end", "empty parts", "a double"],
)
def test_the_budget_mails_whom_the_alerts_mail(azure, run, emails):
    """Without blanks, empty parts and doubles, which the template drops too."""
    assert run(OPERATOR_EMAIL=emails).code == 0
    for notification in azure.budget["properties"]["notifications"].values():
        assert notification["contactEmails"] == ["ada@example.com", "grace@example.com"]


REFUSED = {("azure-refused", "MONTHLY_BUDGET")}


def test_a_subscription_without_budgets_gets_azures_own_reason(azure, run):
    """azd warns and goes on (hooks.md 5)."""
    azure.has_budgets = False
    ran = run()
    assert (ran.code, ran.faults) == (1, REFUSED)
    assert OFFER in ran.err


def test_no_budget_is_made_of_a_group_that_is_not_there(azure, run):
    """That there is no budget yet has the same status."""
    azure.has_group = False
    ran = run()
    assert (ran.code, ran.faults, ran.out) == (1, REFUSED, "")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_an_answer_that_is_no_answer_is_a_fault(azure, run, method):
    """As of a proxy in between, whichever call it answers."""
    run()
    azure.broken = {method}
    ran = run(MONTHLY_BUDGET="0" if method == "DELETE" else "5")
    assert (ran.code, ran.faults) == (1, REFUSED)


@pytest.mark.parametrize(
    ("given", "faults"),
    [
        (
            {"RESOURCE_MANAGER_URL": "http://127.0.0.1:1"},
            {("azure-silent", "MONTHLY_BUDGET")},
        ),
        ({"MONTHLY_BUDGET": "a lot"}, {("number-invalid", "MONTHLY_BUDGET")}),
        (
            {"APP_NAME": "", "OPERATOR_EMAIL": ""},
            {("variable-missing", "APP_NAME"), ("variable-missing", "OPERATOR_EMAIL")},
        ),
        (
            {"AZURE_SUBSCRIPTION_ID": "", "AZURE_RESOURCE_GROUP": ""},
            {
                ("variable-missing", "AZURE_SUBSCRIPTION_ID"),
                ("variable-missing", "AZURE_RESOURCE_GROUP"),
            },
        ),
    ],
    ids=["away", "no number", "no app", "no group"],
)
def test_what_keeps_the_budget_from_being_made_is_named(azure, project, given, faults):
    """All of it together."""
    ran = project.run(HOOK, **KNOWN | {"RESOURCE_MANAGER_URL": azure.url} | given)
    assert (ran.code, ran.faults, azure.budget) == (1, faults, None)


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (SIGNED_OUT, "program-failed"),
        (["azd", [0, "", ""]], "output-unreadable"),
        (["azd", [0, "a-token", ""]], "output-unreadable"),
        (["azd", [0, json.dumps({"expiresOn": "now"}), ""]], "output-unreadable"),
    ],
    ids=["signed out", "nothing", "no JSON", "no token"],
)
def test_an_azd_that_has_no_token_is_a_fault(project, run, reply, code):
    """Its own words are shown (hooks.md 10)."""
    project.replies([reply])
    ran = run()
    assert (ran.code, ran.faults) == (1, {(code, "azd auth token")})


def test_a_machine_without_azd_is_a_fault(project, run):
    """As where the hook is started by hand."""
    (project.bin / "azd").unlink()
    assert run().faults == {("program-missing", "azd")}
