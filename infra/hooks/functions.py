"""Checks whether Azure knows each function that a queue or a timer starts, after a deployment.

An app that answers calls may do no work: Azure starts the other functions by a list of its own,
which deployments to Flex Consumption were seen not to renew (Azure/functions-action issue 373,
Azure/azure-functions-host issue 10169). So this asks for the list, and has Azure renew it, as
*Refresh* in the portal does.
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
"""Those that are there whatever the agents are; a test compares all with the app."""
PAUSE_SECONDS = 10
FINAL = {401, 403, 404}
"""Refusals that do not pass with time."""


def check(environment: Mapping[str, str], seconds: int) -> None:
    """Print what was found; raise `HookError` if a function is missing.

    If nobody may ask, or no list came in all that time, that is printed and is no fault: the app is
    deployed.
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
    """Yield the functions' names; an agent without the address of its service is not there."""
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
    """Return the functions that Azure knows, once it knows these or the time is over.

    Raises `AzureError` if Azure refuses for good, or has sent no list in all that time, and
    `HookError` if it cannot be asked.
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
