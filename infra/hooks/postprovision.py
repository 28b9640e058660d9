"""Runs after azd has provisioned: makes the budget that sends an email about a month's cost.

The budget is not part of the templates, because it could stop them: Azure refuses every budget in
some subscriptions. Also, a budget keeps the month in which it began, which a template cannot read.
If this hook fails, azd warns and continues.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, Mapping

from faults import HookError, number_faults, required, run
from manager import AzureError, Manager

DEFAULT = "100"
"""The monthly amount unless MONTHLY_BUDGET names another one, in the currency of the subscription.
"""
API = "?api-version=2024-08-01"


def main(environment: Mapping[str, str]) -> None:
    """Make, change or remove the budget. Raises `HookError` if that fails."""
    faults = number_faults(environment, "MONTHLY_BUDGET")
    if faults:
        raise HookError(*faults)
    amount = int(environment.get("MONTHLY_BUDGET") or DEFAULT)
    try:
        budget = Budget(environment)
        print(budget.keep(amount) if amount else budget.remove())
    except AzureError as error:
        raise HookError(error.fault("MONTHLY_BUDGET")) from error


class Budget:
    """The budget of the resource group in Resource Manager."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        names = ("APP_NAME", "OPERATOR_EMAIL", "AZURE_SUBSCRIPTION_ID", "AZURE_RESOURCE_GROUP")
        app, emails, *_ = required(environment, *names)
        self.manager = Manager(environment)
        budgets = self.manager.group + "/providers/Microsoft.Consumption/budgets"
        self.path = "{}/budget-{}{}".format(budgets, app.partition("-")[2], API)
        # As the template does: without blanks, empty parts and doubles.
        parts = emails.replace(" ", "").split(",")
        self.emails = list(dict.fromkeys(filter(None, parts)))

    def keep(self, amount: int) -> str:
        """Make or change the budget. It begins in the month in which it was made."""
        present = self.present()
        this_month = datetime.now(timezone.utc).strftime("%Y-%m-01T00:00:00Z")
        period = present["properties"]["timePeriod"] if present else {"startDate": this_month}
        self.manager.call("PUT", self.path, {"properties": self.properties(amount, period)})
        return "Operators get a mail before a month costs more than {}.".format(amount)

    def properties(self, amount: int, period: Any) -> Mapping[str, Any]:
        """Return the budget: an email at four fifths, and one if the forecast is higher."""
        everybody = {"enabled": True, "operator": "GreaterThan", "contactEmails": self.emails}
        return {
            "category": "Cost",
            "amount": amount,
            "timeGrain": "Monthly",
            "timePeriod": period,
            "notifications": {
                "forecast": dict(everybody, threshold=100, thresholdType="Forecasted"),
                "spent": dict(everybody, threshold=80, thresholdType="Actual"),
            },
        }

    def remove(self) -> str:
        if self.present():
            self.manager.call("DELETE", self.path)
        return "There is no budget. To make one: azd env set MONTHLY_BUDGET 100 && azd provision"

    def present(self) -> Any:
        """Return the budget in Azure, or None."""
        try:
            return self.manager.call("GET", self.path)
        except AzureError as error:
            if error.status == 404:
                return None
            raise


if __name__ == "__main__":
    run("The budget was not changed. To try again: azd provision --no-state", main)
