"""Runs after azd has deployed. azd reports success even if Azure found no function.

(Azure/azure-dev, issue 4271.) So this hook checks that the app is healthy, and that Azure knows
every function that it has to start.
"""

from __future__ import annotations

import sys
import urllib.request
from typing import List, Mapping, Tuple

import functions
from faults import HookError, HookFault, missing, number_faults, run
from http_client import NoAnswerError, send
from programs import ROOT
from waiting import WaitLimit

sys.path.insert(1, str(ROOT))

from engine.urls import is_private

DEFAULT_SECONDS = 600
PAUSE_SECONDS = 2
LONGEST_ANSWER, SHORTEST_ANSWER = 60, 5
"""The limits of the time for one answer, in seconds.

POSTDEPLOY_SECONDS may be less than an answer needs.
"""
QUERY = "union traces, exceptions | order by timestamp desc | take 50"


def main(environment: Mapping[str, str]) -> None:
    """Raise `HookError` unless the app works."""
    faults = _environment_faults(environment)
    if faults:
        raise HookError(*faults)
    seconds = int(environment.get("POSTDEPLOY_SECONDS") or DEFAULT_SECONDS)
    if environment.get("FRONT_DOOR_ID"):
        functions.check(environment, seconds)
        print("Only Front Door may call the app: curl -i https://YOUR-FRONT-DOOR/api/health")
        return
    wait_until_healthy(environment, seconds)
    functions.check(environment, seconds)
    _print_next_steps(environment)


def _environment_faults(environment: Mapping[str, str]) -> List[HookFault]:
    names = ("AZURE_RESOURCE_GROUP", "APP_NAME", "APP_URL")
    faults = [*missing(environment, *names), *number_faults(environment, "POSTDEPLOY_SECONDS")]
    url = environment.get("APP_URL")
    if url and not is_private(url):
        faults.append(HookFault("url-invalid", "APP_URL", {"start": "https://"}))
    return faults


def wait_until_healthy(environment: Mapping[str, str], seconds: int) -> None:
    """Wait until the app is healthy. Raises `HookError` if it is not in this many seconds.

    Raises it immediately if the certificate is not trusted here, because the app may well be
    healthy.
    """
    wait = WaitLimit(seconds)
    while True:
        limit = min(LONGEST_ANSWER, max(SHORTEST_ANSWER, wait.remaining()))
        status, text = _health(environment["APP_URL"], limit)
        if status == "200":
            print("The app is healthy.")
            return
        if wait.is_over():
            facts = {"status": status, "text": text, "log": _log_command(environment)}
            raise HookError(HookFault("app-not-healthy", "APP_URL", facts))
        wait.pause(PAUSE_SECONDS, "Waiting until the app is healthy: {}".format(status))


def _health(url: str, seconds: float) -> Tuple[str, str]:
    """Return the status and the text of the app's answer."""
    try:
        answer = send(urllib.request.Request(url + "/api/health"), seconds)
    except NoAnswerError as error:
        return "no answer", str(error)
    return str(answer.status), answer.body.decode(errors="replace")


def _log_command(environment: Mapping[str, str]) -> str:
    insights = environment["APP_NAME"].replace("func-", "appi-", 1)
    group = environment["AZURE_RESOURCE_GROUP"]
    return 'az monitor app-insights query -g "{}" --apps "{}" --analytics-query "{}"'.format(
        group, insights, QUERY
    )


def _print_next_steps(environment: Mapping[str, str]) -> None:
    url = environment["APP_URL"]
    keys = 'az functionapp keys list -g "{}" -n "{}" --query functionKeys.default -o tsv'
    print("Pages:   {}/ and {}/console".format(url, url))
    print("Key:     " + keys.format(environment["AZURE_RESOURCE_GROUP"], environment["APP_NAME"]))
    print("Try it:  make .venv/.installed")
    print("         .venv/bin/operators --url {} --key KEY check".format(url))


if __name__ == "__main__":
    run("The app was deployed, but does not work:", main)
