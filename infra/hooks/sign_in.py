"""Makes the app registration for the sign-in of operators, without a secret: it trusts the app.

Run it once after azd up, with the right to register applications: python infra/hooks/sign_in.py
It calls Microsoft Graph in the same way as azd, so it needs no Azure CLI.
"""

from __future__ import annotations

import time
import urllib.parse
import uuid
from typing import Any, Mapping, Tuple

from faults import HookError, HookFault, required, run, text_of
from manager import AzureError, Client, Graph, Manager
from programs import azd, azd_json

CLIENT_ID = "OPERATOR_SIGN_IN_CLIENT_ID"
IDENTITY = "id-app-"
IDENTITIES = "/providers/Microsoft.ManagedIdentity/userAssignedIdentities?api-version=2023-01-31"
NEEDED = ("APP_URL", "AZURE_ENV_NAME", "AZURE_RESOURCE_GROUP", "AZURE_SUBSCRIPTION_ID")
NOT_YET_KNOWN = {400, 404}
"""Graph's answers about a new application that not all of its servers know yet."""
TRIES, PAUSE_SECONDS = 6, 5

Environment = Mapping[str, str]


def main(environment: Environment) -> None:
    """Make the registration and store it in azd.

    Raises `HookError` with the remaining work if it fails.
    """
    values = {**environment, **azd_json("env", "get-values")}
    if values.get(CLIENT_ID):
        raise HookError(HookFault("sign-in-exists", CLIENT_ID, {"client": values[CLIENT_ID]}))
    required(values, *NEEDED, "AZURE_TENANT_ID")
    name = "operators-" + values["AZURE_ENV_NAME"]
    try:
        identity = identity_of(Manager(values))
        graph = Graph(values)
        reject_present(graph, name)
        application, client = create(graph, name, values["APP_URL"])
    except AzureError as error:
        raise HookError(error.fault(name)) from error
    complete(graph, name, _calls(application, client, identity, values["AZURE_TENANT_ID"]), client)
    store(name, client)
    print("Made {}. Next, give operators its role Operator in the portal:".format(client))
    print("Enterprise applications, {}, Users and groups. Then run azd provision.".format(name))


def identity_of(manager: Manager) -> str:
    """Return the object id of the app's identity."""
    ids = [
        (identity.get("properties") or {}).get("principalId")
        for identity in manager.items(manager.group + IDENTITIES)
        if identity["name"].startswith(IDENTITY)
    ]
    if len(ids) != 1 or not ids[0]:
        facts = {"name": IDENTITY, "count": len(list(filter(None, ids)))}
        raise HookError(HookFault("identity-not-found", "AZURE_RESOURCE_GROUP", facts))
    return str(ids[0])


def reject_present(graph: Client, name: str) -> None:
    """Raise `HookError` if a registration with this name exists, such as an incomplete one.

    Otherwise operators could be assigned to one, and sign in with the other.
    """
    named = "displayName eq '{}'".format(name)  # azd allows no quotes in it
    query = urllib.parse.urlencode({"$filter": named, "$select": "appId"})
    clients = [application["appId"] for application in graph.items("/v1.0/applications?" + query)]
    if clients:
        raise HookError(HookFault("registration-exists", name, {"clients": clients}))


def create(graph: Client, name: str, url: str) -> Tuple[str, str]:
    """Create the registration. Return its object id and its client id.

    Raises `AzureError` if Graph refuses it, and `HookError` if it may exist nevertheless.
    """
    try:
        return _ids_of(graph.call("POST", "/v1.0/applications", registration(name, url)))
    except (AzureError, KeyboardInterrupt) as error:
        if isinstance(error, AzureError) and 400 <= error.status < 500:
            raise
        facts = {"name": name, "reason": _reason(error, name)}
        raise HookError(HookFault("registration-unknown", name, facts)) from error


def _reason(error: BaseException, name: str) -> str:
    """Return why the work on a registration ended."""
    if isinstance(error, AzureError):
        return text_of(error.fault(name))
    if isinstance(error, HookError):
        return "; ".join(map(text_of, error.faults))
    return "interrupted"


def registration(name: str, url: str) -> Mapping[str, Any]:
    """Return the registration, except for the parts that need its own id."""
    return {
        "displayName": name,
        "signInAudience": "AzureADMyOrg",
        "web": {
            "redirectUris": [url + "/.auth/login/aad/callback"],
            "implicitGrantSettings": {"enableIdTokenIssuance": True},
        },
        "api": {
            "requestedAccessTokenVersion": 2,
            "oauth2PermissionScopes": [
                {
                    "id": str(uuid.uuid4()),
                    "value": "operate",
                    "type": "User",
                    "isEnabled": True,
                    "adminConsentDisplayName": "Operate orders",
                    "adminConsentDescription": "Operate orders",
                }
            ],
        },
        "appRoles": [
            {
                "id": str(uuid.uuid4()),
                "value": "operator",
                "displayName": "Operator",
                "description": "Operates orders",
                "isEnabled": True,
                "allowedMemberTypes": ["User", "Application"],
            }
        ],
    }


def complete(graph: Client, name: str, calls: Any, client: str) -> None:
    """Make the calls that complete the registration. Raises `HookError` that names it."""
    try:
        for method, path, body in calls:
            _call_patiently(graph, method, path, body)
    except (AzureError, HookError, KeyboardInterrupt) as error:
        facts = {"client": client, "reason": _reason(error, name)}
        raise HookError(HookFault("registration-incomplete", name, facts)) from error


def _ids_of(made: Any) -> Tuple[str, str]:
    """Return the object id and the client id of a new application."""
    try:
        return made["id"], made["appId"]
    except (TypeError, LookupError) as error:
        raise AzureError(201, "the answer names no application") from error


def _calls(application: str, client: str, identity: str, tenant: str) -> Any:
    """Return the calls for a new application: method, path and body."""
    # By its object id: the other form of the address has parentheses and quotes.
    path = "/v1.0/applications/" + application
    credential = {
        "name": "app",
        "issuer": "https://login.microsoftonline.com/{}/v2.0".format(tenant),
        "subject": identity,
        "audiences": ["api://AzureADTokenExchange"],
    }
    principal = {"appId": client, "appRoleAssignmentRequired": True}
    return (
        ("PATCH", path, {"identifierUris": ["api://" + client]}),
        ("POST", path + "/federatedIdentityCredentials", credential),
        ("POST", "/v1.0/servicePrincipals", principal),
    )


def _call_patiently(graph: Client, method: str, path: str, body: Any) -> None:
    for tries in range(1, TRIES + 1):
        try:
            graph.call(method, path, body)
        except AzureError as error:
            if error.status not in NOT_YET_KNOWN or tries == TRIES:
                raise
            time.sleep(PAUSE_SECONDS)
        else:
            return


def store(name: str, client: str) -> None:
    """Store the registration in azd. Raises `HookError` with the commands if this fails."""
    try:
        azd("env", "set", CLIENT_ID, client)
    except (HookError, KeyboardInterrupt) as error:
        facts = {"client": client, "reason": _reason(error, name)}
        raise HookError(HookFault("registration-not-stored", name, facts)) from error


if __name__ == "__main__":
    run("The sign-in was not set up:", main)
