"""Keeps snapshots of the resources that the template would deploy, as Microsoft's compiler evaluates it.

So the diff of a change shows its effect in Azure. `tests/deployment/snapshots` has a file for each of the sets below.
It also has the compiled template (`template.json`), which contains dependencies and other parts that the sets lack, and
a digest of each file that the template reads (`sources.json`).
"""

import hashlib
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import click

from development import bicep, compiler
from development.business import DEPLOYED, named
from development.conditions import Json, conditions
from development.faults import DevelopmentCode
from development.servicebus_config import ROOT
from engine.declarations.business import Application
from functions_alone.faults import StackFault
from functions_alone.ports import StackError

INFRA = ROOT / "infra"
KEPT = ROOT / "tests/deployment/snapshots"
COMPILED, SOURCES = "template", "sources"
COMMAND = "make snapshots ARGS=--write"
SHOWN = 5
"""How many differences of a file are printed."""
GROUP = re.compile(r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/")
"""The beginning of the ids of almost all resources."""
PROBES = "Probe.Conditions/values"
"""A type that does not exist in Azure. The compiler computes its properties, which are the template's conditions."""
REQUIRED: Mapping[str, Any] = {
    "environmentName": "test",
    "location": "westeurope",
    "operatorEmail": "operators@example.com",
}
"""The parameters without a default."""
STAND_INS = {
    "environment().suffixes.storage": "core.windows.net",
    "environment().portal": "https://portal.azure.com",
    "environment().authentication.loginEndpoint": "https://login.microsoftonline.com/",
    "reference('site').defaultHostName": "app.azurewebsites.net",
}
"""Replacements for values that only Azure knows. The template uses them in names and calls.

Without them, these would stay formulas. The values are those of Azure's public cloud, and a made-up host name.
"""
SIGN_IN = "00000000-0000-0000-0000-00000000000a"
DEVELOPER = "00000000-0000-0000-0000-00000000000d"

Given = Mapping[str, Mapping[str, Any]]
"""`parameters` besides the required ones, and `options`: the values that differ for each file in `infra/options`."""


def sets(business: Application) -> Mapping[str, Given]:
    """Return the inputs of each snapshot.

    Together they reach both sides of every condition of the template, except those of single items of a loop.
    """
    every = {
        setting.name: address(setting.name)
        for agent in business.agents
        for setting in agent.settings
    }
    needed = {
        agent.address: address(agent.address)
        for agent in business.agents
        if agent.address and not agent.optional
    }
    return {
        "default": {},
        "isolated": {"parameters": {"networkIsolation": True}},
        "demonstration": {
            "parameters": {
                "networkIsolation": True,
                "simulatedServices": True,
                "redundancy": "geo-zone",
                "operatorSignInClientId": SIGN_IN,
            },
            "options": {"app": {"alwaysReadyInstances": 2}},
        },
        "vault": {
            "parameters": {
                "developerPrincipalId": DEVELOPER,
                "serviceSettings": needed | {"AN_EMPTY_ONE": ""},
            },
            "options": {"app": {"alwaysReadyInstances": 1}, "data": {"keyVault": True}},
        },
        "isolated-vault": {
            "parameters": {
                "networkIsolation": True,
                "simulatedServices": True,
                "serviceSettings": every,
            },
            "options": {
                "app": {"deployFrom": "203.0.113.7"},
                "data": {"keyVault": True},
            },
        },
        "restricted": {
            "parameters": {
                "redundancy": "geo",
                "frontDoorId": "00000000-0000-0000-0000-00000000000f",
                "operatorSignInClientId": SIGN_IN,
                "operatorEmail": "ada@example.com, grace@example.com,ada@example.com",
                "operatorWebhooks": "https://chat.example.com/one,https://chat.example.com/two",
                "developerPrincipalId": DEVELOPER,
                "serviceSettings": every,
            },
            "options": {
                "app": {
                    "alwaysReadyInstances": 1,
                    "deployFrom": "203.0.113.0/24",
                    "corsOrigins": ["https://tea.example", "http://localhost:5173"],
                    "operatorRole": "on-call",
                },
                "data": {"lock": True},
            },
        },
        "channels": {
            "parameters": {
                "operatorEmail": "ada@example.com, grace@example.com",
                "teamsWebhookUrl": reference("teams"),
                "slackWebhookUrl": reference("slack"),
                "smtpUrl": reference("smtp"),
                "smtpSender": "orders@example.com",
            },
            "options": {
                "monitoring": {
                    "mail": True,
                    "mailDataLocation": "United States",
                    "alertRules": [
                        {"channel": "mail", "severity": "action"},
                        {"channel": "slack", "severity": "info", "workflows": ["order"]},
                        {"channel": "teams", "types": ["OrderProcessing.Stalled"]},
                    ],
                    "alertIntervalSeconds": 1800,
                    "alertOperationsPerSecond": 20,
                },
            },
        },
        "tuned": {
            "options": {
                "app": {
                    "maximumInstances": 7,
                    "updateStrategy": "RollingUpdate",
                    "zoneRedundant": True,
                    "scaleByQueueLength": True,
                    "deployFrom": "2001:db8::7",
                    "settings": {
                        "BUCKETS": "32",
                        "AzureWebJobs.supervisor_sweep.Disabled": "true",
                    },
                },
                "data": {"tableRoleOnAccount": True, "retentionDays": 0},
                "monitoring": {
                    "logDays": 45,
                    "accessLog": False,
                    "accessLogDays": 400,
                    "dailyLogGigabytes": 5,
                    "availabilityTest": False,
                },
            },
        },
    }


def address(setting: str) -> str:
    """Return the value of a setting with a service's address in the sets."""
    return f"https://{setting.lower().replace('_', '-')}.example.com"


def reference(secret: str) -> str:
    """Return the value of a setting whose secret is in a Key Vault."""
    return f"@Microsoft.KeyVault(VaultName=kv-alerts;SecretName={secret})"


class Snapshots:
    """Makes snapshots of the present template, in a folder for its own files."""

    def __init__(self, uses: compiler.Compiler, folder: Path) -> None:
        self._compiler, self._folder = uses, folder
        self._compiled: dict[str, Json] = {}

    def template(self, options: Mapping[str, Json] | None = None) -> Json:
        """Return the compiled template with these options. Raises `StackError` if the compiler refuses it."""
        key = json.dumps(options or {}, sort_keys=True)
        if key not in self._compiled:
            infra = self._new_folder() / "infra"
            shutil.copytree(INFRA, infra, ignore=shutil.ignore_patterns("hooks"))
            for name, changed in (options or {}).items():
                file = infra / f"options/{name}.json"
                file.write_text(json.dumps(json.loads(file.read_text()) | changed))
            self._compiled[key] = self._compiler.compile(infra / "main.bicep")
        return self._compiled[key]

    def take(self, given: Given) -> Json:
        """Return what is deployed with these parameters and options, and the value of each condition."""
        template = _computable(self.template(given.get("options")))
        probed = _probe(template)
        parameters = {**REQUIRED, **given.get("parameters", {})}
        taken = self._compiler.snapshot(self.write(template, parameters))
        found: dict[str, list[Any]] = {}
        resources = []
        for resource in taken["predictedResources"]:
            if resource["type"] == PROBES:
                number = resource["name"].removeprefix("probe")
                found.setdefault(probed[int(number)], []).append(resource["properties"]["value"])
            else:
                resources.append(resource)
        return {
            "parameters": parameters,
            "options": given.get("options", {}),
            "conditions": found,
            "resources": sorted(without_noise(resources), key=lambda resource: resource["id"]),
            "outputs": taken["outputs"],
        }

    def write(self, template: Json, parameters: Json) -> Path:
        """Write a compiled template and a parameters file for it.

        Each parameter is on the line of its position, from 2.
        """
        folder = self._new_folder()
        (folder / "template.json").write_text(json.dumps(template))
        (folder / "parameters.json").write_text(json.dumps(parameters))
        lines = [f"param {name} = loadJsonContent('parameters.json').{name}" for name in parameters]
        file = folder / "main.bicepparam"
        file.write_text("\n".join(["using 'template.json'", *lines, ""]))
        return file

    def _new_folder(self) -> Path:
        # The compiler reads a file once, and not again when it has changed.
        return Path(tempfile.mkdtemp(dir=self._folder))

    def every(self) -> dict[str, Json]:
        """Return the content of every snapshot file, by name."""
        business = named(DEPLOYED)
        read = sorted(path.relative_to(ROOT) for path in self._compiler.files_read(bicep.MAIN))
        return {
            COMPILED: without_noise(self.template()),
            SOURCES: {
                "business": DEPLOYED,
                "files": {path.as_posix(): digest(ROOT / path) for path in read},
            },
            **{name: self.take(given) for name, given in sets(business).items()},
        }


def _probe(template: Json) -> list[str]:
    """Add a resource for each condition to its module. Return the names of the conditions."""
    found = []
    for number, (name, module, expression) in enumerate(list(conditions(template))):
        probe = {
            "type": PROBES,
            "apiVersion": "2020-01-01",
            "name": f"probe{number}",
            "properties": {"value": f"[{expression}]"},
        }
        if isinstance(module["resources"], dict):
            module["resources"][probe["name"]] = probe
        else:
            module["resources"].append(probe)
        found.append(name)
    return found


def _computable(value: Any) -> Any:
    """Return a template with plain parameters for secure ones, and with the stand-ins.

    Otherwise all values that depend on these would stay formulas.
    """
    if isinstance(value, list):
        return [_computable(item) for item in value]
    if isinstance(value, dict):
        plain = {name: _computable(item) for name, item in value.items()}
        if isinstance(kind := value.get("type"), str) and kind.lower().startswith("secure"):
            plain["type"] = kind.lower().removeprefix("secure")
        return plain
    if isinstance(value, str) and value.startswith("["):
        for call, result in STAND_INS.items():
            value = value.replace(call, f"'{result}'")
    return value


def without_noise(value: Any) -> Any:
    """Return the content without the compiler's version and hash, and without the workbook.

    The workbook is one long line.
    """
    if isinstance(value, dict):
        return {name: without_noise(item) for name, item in value.items() if name != "_generator"}
    if isinstance(value, list):
        return [without_noise(item) for item in value]
    return "infra/workbook.json" if isinstance(value, str) and '"Notebook/1.0"' in value else value


def digest(path: Path) -> str:
    """Return a digest of a text file that does not depend on its line ends. Empty if there is no file."""
    return hashlib.sha256(path.read_text().encode()).hexdigest() if path.exists() else ""


def kept(name: str) -> Json:
    """Return the content of a snapshot file. Empty if there is none."""
    path = KEPT / f"{name}.json"
    content: Json = json.loads(path.read_text()) if path.exists() else {}
    return content


def outdated() -> list[str]:
    """Return what has changed since the snapshots were made: files that the template reads, and sets."""
    business = named(DEPLOYED)
    files = [
        name for name, was in kept(SOURCES).get("files", {}).items() if digest(ROOT / name) != was
    ]
    return files + [name for name, given in sets(business).items() if not _is_of(kept(name), given)]


def _is_of(content: Json, given: Given) -> bool:
    wanted = {
        "parameters": {**REQUIRED, **given.get("parameters", {})},
        "options": given.get("options", {}),
    }
    return {name: content.get(name) for name in wanted} == wanted


def differences(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """Yield a line for each place where two contents differ. Resources are compared by their ids."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            inner = f"{place}.{name}" if place else name
            yield from differences(before.get(name, MISSING), after.get(name, MISSING), inner)
    elif all(isinstance(value, list) for value in (before, after)) and before != after:
        yield from differences(_by_id(before), _by_id(after), place)
    elif before != after:
        yield f"{GROUP.sub('', place)}: {_shown(before)} -> {_shown(after)}"


MISSING = object()


def _by_id(items: Iterable[Any]) -> Json:
    return {
        str(item["id"] if isinstance(item, dict) and "id" in item else place): item
        for place, item in enumerate(items)
    }


def _shown(value: Any) -> str:
    return "(nothing)" if value is MISSING else json.dumps(value, sort_keys=True)[:200]


def text_of(content: Json) -> str:
    """Return the text of a snapshot file, with sorted keys and one line for each value."""
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def make_all(program: str) -> dict[str, Json]:
    """Return the content of every snapshot file for the present template. Raises `StackError`."""
    with tempfile.TemporaryDirectory() as folder, compiler.running(program) as running:
        return Snapshots(running, Path(folder).resolve()).every()


def compare(made: Mapping[str, Json]) -> None:
    """Raise `StackError` with the differences of each file."""
    faults = []
    names = made.keys() | {path.stem for path in KEPT.glob("*.json")}
    for name in sorted(names):
        found = list(islice(differences(kept(name), made.get(name, {})), SHOWN))
        if found:
            facts = {"command": COMMAND, "differences": "\n".join(f"  {line}" for line in found)}
            place = str((KEPT / f"{name}.json").relative_to(ROOT))
            faults.append(StackFault(DevelopmentCode.SNAPSHOT_OUTDATED, place, facts))
    if faults:
        raise StackError(*faults)


def write(made: Mapping[str, Json]) -> None:
    """Write every file again, and delete the files of former sets."""
    KEPT.mkdir(exist_ok=True)
    for path in KEPT.glob("*.json"):
        if path.stem not in made:
            path.unlink()
    for name, content in made.items():
        (KEPT / f"{name}.json").write_text(text_of(content))


@click.command(help=__doc__)
@click.option(
    "--write", "writes", is_flag=True, help="Write the files. Without it they are compared."
)
def main(*, writes: bool) -> None:
    try:
        made = make_all(bicep.required())
        if writes:
            write(made)
            print(f"{KEPT.relative_to(ROOT)}: {len(made)} files written.")
        elif (owner := kept(SOURCES).get("business", DEPLOYED)) != DEPLOYED:
            print(
                f"{KEPT.relative_to(ROOT)} is of {owner}: nothing to compare. `{COMMAND}` makes it yours."
            )
        else:
            compare(made)
            print(f"{KEPT.relative_to(ROOT)}: {len(made)} files fit the template.")
    except StackError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
