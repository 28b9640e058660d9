"""Calls Azure's Resource Manager and Microsoft Graph as the account that is signed in to azd."""

from __future__ import annotations

import json
import urllib.request
from typing import Any, Iterator, Mapping

from faults import HookError, HookFault, required
from http_client import HookAnswer, NoAnswerError, send
from programs import azd_json

SECONDS = 60
"""The time limit of a call, in seconds."""


class AzureError(Exception):
    """Azure refused a call, or gave no usable answer."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status, reason)
        self.status, self.reason = status, reason
        """The status is 0 if no complete answer arrived."""

    def fault(self, place: str) -> HookFault:
        """Return the fault of the place that needed the answer."""
        if not self.status:
            return HookFault("azure-silent", place, {"reason": self.reason})
        return HookFault("azure-refused", place, {"status": self.status, "reason": self.reason})


class Client:
    """One of Azure's APIs."""

    def __init__(self, url: str, *scope: str) -> None:
        """Get a token from azd. Raises `HookError` if it has none."""
        self.url = url
        found = azd_json("auth", "token", "--no-prompt", *scope)
        if not isinstance(found.get("token"), str):
            raise HookError(HookFault("output-unreadable", "azd auth token"))
        self._token = found["token"]

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer's JSON, or None if it is empty. Raises `AzureError`."""
        headers = {
            "Authorization": "Bearer {}".format(self._token),
            "Content-Type": "application/json",
        }
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            answer = send(request, SECONDS)
        except NoAnswerError as error:
            raise AzureError(0, str(error)) from error
        return _content_of(answer)

    def items(self, path: str) -> Iterator[Any]:
        """Yield the items listed at a path, page by page. Raises `AzureError`."""
        while path:
            page = self.call("GET", path)
            found = page.get("value") if isinstance(page, dict) else None
            if not isinstance(found, list):
                raise AzureError(200, "the answer has no list")
            yield from found
            path = (page.get("nextLink") or "").replace(self.url, "", 1)


def _content_of(answer: HookAnswer) -> Any:
    if not 200 <= answer.status < 300:
        raise AzureError(answer.status, answer.body.decode(errors="replace"))
    try:
        return json.loads(answer.body.decode()) if answer.body else None
    except ValueError as error:
        raise AzureError(answer.status, "the answer is not JSON") from error


class Manager(Client):
    """Resource Manager, for the resource group of this deployment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        names = ("AZURE_SUBSCRIPTION_ID", "AZURE_RESOURCE_GROUP")
        subscription, group = required(environment, *names)
        self.group = "/subscriptions/{}/resourceGroups/{}".format(subscription, group)
        super().__init__(environment.get("RESOURCE_MANAGER_URL") or "https://management.azure.com")


class Graph(Client):
    """Microsoft Graph, with the tenant's app registrations."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        (tenant,) = required(environment, "AZURE_TENANT_ID")
        url = environment.get("MICROSOFT_GRAPH_URL") or "https://graph.microsoft.com"
        super().__init__(
            url, "--scope", "https://graph.microsoft.com/.default", "--tenant-id", tenant
        )
