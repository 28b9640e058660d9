"""The OpenAPI description of the operators' API, made from its routes and the models that read and write them."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from core.keys import ORDER_ID
from operators.views import View

Call = TypeVar("Call", bound=Callable[..., Awaitable[View]])
Schema = dict[str, Any]


class Problem(View):
    """Problem details (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str | None = None
    faults: list[str] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Route:
    """One call: which function answers it, and how it is described."""

    method: str
    path: str
    query: Sequence[Schema]
    call: Callable[..., Awaitable[View]]
    """Takes the services, the request, and the body if there is one."""
    answer: type[View]
    body: type[BaseModel] | None

    @property
    def name(self) -> str:
        """The name of the app's function."""
        return self.call.__name__

    @property
    def summary(self) -> str:
        """The first line of what the function says of itself."""
        return (self.call.__doc__ or "").partition("\n")[0].removesuffix(".")

    @property
    def acts(self) -> bool:
        """Whether it asks for something to be done to what the path names, which may be done later."""
        return self.method == "POST" and "{" in self.path

    @property
    def status(self) -> int:
        """Of an answer that is no refusal."""
        return 202 if self.acts else 200

    def refusals(self) -> Iterator[int]:
        """Yield the statuses of refusals, beside that for a missing key."""
        if self.body or self.query:
            yield 400
        if "{" in self.path:
            yield 404
            yield 409
        if self.body:
            yield 411
        yield 503


class Routes(list[Route]):
    """Calls, described by the function that answers it: its name, its docstring, its answer, its parameter `body`."""

    def get(self, path: str, *parameters: Schema) -> Callable[[Call], Call]:
        """Decorate the function that answers a GET with these parameters in its query."""
        return self._route("GET", path, parameters)

    def post(self, path: str) -> Callable[[Call], Call]:
        """Decorate the function that answers a POST."""
        return self._route("POST", path, ())

    def _route(self, method: str, path: str, parameters: Sequence[Schema]) -> Callable[[Call], Call]:
        def add(call: Call) -> Call:
            types = get_type_hints(call)
            answer, body = types["return"], types.get("body")
            self.append(Route(method=method, path=path, query=parameters, call=call, answer=answer, body=body))
            return call

        return add


def query(name: str, *, required: bool = False, **schema: Any) -> Schema:
    """Return the description of a parameter in the query."""
    return {"name": name, "in": "query", "required": required, "schema": schema}


PARAMETERS: Mapping[str, Schema] = {
    "orderId": {"type": "string", "pattern": f"^{ORDER_ID.pattern}$"},
    "queue": {"type": "string", "minLength": 1},
    "messageId": {"type": "string", "minLength": 1},
}

REFUSALS = {
    400: "The request is not valid; every fault is named",
    404: "There is no such thing",
    409: "The request makes no sense in the present state, or the order cannot be read; nothing was changed",
    411: "The body came without a Content-Length, or in chunks, and was not read",
    503: "Something that is needed is away; try again",
}


def description(routes: Sequence[Route]) -> Schema:
    """Return the description of these calls as OpenAPI 3.1."""
    references, schemas = _schemas(routes)
    paths: dict[str, Schema] = {}
    for route in routes:
        paths.setdefault(f"/{route.path}", {})[route.method.lower()] = _operation(route, references)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Operators' API", "version": "1"},
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "x-functions-key"}},
            "schemas": schemas,
        },
    }


def _schemas(routes: Sequence[Route]) -> tuple[Mapping[type[BaseModel], Schema], Schema]:
    """Return where the schema of each model stands, and all of them by name."""
    bodies = {route.body for route in routes if route.body}
    answers: set[type[BaseModel]] = {Problem, *(route.answer for route in routes)}
    modes: dict[type[BaseModel], JsonSchemaMode] = dict.fromkeys(bodies, "validation")
    modes |= dict.fromkeys(answers, "serialization")
    models = sorted(modes.items(), key=lambda each: each[0].__name__)
    found, definitions = models_json_schema(models, ref_template="#/components/schemas/{model}")
    return {model: found[model, mode] for model, mode in models}, definitions["$defs"]


def _operation(route: Route, references: Mapping[type[BaseModel], Schema]) -> Schema:
    described: Schema = {
        "summary": route.summary,
        "parameters": [*_path_parameters(route.path), *route.query],
        "responses": {
            str(route.status): _json("Done", references[route.answer]),
            "401": {"description": "The key is missing or wrong, and nothing was changed"},
            **{
                str(status): _json(REFUSALS[status], references[Problem], "application/problem+json")
                for status in route.refusals()
            },
        },
    }
    if route.body:
        described["requestBody"] = {"required": True, **_json("", references[route.body])}
    return described


def _path_parameters(path: str) -> Iterator[Schema]:
    for name, schema in PARAMETERS.items():
        if f"{{{name}}}" in path:
            yield {"name": name, "in": "path", "required": True, "schema": schema}


def _json(text: str, schema: Schema, kind: str = "application/json") -> Schema:
    return ({"description": text} if text else {}) | {"content": {kind: {"schema": schema}}}
