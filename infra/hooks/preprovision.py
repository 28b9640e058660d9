"""Runs before azd makes anything: rejects settings that could be deployed but could not work.

azd ignores an invalid switch or number, and silently takes the template's default. The agents'
needs are in infra/agents.json. Their settings become one variable for the template.
"""

from __future__ import annotations

import ipaddress
import sys
from typing import Any, Iterator, List, Mapping

from faults import HookError, HookFault, number_faults, run
from parameters import APP_OPTIONS, app_option, variables
from programs import ROOT, azd
from service_settings import declared, given, store

sys.path.insert(1, str(ROOT))

from engine.urls import is_private, takes_paths

SIMULATED = "SIMULATED_SERVICES"
CONVERTIBLE = {"zone", "geo-zone"}
"""The values of `REDUNDANCY` that Azure can change into each other in place."""
CHANNELS = {
    "TEAMS_WEBHOOK_URL": ("https://",),
    "SLACK_WEBHOOK_URL": ("https://",),
    "SMTP_URL": ("smtps://", "smtp://"),
}
"""The allowed beginnings of the secret address of each channel to people."""
REFERENCE = "@Microsoft.KeyVault("
"""The beginning of a setting's value whose secret is in a Key Vault."""
QUESTION = (
    "No address of a service is set. "
    "Deploy a demonstration, in which the app plays the services? [y/N] "
)

Setting = Mapping[str, Any]


def main(environment: Mapping[str, str]) -> None:
    """Raise `HookError` with every fault of the settings."""
    settings = declared()
    values = {**environment, **given(environment)}
    if _may_ask(values, settings) and _answer().strip().lower().startswith("y"):
        azd("env", "set", SIMULATED, "true")
        values[SIMULATED] = "true"
    faults = list(faults_of(values, settings))
    if faults:
        raise HookError(*faults)
    store(environment)


def _may_ask(values: Mapping[str, str], settings: List[Setting]) -> bool:
    """Whether this is a first attempt by a person at a terminal."""
    given = values.get(SIMULATED) or any(values.get(setting["name"]) for setting in settings)
    return not given and bool(sys.stdin) and sys.stdin.isatty()


def _answer() -> str:
    print(QUESTION, end="", flush=True)
    return sys.stdin.readline()  # empty after Ctrl-D


def faults_of(values: Mapping[str, str], settings: List[Setting]) -> Iterator[HookFault]:
    """Yield a fault for each setting with which the app could not be deployed or could not work."""
    yield from _parameter_faults(values)
    simulated = values.get(SIMULATED) or "false"
    if simulated == "true" and values.get("FRONT_DOOR_ID"):
        yield HookFault("front-door-simulated", "FRONT_DOOR_ID")
    if simulated == "false":
        for setting in settings:
            yield from _setting_faults(setting, values.get(setting["name"]) or "")
    yield from _channel_faults(values)
    yield from _range_faults(str(app_option("deployFrom")))
    yield from _change_faults(values)


def _parameter_faults(values: Mapping[str, str]) -> Iterator[HookFault]:
    for name, default in variables().items():
        value = values.get(name) or ""
        if default in ("true", "false") and value not in ("", "true", "false"):
            yield HookFault("switch-invalid", name, {"value": value})
    yield from number_faults(values, "MONTHLY_BUDGET")


def _setting_faults(setting: Setting, value: str) -> Iterator[HookFault]:
    """Yield the faults of an agent's setting, without its value, which may be a secret."""
    name, kind = setting["name"], setting["kind"]
    if not value and setting["required"]:
        yield HookFault("setting-missing", name, {"kind": kind})
    elif value and kind == "address" and not (value.startswith("https:") and is_private(value)):
        yield HookFault("url-invalid", name, {"start": "https://"})
    elif value and kind == "address" and not takes_paths(value):
        yield HookFault("url-with-query", name)


def _channel_faults(values: Mapping[str, str]) -> Iterator[HookFault]:
    """Yield the faults of the channels to people, without the addresses, which are secrets."""
    for name, starts in CHANNELS.items():
        value = values.get(name) or ""
        if value and not value.startswith((*starts, REFERENCE)):
            yield HookFault("channel-invalid", name, {"start": " or ".join(starts)})
    if values.get("SMTP_URL") and not values.get("SMTP_SENDER"):
        yield HookFault("sender-missing", "SMTP_SENDER")


def _range_faults(value: str) -> Iterator[HookFault]:
    """Yield a fault unless the value is one address or range. Azure accepts nothing else."""
    if not value:
        return
    try:
        ipaddress.ip_network(value, strict=False)
        is_range = value.partition("/")[2].isdigit() or "/" not in value  # not 10.0.0.0/255.0.0.0
    except ValueError:
        is_range = False
    if not is_range:
        facts = {"name": "deployFrom", "value": value, "example": "203.0.113.0/24"}
        yield HookFault("range-invalid", APP_OPTIONS, facts)


def _change_faults(values: Mapping[str, str]) -> Iterator[HookFault]:
    """Yield a fault for each change that Azure does not make. azd keeps what is deployed."""
    isolated = (values.get("DEPLOYED_NETWORK_ISOLATION") or "").lower()
    wanted = values.get("NETWORK_ISOLATION") or "false"
    if isolated and wanted in ("true", "false") and isolated != wanted:
        facts = {"deployed": isolated, "wanted": wanted}
        yield HookFault("not-in-place", "NETWORK_ISOLATION", facts)
    kept = (values.get("DEPLOYED_REDUNDANCY") or "").lower()
    redundancy = (values.get("REDUNDANCY") or variables()["REDUNDANCY"]).lower()
    if kept and kept != redundancy and {kept, redundancy} != CONVERTIBLE:
        yield HookFault("not-in-place", "REDUNDANCY", {"deployed": kept, "wanted": redundancy})


if __name__ == "__main__":
    run("Nothing was deployed, since the app could not work:", main)
