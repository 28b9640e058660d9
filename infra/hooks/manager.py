"""Asks Azure's Resource Manager in the name of whoever is signed in to azd.

Written for Python 3.7 without any package, which is what azd asks for.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.error
import urllib.request
from typing import Any, Mapping

SECONDS = 60


class Manager:
    """Resource Manager, as the resource group of this deployment needs it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.address = environment.get("RESOURCE_MANAGER_URL") or "https://management.azure.com"
        subscription = environment["AZURE_SUBSCRIPTION_ID"]
        group = environment["AZURE_RESOURCE_GROUP"]
        self.group = f"/subscriptions/{subscription}/resourceGroups/{group}"
        command = [shutil.which("azd") or "azd", "auth", "token", "--output", "json", "--no-prompt"]
        self.token = json.loads(subprocess.check_output(command))["token"]

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return what Azure answers, None if that is nothing; raises what urllib does."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body else b"" if method == "POST" else None
        request = urllib.request.Request(self.address + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            text = answer.read()
        return json.loads(text) if text else None


def reason(fault: Exception) -> str:
    """Return why it failed, in Azure's own words if it answered; never the token."""
    if isinstance(fault, urllib.error.HTTPError):
        return f"{fault.code} {fault.read().decode(errors='replace')[:500]}"
    return f"{type(fault).__name__}: {fault}"
