"""What the template deploys, as Microsoft's compiler works it out: `tools/development/snapshots.py`."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from development.conditions import MODULE, Json, resources_of
from development.snapshots import INFRA

TEXT = r"'(?:[^']|'')*'"
REFERENCE = re.compile(rf"reference\('([^']*)'(?:, {TEXT})*\)((?:\.\w+)*)")
FORMAT = re.compile(rf"format\(({TEXT})((?:, {TEXT})*)\)")
OPTIONS = {path.stem: json.loads(path.read_text()) for path in (INFRA / "options").iterdir()}
"""The files in infra/options."""
ROLE_ASSIGNMENT = "Microsoft.Authorization/roleAssignments"


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One resource. A value that only Azure makes reads `<ID.PROPERTY>`, with the id of the resource that has it."""

    type: str
    full_name: str
    """With the names of those that it is part of."""
    id: str
    api_version: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    sku: Mapping[str, Any] = field(default_factory=dict)
    identity: Mapping[str, Any] = field(default_factory=dict)
    kind: str = ""

    @property
    def name(self) -> str:
        return self.full_name.rpartition("/")[2] if self.is_part else self.full_name

    @property
    def is_part(self) -> bool:
        """Whether it exists within another resource only."""
        return self.type.count("/") > 1

    @property
    def parent_id(self) -> str:
        return self.id.rsplit("/", 2)[0]

    @property
    def scope_id(self) -> str:
        """The id of what it extends, as a role assignment does; empty for any other."""
        if made := re.match(rf"\[extensionResourceId\(({TEXT})", self.id):
            return made[1].strip("'")
        before, _, _ = self.id.rpartition("/providers/")
        return before if "/providers/" in before else ""

    def __str__(self) -> str:
        return self.id


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """What a set of parameters and options deploys."""

    set_name: str
    parameters: Mapping[str, Any]
    changed_options: Mapping[str, Mapping[str, Any]]
    """By the file in infra/options whose values they replace."""
    outputs: Mapping[str, Any]
    resources: list[Resource]

    @cached_property
    def _by_id(self) -> Mapping[str, Resource]:
        return {resource.id: resource for resource in self.resources}

    def with_id(self, resource_id: str) -> Resource:
        return self._by_id[resource_id]

    def of_type(self, kind: str) -> list[Resource]:
        """Return the resources whose type ends so."""
        return [resource for resource in self.resources if resource.type.endswith(kind)]

    def one(self, kind: str, name: str = "") -> Resource:
        """Return the only resource whose type ends, and whose name begins, so."""
        [found] = [one for one in self.of_type(kind) if one.name.startswith(name)]
        return found

    def option(self, file: str, name: str) -> Any:
        """Return the value of an option of a file in infra/options."""
        return (OPTIONS[file] | self.changed_options.get(file, {}))[name]

    @property
    def site(self) -> Resource:
        return self.one("Microsoft.Web/sites")

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings of the app."""
        return self.one("sites/config", "appsettings").properties

    @property
    def is_isolated(self) -> bool:
        return bool(self.parameters.get("networkIsolation"))

    @property
    def is_simulated(self) -> bool:
        """Whether the app plays the remote services."""
        return bool(self.parameters.get("simulatedServices"))

    def __str__(self) -> str:
        return self.set_name


def deployment(set_name: str, content: Json) -> Deployment:
    """Return the content of a snapshot."""
    return Deployment(
        set_name=set_name,
        parameters=content["parameters"],
        changed_options=content["options"],
        outputs=content["outputs"],
        resources=[_resource(resource) for resource in content["resources"]],
    )


def _resource(content: Json) -> Resource:
    read = {
        name: readable(content.get(name) or {})
        for name in ("properties", "tags", "sku", "identity")
    }
    return Resource(
        type=content["type"],
        full_name=content["name"],
        id=content["id"],
        api_version=content["apiVersion"],
        kind=content.get("kind", ""),
        **read,
    )


def readable(value: Any) -> Any:
    """Return it with a text for each formula of a value that only Azure makes; any other formula stays."""
    if isinstance(value, dict):
        return {name: readable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [readable(item) for item in value]
    if not isinstance(value, str) or not value.startswith("["):
        return value
    formula = REFERENCE.sub(r"'<\1\2>'", value[1:-1])
    while FORMAT.search(formula):
        formula = FORMAT.sub(_formatted, formula)
    return formula.strip("'") if re.fullmatch(TEXT, formula) else value


def _formatted(call: re.Match[str]) -> str:
    template, arguments = call.groups()
    for number, argument in enumerate(re.findall(TEXT, arguments)):
        template = template.replace(f"{{{number}}}", argument.strip("'"))
    return template


def type_and_name(resource_id: str) -> tuple[str, str]:
    """Return the type of the resource with this id, and its own name."""
    provider, *parts = resource_id.rpartition("/providers/")[2].split("/")
    return "/".join([provider, *parts[::2]]), parts[-1]


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A resource or module in the compiled template, with what a snapshot lacks."""

    module: str
    """The name of the module's deployment that declares it; empty for the main template."""
    symbol: str
    """Its name in the file; empty where the compiler leaves it out."""
    content: Json

    @property
    def type(self) -> str:
        return str(self.content["type"])

    @property
    def copy(self) -> Mapping[str, Any]:
        """How a loop deploys it; its name is the symbol."""
        return self.content.get("copy", {})

    @property
    def depends_on(self) -> list[str]:
        return self.content.get("dependsOn", [])


def declared(template: Json, module: str = "") -> Iterator[Declared]:
    """Yield all that a compiled template and its modules declare."""
    for symbol, content in resources_of(template):
        yield Declared(module=module, symbol=symbol, content=content)
        if content["type"] == MODULE:
            yield from declared(content["properties"]["template"], content["name"])


def modules(template: Json) -> Iterator[tuple[Json, str, Json]]:
    """Yield each module of a compiled template: the template that deploys it, its symbol or name there, its own template."""
    for symbol, content in resources_of(template):
        if content["type"] == MODULE:
            inner = content["properties"]["template"]
            yield template, symbol or content["name"], inner
            yield from modules(inner)
