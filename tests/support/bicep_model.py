"""Works out what a template would deploy with given parameters: every resource, its properties and its scope.

What only Azure can know (a generated id, an address) becomes an `Unknown` that says what it is.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import add, eq, ge, gt, le, lt, mod, mul, ne, sub, truediv
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bicep_syntax import Expression, Statement, read


@dataclass(frozen=True)
class Unknown:
    """A value that exists after the deployment only."""

    what: str

    def __str__(self) -> str:
        return f"<{self.what}>"


@dataclass(eq=False)
class Resource:
    """One resource, as it is declared."""

    type: str
    version: str
    existing: bool
    config: Mapping[str, Any]
    file: str
    symbol: str

    @property
    def name(self) -> str:
        return str(self.config["name"])

    @property
    def parent(self) -> "Resource | None":
        return self.config.get("parent")

    @property
    def properties(self) -> Mapping[str, Any]:
        return self.config.get("properties", {})

    @property
    def scope(self) -> "Resource | None":
        return self.config.get("scope")

    @property
    def id(self) -> str:
        """The same for a declaration and for the `existing` ones that mean it."""
        above = f"{self.parent.id}/" if self.parent else ""
        return f"{above}{self.type.rpartition('/')[2] if self.parent else self.type}/{self.name}"

    def __str__(self) -> str:
        return f"{self.type} {self.name} ({self.file})"


@dataclass
class Template:
    """One file with its parameters; `resources` has those of its modules too."""

    path: Path
    given: Mapping[str, Any]
    resources: list[Resource] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._statements = {
            statement.name: statement for statement in read(self.path) if statement.kind != "output"
        }
        self._outputs = {
            statement.name: statement for statement in read(self.path) if statement.kind == "output"
        }
        self._known: dict[str, Any] = {}
        if strange := set(self.given) - {
            s.name for s in self._statements.values() if s.kind == "param"
        }:
            raise ValueError(f"{self.path.name} has no parameter {', '.join(sorted(strange))}")
        for name in self._statements:
            if name:
                self.value_of(name)

    def value_of(self, name: str) -> Any:
        if name not in self._known:
            if name not in self._statements:
                raise NameError(f"{self.path.name}: {name} is not declared")
            statement = self._statements[name]
            readers = {
                "param": self._param,
                "var": self._var,
                "resource": self._bodies,
                "module": self._bodies,
            }
            self._known[name] = readers[statement.kind](statement)
        return self._known[name]

    @cached_property
    def outputs(self) -> dict[str, Any]:
        return {
            name: self.evaluate(statement.value, {}) for name, statement in self._outputs.items()
        }

    def evaluate(self, expression: Expression | None, local: Mapping[str, Any]) -> Any:
        if expression is None:
            return None
        return EVALUATORS[expression[0]](self, local, *expression[1:])

    def _param(self, statement: Statement) -> Any:
        if statement.name in self.given:
            value = self.given[statement.name]
        elif statement.value is None:
            raise ValueError(f"{self.path.name}: parameter {statement.name} is not given")
        else:
            value = self.evaluate(statement.value, {})
        check_type(statement, value)
        check_limits(statement, value, lambda limit: self.evaluate(limit, {}))
        return value

    def _var(self, statement: Statement) -> Any:
        return self.evaluate(statement.value, {})

    def _bodies(self, statement: Statement) -> Any:
        if statement.condition and not self.evaluate(statement.condition, {}):
            return None
        if statement.loop is None:
            return self._body(statement, {})
        names, over = statement.loop
        items = self.evaluate(over, {})
        return [
            self._body(statement, dict(zip(names, (item, i), strict=False)))
            for i, item in enumerate(items)
        ]

    def _body(self, statement: Statement, local: Mapping[str, Any]) -> Any:
        config = self.evaluate(statement.value, local)
        if statement.kind == "module":
            child = Template(self.path.parent / statement.detail, config["params"])
            self.resources += child.resources
            return child
        kind, _, version = statement.detail.partition("@")
        resource = Resource(
            kind, version, statement.existing, config, self.path.name, statement.name
        )
        if not statement.existing:
            self.resources.append(resource)
        return resource


def check_type(statement: Statement, value: Any) -> None:
    types = {"string": str, "bool": bool, "int": int, "object": Mapping, "array": list}
    fits = isinstance(value, (types[statement.detail], Unknown)) and not (
        statement.detail == "int" and isinstance(value, bool)
    )
    if not fits:
        raise ValueError(f"{statement.name}: {value!r} is no {statement.detail}")


def check_limits(statement: Statement, value: Any, evaluate: Callable[[Expression], Any]) -> None:
    """Raise ValueError where Azure would refuse the parameter."""
    bulkhead: dict[str, Callable[[Any], bool]] = {
        "allowed": lambda limit: value in limit,
        "minValue": lambda limit: value >= limit,
        "maxValue": lambda limit: value <= limit,
        "minLength": lambda limit: len(value) >= limit,
        "maxLength": lambda limit: len(value) <= limit,
    }
    for name, limit in statement.decorators.items():
        if (
            name in bulkhead
            and not isinstance(value, Unknown)
            and not bulkhead[name](evaluate(limit))
        ):
            raise ValueError(f"{statement.name}: {value!r} breaks {name} {evaluate(limit)}")


def _member(
    template: Template, local: Mapping[str, Any], owner: Expression, key: Expression, safe: bool
) -> Any:
    value, name = template.evaluate(owner, local), template.evaluate(key, local)
    if value is None and safe:
        return None
    if isinstance(value, Unknown):
        return Unknown(f"{value.what}.{name}")
    if isinstance(value, Template):
        return value.outputs if name == "outputs" else Unknown(f"{value.path.name}.{name}")
    if isinstance(value, Resource):
        return _of_resource(value, name)
    if safe:
        return value.get(name)
    try:
        return value[name]
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"{template.path.name}: there is no {name!r} in {value!r}") from error


def _of_resource(resource: Resource, name: str) -> Any:
    if name in ("id", "name"):
        return getattr(resource, name)
    return Unknown(f"{resource.id}.{name}")


def _text(template: Template, local: Mapping[str, Any], pieces: list[Expression]) -> str:
    return "".join(str(template.evaluate(piece, local)) for piece in pieces)


def _object(
    template: Template, local: Mapping[str, Any], entries: list[tuple[Expression, Expression]]
) -> Any:
    return {
        str(template.evaluate(key, local)): template.evaluate(value, local)
        for key, value in entries
    }


def _for(
    template: Template,
    local: Mapping[str, Any],
    loop: tuple[tuple[str, ...], Expression],
    value: Expression,
) -> list[Any]:
    names, over = loop
    items = template.evaluate(over, local)
    return [
        template.evaluate(value, {**local, **dict(zip(names, (item, place), strict=False))})
        for place, item in enumerate(items)
    ]


OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge, "+": add, "-": sub, "*": mul, "/": truediv, "%": mod,
}  # fmt: skip
LAZY: Mapping[str, Callable[[Any], bool]] = {
    "&&": lambda left: not left, "||": bool, "??": lambda left: left is not None,
}  # fmt: skip
"""When the left side decides alone."""


def _binary(
    template: Template, local: Mapping[str, Any], sign: str, left: Expression, right: Expression
) -> Any:
    first = template.evaluate(left, local)
    if sign in LAZY:
        return first if LAZY[sign](first) else template.evaluate(right, local)
    return OPERATORS[sign](first, template.evaluate(right, local))


def _call(
    template: Template, local: Mapping[str, Any], name: str, arguments: list[Expression]
) -> Any:
    values = [template.evaluate(argument, local) for argument in arguments]
    if name in ("loadJsonContent", "loadTextContent"):
        text = (template.path.parent / values[0]).read_text()
        return json.loads(text) if name == "loadJsonContent" else text
    return FUNCTIONS[name](*values)


def digest(*values: Any) -> str:
    return hashlib.sha256("|".join(map(str, values)).encode()).hexdigest()


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "contains": lambda whole, part: part in whole,
    "empty": lambda value: not value,
    "endsWith": lambda text, end: text.endswith(end),
    "environment": lambda: {
        "portal": "https://portal.azure.com",
        "suffixes": {"storage": "core.windows.net"},
        "authentication": {"loginEndpoint": "https://login.microsoftonline.com/"},
    },
    "filter": lambda values, wanted: [value for value in values if wanted(value)],
    "flatten": lambda lists: [value for each in lists for value in each],
    "guid": digest,
    "last": lambda values: values[-1],
    "items": lambda value: [{"key": key, "value": value[key]} for key in sorted(value)],
    "json": json.loads,
    "map": lambda values, mapped: [mapped(value) for value in values],
    "replace": lambda text, old, new: text.replace(old, str(new)),
    "split": lambda text, separator: text.split(separator),
    "startsWith": lambda text, start: text.startswith(start),
    "string": str,
    "subscription": lambda: {"id": "/subscriptions/test"},
    "subscriptionResourceId": lambda kind, name: f"{kind}/{name}",
    "tenant": lambda: {"tenantId": Unknown("tenant")},
    "toLower": str.lower,
    "toObject": lambda values, key, value: {key(each): value(each) for each in values},
    "union": lambda *values: {key: value for each in values for key, value in each.items()},
    "uriComponent": lambda text: quote(str(text), safe=""),
    "uniqueString": lambda *values: digest(*values)[:13],
}

EVALUATORS: Mapping[str, Callable[..., Any]] = {
    "value": lambda _template, _local, value: value,
    "name": lambda template, local, name: local[name] if name in local else template.value_of(name),
    "text": _text,
    "array": lambda template, local, items: [template.evaluate(item, local) for item in items],
    "object": _object,
    "for": _for,
    "member": _member,
    "binary": _binary,
    "call": _call,
    "not": lambda template, local, value: not template.evaluate(value, local),
    "minus": lambda template, local, value: -template.evaluate(value, local),
    "if": lambda template, local, test, yes, no: template.evaluate(
        yes if template.evaluate(test, local) else no, local
    ),
    "lambda": lambda template, local, name, body: (
        lambda value: template.evaluate(body, {**local, name: value})
    ),
}
