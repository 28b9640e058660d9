"""Looks whether Azure knows each function that a queue or a timer starts, after a deployment.

An app that answers calls may do no work: Azure starts the other functions by a list of its own,
which deployments to Flex Consumption were seen not to renew, without a word (Azure/functions-action
issue 373, Azure/azure-functions-host issue 10169). So Azure is asked for its list, and told to
renew it, as *Refresh* in the portal does. Whoever may not ask is told how, and nothing fails; nor
does anything where no list came in all that time.
Written for Python 3.7 without any package, which is what azd asks for.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Iterator, Mapping, Set

from manager import Manager, reason

INFRA = Path(__file__).resolve().parent.parent
API = "api-version=2024-11-01"
OF_EVERY_BUSINESS = (
    "submission_record",
    "scheduler_wake",
    "scheduler_poll",
    "supervisor_sweep",
    "alerts_record",
    "alerts_relay",
    "alerts_watch",
    "operator_retention",
    "given_up_dead_letters",
    "given_up_operator_alerts",
    "given_up_order_submissions",
)
"""Those that are there whatever the agents are; a test compares all with the app."""
PAUSE_SECONDS = 10
NOT_TOLD = (OSError, http.client.HTTPException)
"""What urllib raises for a refusal, a time-out or a broken connection."""
FINAL = {401, 403, 404}
"""Refusals that do not pass with time."""


def main(environment: Mapping[str, str]) -> int:
    """Say what is missing; return 1 if something is."""
    names = set(wanted(environment))
    try:
        missing = names - found(environment, names)
    except Exception as fault:  # noqa: BLE001 - whatever it is, the app is deployed
        print(f"Nobody looked whether Azure knows all functions: {reason(fault)}")
        print(f"To look: az functionapp function list {place(environment)} --query [].name -o tsv")
        return 0
    if not missing:
        print(f"Azure knows all {len(names)} functions that queues and timers start.")
        return 0
    print(f"Deployed, but nothing starts {', '.join(sorted(missing))}.", file=sys.stderr)
    print(
        "Azure does not know them: press Refresh in the portal's list of functions, or",
        file=sys.stderr,
    )
    print(f"az functionapp restart {place(environment)}", file=sys.stderr)
    return 1


def place(environment: Mapping[str, str]) -> str:
    """Return the options by which the Azure CLI finds the app."""
    group, app = environment.get("AZURE_RESOURCE_GROUP", ""), environment.get("APP_NAME", "")
    return f'-g "{group}" -n "{app}"'


def wanted(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the functions' names; an agent without the address of its service is not there."""
    yield from OF_EVERY_BUSINESS
    queues = json.loads((INFRA / "queues.json").read_text())["serviceBusQueues"]
    addresses = json.loads((INFRA / "simulated.json").read_text())
    setting_of = {address.rpartition("/")[2]: name for name, address in addresses.items()}
    simulated = environment.get("SIMULATED_SERVICES") == "true"
    for queue in (queue["name"] for queue in queues):
        if queue == "answers":
            yield "customers_answers"
        agent, _, kind = queue.rpartition("-")
        if kind != "requests" or agent == "scheduler":
            continue
        if simulated or agent not in setting_of or environment.get(setting_of[agent]):
            yield "agent_" + agent.replace("-", "_")
            yield "scheduler_" + agent.replace("-", "_") + "_responses"


def found(environment: Mapping[str, str], names: Set[str]) -> Set[str]:
    """Return the functions that Azure knows, once it knows these or the time is up.

    Raises what urllib does if Azure refuses for good, or has told nothing in all that time.
    """
    manager = Manager(environment)
    site = f"{manager.group}/providers/Microsoft.Web/sites/{environment['APP_NAME']}"
    end = time.monotonic() + int(environment.get("POSTDEPLOY_SECONDS") or 600)
    known = None
    while True:
        is_last = time.monotonic() >= end
        try:
            known = set(listed(manager, f"{site}/functions?{API}"))
        except NOT_TOLD as fault:
            if getattr(fault, "code", None) in FINAL or (is_last and known is None):
                raise
        if known is not None and (is_last or names <= known):
            return known
        renew(manager, f"{site}/host/default/sync?{API}")
        time.sleep(PAUSE_SECONDS)


def listed(manager: Manager, path: str) -> Iterator[str]:
    """Yield the names of the functions of the app, page by page."""
    while path:
        page: Any = manager.ask("GET", path)
        for each in page["value"]:
            yield each["name"].rpartition("/")[2]
        path = (page.get("nextLink") or "").replace(manager.address, "", 1)


def renew(manager: Manager, path: str) -> None:
    """Have Azure ask the app for its functions; it fails while the app starts."""
    with contextlib.suppress(*NOT_TOLD):
        manager.ask("POST", path)


if __name__ == "__main__":
    sys.exit(main(os.environ))
