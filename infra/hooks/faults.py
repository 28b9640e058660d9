"""The faults of the hooks: each has a code, a place and facts. Only `text_of` makes words of them.

The hooks run on whatever Python azd finds, so everything here uses only Python 3.7 and its standard
library.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any, Callable, Iterable, List, Mapping, NamedTuple

LONGEST = 500
"""The most characters of another program's text that a fault shows."""
INTERRUPTED = 130

TEMPLATES = {
    # Settings of the azd environment.
    "variable-missing": (
        "the variable is not set. azd sets it during provisioning: run azd provision"
    ),
    "switch-invalid": "{value} is not a switch; use true or false, or leave the variable empty",
    "number-invalid": "{value} is not a number; use digits alone",
    "python-version-invalid": "pythonVersion {value} is not a version; use one such as {example}",
    "range-invalid": "{name} {value} is not an address or a range; use one such as {example}",
    "setting-missing": (
        "the service needs this {kind}. Set it, or deploy a demonstration: "
        "azd env set SIMULATED_SERVICES true"
    ),
    "settings-unreadable": (
        "not a JSON object of texts. The hook preprovision makes it from the agents' variables: "
        "docs/operations/parameters.md#the-settings-of-the-agents"
    ),
    "url-invalid": "use a URL that begins with {start}, without a user name or password",
    "url-with-query": (
        "the address has a query or a fragment, so no path can be appended to it; remove the part "
        "from ? or # on. If the service wants a key, declare the key: "
        "docs/reference/agents.md#a-service-as-it-is"
    ),
    "channel-invalid": (
        "use an address that begins with {start}, or a reference to a Key Vault: "
        "docs/operations/parameters.md#channels-to-people"
    ),
    "sender-missing": (
        "not set, but SMTP_URL needs it. Set the address from which that server sends mail"
    ),
    "front-door-simulated": (
        "the app calls its simulated services at its own address, which only Front Door could "
        "reach. Unset FRONT_DOOR_ID or SIMULATED_SERVICES"
    ),
    "not-in-place": (
        "deployed as {deployed}, and Azure cannot change it to {wanted} in place: "
        "docs/operations/parameters.md#what-may-be-changed-later"
    ),
    # Files and programs.
    "file-unreadable": "cannot be read: {reason}. Write it with {command}",
    "program-missing": "the program is not installed, or not on the path",
    "program-failed": "exit code {exit}. {output}",
    "output-unreadable": (
        "the output with --output json is not what the hook expected. The output is not shown, "
        "because it may hold a secret. Update azd, then try again"
    ),
    "install-failed": (
        "exit code {exit}; its output is above. Nothing was packed. Python: {python}"
    ),
    "folder-unusable": (
        "cannot be replaced: {reason}. Close the program that uses it, and try again"
    ),
    # The package.
    "package-missing": "missing or incomplete. Run azd deploy again",
    "package-outdated": (
        "requirements.txt has changed since the app was packed (digest {packed}, now {present}). "
        "Run azd deploy again"
    ),
    "package-python-differs": (
        "packed for Python {packed}, but Python {provisioned} is provisioned. Set "
        "pythonVersion in infra/options/app.json, then run azd up"
    ),
    # Azure.
    "azure-refused": "Azure answered {status}: {reason}",
    "azure-silent": "no answer from Azure: {reason}",
    "certificate-untrusted": (
        "the Python that runs this hook does not trust the certificate: {reason}. On macOS with "
        'python.org\'s Python, run "Install Certificates.command". Behind a proxy that replaces '
        "certificates, set SSL_CERT_FILE to a file with those to trust"
    ),
    "app-not-healthy": (
        "/api/health: {status}. {text}\n"
        "  404 or no answer: the app did not start. Some minutes later its log says why: {log}\n"
        "  503: the answer names the dependency that is unavailable or denies access. A new role "
        "may take ten minutes to take effect"
    ),
    "functions-missing": (
        "Azure does not know these functions, so nothing starts them: {functions}. "
        "Press Refresh in the portal's list of functions, or: az functionapp restart {options}"
    ),
    "functions-not-checked": (
        "the functions were not checked: {reason}. To list them: az functionapp function list "
        "{options} --query [].name -o tsv"
    ),
    # The operators' sign-in.
    "sign-in-exists": "operators already sign in with the app registration {client}",
    "identity-not-found": "expected one identity whose name begins with {name}; found {count}",
    "registration-exists": (
        "there already is an app registration of this name: {clients}. To start again, delete it "
        "(az ad app delete --id CLIENT)"
    ),
    "registration-incomplete": (
        "the app registration {client} was made but is incomplete: {reason}. Delete it before you "
        "try again (az ad app delete --id {client})"
    ),
    "registration-unknown": (
        "this app registration may have been made: {reason}. To look for it, run: az ad app "
        'list --display-name "{name}" --query [].appId -o tsv. If it is there, delete it before '
        "you try again (az ad app delete --id CLIENT)"
    ),
    "registration-not-stored": (
        "the app registration {client} is complete, but azd could not store its id: {reason}. "
        "Run azd env set OPERATOR_SIGN_IN_CLIENT_ID {client}"
    ),
}
"""The text of each code: what is wrong, then what to do. Names in braces are facts."""


class HookFault(NamedTuple):
    """A reason why a hook cannot do its work."""

    code: str
    place: str
    """The variable, file or program, as the person who deploys knows it."""
    facts: Mapping[str, Any] = {}


class HookError(Exception):
    """The hook cannot do its work."""

    def __init__(self, *faults: HookFault) -> None:
        super().__init__(*faults)
        self.faults = faults


def text_of(fault: HookFault) -> str:
    """Return the words of a fault: what is wrong, what to do, and the code in brackets."""
    facts = {name: plain(value) for name, value in fault.facts.items()}
    return "{}: {} [{}]".format(
        fault.place, TEMPLATES[fault.code].format(**facts).rstrip(". "), fault.code
    )


def plain(value: Any) -> str:
    """Return a value as one short line without control characters."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(plain, value))
    shown = "".join(character if character.isprintable() else " " for character in str(value))
    return re.sub(" +", " ", shown).strip()[:LONGEST]


def missing(environment: Mapping[str, str], *names: str) -> List[HookFault]:
    """Return a fault for each of the variables that is not set."""
    return [HookFault("variable-missing", name) for name in names if not environment.get(name)]


def required(environment: Mapping[str, str], *names: str) -> List[str]:
    """Return the values of variables. Raises `HookError` with a fault for each that is not set."""
    faults = missing(environment, *names)
    if faults:
        raise HookError(*faults)
    return [environment[name] for name in names]


def number_faults(environment: Mapping[str, str], *names: str) -> List[HookFault]:
    """Return a fault for each of the variables whose value is not all digits."""
    given = {name: environment.get(name) or "" for name in names}
    return [
        HookFault("number-invalid", name, {"value": value})
        for name, value in given.items()
        if value and not re.fullmatch("[0-9]+", value)
    ]


def run(heading: str, hook: Callable[[Mapping[str, str]], None]) -> None:
    """Run a hook and end the process with 0, or with 1 and the faults on standard error."""
    streams: List[Any] = [sys.stdin, sys.stdout, sys.stderr]
    for stream in streams:
        if stream:  # None where it was closed
            # Text of another program may not fit the encoding of this terminal. And azd reads from
            # a pipe: without line buffering nobody would see progress before the end.
            stream.reconfigure(errors="replace", line_buffering=True)
    try:
        hook(os.environ)
    except HookError as error:
        report(heading, error.faults)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def report(heading: str, faults: Iterable[HookFault]) -> None:
    """Print all faults together on standard error."""
    lines = [heading] + ["- " + text_of(fault) for fault in faults]
    print("\n".join(lines), file=sys.stderr)
