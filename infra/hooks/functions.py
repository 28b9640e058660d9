"""Checks after a deployment whether Azure knows each function that a queue or a timer starts.

An app that answers calls may still do no work. Azure starts the other functions by its own list,
which deployments to Flex Consumption sometimes did not renew (Azure/functions-action issue 373,
Azure/azure-functions-host issue 10169). So this module reads the list, and makes Azure renew it,
like *Refresh* in the portal.
"""

from __future__ import annotations

import contextlib
from typing import Iterator, Mapping, Set

from faults import HookError, HookFault, text_of
from manager import AzureError, Manager
from service_settings import agents_file, given
from waiting import WaitLimit

API = "api-version=2024-11-01"
OF_EVERY_BUSINESS = (
    "submission_record",
    "scheduler_order_ready",
    "scheduler_poll",
    "supervisor_sweep",
    "alerts_record",
    "alerts_relay",
    "alerts_notify",
    "alerts_stalls",
    "operator_retention",
    "given_up_dead_letters",
    "given_up_operator_alerts",
    "given_up_order_submissions",
)
"""The functions of every business. A test compares all names with the app."""
PAUSE_SECONDS = 10
FINAL = {401, 403, 404}
"""Refusals that do not pass with time."""


def check(environment: Mapping[str, str], seconds: int) -> None:
    """Check the functions, and print the result. Raises `HookError` if a function is missing.

    If the list may not be read, or did not arrive in time, this is printed and is no fault, because
    the app is deployed.
    """
    names = set(wanted(environment))
    options = "-g {} -n {}".format(
        environment.get("AZURE_RESOURCE_GROUP"), environment.get("APP_NAME")
    )
    try:
        missing = names - _known(environment, names, seconds)
    except AzureError as error:
        _not_checked(text_of(error.fault("Resource Manager")), options)
        return
    except HookError as error:
        _not_checked("; ".join(text_of(fault) for fault in error.faults), options)
        return
    if missing:
        facts = {"functions": sorted(missing), "options": options}
        raise HookError(HookFault("functions-missing", "Azure's list of functions", facts))
    print("Azure knows all {} functions that queues and timers start.".format(len(names)))


def _not_checked(reason: str, options: str) -> None:
    facts = {"reason": reason, "options": options}
    print(text_of(HookFault("functions-not-checked", "Azure's list of functions", facts)))


def wanted(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the functions' names. An agent without the address of its service has none."""
    yield from OF_EVERY_BUSINESS
    content, settings = agents_file(), given(environment)
    if any(queue["name"] == "answers" for queue in content["queues"]):
        yield "customers_answers"
    simulated = environment.get("SIMULATED_SERVICES") == "true"
    for agent in content["agents"]:
        if simulated or not agent["address"] or agent["address"] in settings:
            name = agent["name"].replace("-", "_")
            yield "agent_" + name
            yield "scheduler_" + name + "_responses"


def _known(environment: Mapping[str, str], names: Set[str], seconds: int) -> Set[str]:
    """Return the functions that Azure knows, when it knows all of these or the time is over.

    Until then, request in each round that Azure reads the app's functions again.

    Raises `AzureError` if Azure refuses permanently or has sent no list in time, and `HookError` if
    Azure cannot be called.
    """
    manager = Manager(environment)
    site = "{}/providers/Microsoft.Web/sites/{}".format(manager.group, environment["APP_NAME"])
    wait = WaitLimit(seconds)
    known = None
    while True:
        is_last = wait.is_over()
        try:
            listed = manager.items("{}/functions?{}".format(site, API))
            known = {function["name"].rpartition("/")[2] for function in listed}
        except AzureError as error:
            if error.status in FINAL or (is_last and known is None):
                raise
        if known is not None and (is_last or names <= known):
            return known
        with contextlib.suppress(AzureError):  # refused while the app starts
            manager.call("POST", "{}/host/default/sync?{}".format(site, API))
        wait.pause(PAUSE_SECONDS, "Waiting until Azure knows all functions")
