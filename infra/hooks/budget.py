"""Makes the budget that tells operators what a month costs; azd runs it after provisioning.

It is no part of the templates, since it could stop them: Azure refuses every budget of some
subscriptions, and a budget keeps the month in which it began, which a template cannot ask for. So
Azure is asked here. What it refuses is said, and stops nothing. Written for Python 3.7 without any
package, which is what azd asks for.
"""

from __future__ import annotations

import os
import sys
import urllib.error
from datetime import datetime, timezone
from typing import Any, Mapping

from manager import Manager, reason

USUAL = "100"
"""The amount of a month unless MONTHLY_BUDGET says another; in the currency of the subscription."""
API = "?api-version=2024-08-01"


def main(environment: Mapping[str, str]) -> None:
    """Make, change or remove the budget, and say what was done."""
    amount = environment.get("MONTHLY_BUDGET") or USUAL
    try:
        budget = Budget(environment)
        print(budget.remove() if amount == "0" else budget.keep(int(amount)))
    except Exception as fault:  # noqa: BLE001 - whatever it is, the deployment goes on
        print(f"No budget was made: {reason(fault)}", file=sys.stderr)
        print("Nobody is told what it costs. To try again: azd provision", file=sys.stderr)


class Budget:
    """The budget of the resource group, as Resource Manager has it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.manager = Manager(environment)
        name = "budget-" + environment["APP_NAME"].partition("-")[2]
        budgets = f"{self.manager.group}/providers/Microsoft.Consumption/budgets"
        self.path = f"{budgets}/{name}{API}"
        self.emails = environment["OPERATOR_EMAIL"].replace(" ", "").strip(",").split(",")

    def keep(self, amount: int) -> str:
        """Make the budget, or change it; it begins in the month in which it was made."""
        present = self.ask("GET")
        this_month = datetime.now(timezone.utc).strftime("%Y-%m-01T00:00:00Z")
        period = present["properties"]["timePeriod"] if present else {"startDate": this_month}
        self.ask("PUT", {"properties": self.properties(amount, period)})
        return f"The operators are told before a month costs more than {amount}."

    def properties(self, amount: int, period: Any) -> Mapping[str, Any]:
        """Return the budget: a mail at four fifths, and one if the month is going to cost more."""
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
        """Remove the budget, if there is one."""
        if self.ask("GET"):
            self.ask("DELETE")
        return "Nobody is told what it costs: azd env set MONTHLY_BUDGET 100 && azd provision"

    def ask(self, method: str, body: Any = None) -> Any:
        """Return what Azure answers, or None if there is no budget; raises what urllib does."""
        try:
            return self.manager.ask(method, self.path, body)
        except urllib.error.HTTPError as refused:
            if refused.code == 404 and method == "GET":
                return None
            raise


if __name__ == "__main__":
    main(os.environ)
