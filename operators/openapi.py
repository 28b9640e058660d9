"""The OpenAPI description of the API: the operators' calls, made from their routes and models, and the business's."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, get_type_hints

from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from core.keys import ORDER_ID
from entrypoints.problem import Problem
from operators.health import Health
from operators.requests import OperatorRequest, Query
from operators.views import View

Kind = TypeVar("Kind")
Schema = dict[str, Any]


@dataclass(frozen=True)
class Route:
    """One call, and what answers it."""

    name: str
    """Of the app's function."""
    method: str
    place: str
    """Its path below `api/operator`."""
    call: Callable[..., Awaitable[View]]
    """Its types say what it takes (parts of the path, a query, a body) and answers; its docstring describes it."""

    @property
    def path(self) -> str:
        """The whole path."""
        return f"api/operator/{self.place}"

    @cached_property
    def types(self) -> Mapping[str, type]:
        """What it takes, by name, and returns."""
        return get_type_hints(self.call)

    def takes(self, kind: type[Kind]) -> Iterator[tuple[str, type[Kind]]]:
        """Yield what it takes of this kind: `str` for a part of the path, `Query` or `OperatorRequest`."""
        return ((name, each) for name, each in self.types.items() if name != "return" and issubclass(each, kind))

    @property
    def summary(self) -> str:
        """What the docstring says first."""
        return (self.call.__doc__ or "").partition("\n")[0].partition(";")[0].removesuffix(".")

    @property
    def status(self) -> int:
        """Of an answer that is no refusal: what is done to what the path names may be done later."""
        return 202 if self.method == "POST" and "{" in self.path else 200

    def refusals(self) -> Iterator[int]:
        """Yield the statuses of refusals, beside that for a missing key."""
        if any(self.takes(BaseModel)):
            yield 400
        if "{" in self.path:
            yield 404
            yield 409
        if self.method == "POST":
            yield 411
        yield 503


PARAMETERS: Mapping[str, Schema] = {
    "order_id": {"type": "string", "pattern": f"^{ORDER_ID.pattern}$"},
    "queue": {"type": "string", "minLength": 1},
    "message_id": {"type": "string", "minLength": 1},
}

REFUSALS = {
    400: "The request is not valid; every fault is named",
    404: "There is no such thing",
    409: "The request makes no sense in the present state, or the order cannot be read; nothing was changed",
    411: "The body came without a Content-Length, or in chunks, and was not read",
    503: "Something that is needed is away; try again",
}


def description(routes: Sequence[Route], business: Mapping[str, Any]) -> Schema:
    """Return the description of all calls as OpenAPI 3.1; `business` has the `paths` and `schemas` of its own."""
    references, schemas = _schemas(routes)
    paths: dict[str, Schema] = {path: dict(calls) for path, calls in business.get("paths", {}).items()}
    paths["/api/health"] = {"get": _health(references[Health])}
    for route in routes:
        paths.setdefault(f"/{route.path}", {})[route.method.lower()] = _operation(route, references)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Order processing", "version": "1"},
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "x-functions-key"}},
            "schemas": {**business.get("schemas", {}), **schemas},
        },
    }


def _schemas(routes: Sequence[Route]) -> tuple[Mapping[type[BaseModel], Schema], Schema]:
    """Return where the schema of each model stands, and all of them by name."""
    models: set[tuple[type[BaseModel], JsonSchemaMode]] = {(Problem, "serialization"), (Health, "serialization")}
    for route in routes:
        models |= {(body, "validation") for _, body in route.takes(OperatorRequest)}
        models.add((route.types["return"], "serialization"))
    by_name = sorted(models, key=lambda each: each[0].__name__)
    found, definitions = models_json_schema(by_name, ref_template="#/components/schemas/{model}")
    return {model: found[model, mode] for model, mode in models}, definitions["$defs"]


def _health(schema: Schema) -> Schema:
    return {
        "summary": "Say whether the app can work, and which dependency is away",
        "security": [],
        "responses": {"200": _json("Healthy", schema), "503": _json("Unhealthy", schema)},
    }


def _operation(route: Route, references: Mapping[type[BaseModel], Schema]) -> Schema:
    described: Schema = {
        "summary": route.summary,
        "parameters": [*_parameters(route)],
        "responses": {
            str(route.status): _json("Done", references[route.types["return"]]),
            "401": {"description": "The key is missing or wrong, and nothing was changed"},
            **{
                str(status): _json(REFUSALS[status], references[Problem], "application/problem+json")
                for status in route.refusals()
            },
        },
    }
    for _, body in route.takes(OperatorRequest):
        described["requestBody"] = {"required": True, **_json("", references[body])}
    return described


def _parameters(route: Route) -> Iterator[Schema]:
    for name, _ in route.takes(str):
        yield {"name": to_camel(name), "in": "path", "required": True, "schema": PARAMETERS[name]}
    for _, query in route.takes(Query):
        described = query.model_json_schema()
        for name, schema in described["properties"].items():
            yield {"name": name, "in": "query", "required": name in described.get("required", ()), "schema": schema}


def _json(text: str, schema: Schema, kind: str = "application/json") -> Schema:
    return ({"description": text} if text else {}) | {"content": {kind: {"schema": schema}}}
