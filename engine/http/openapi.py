"""The routes of the API, and the OpenAPI description made from them."""

import ast
import inspect
import re
import textwrap
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from http import HTTPStatus
from itertools import chain, pairwise
from typing import Any, TypeVar, get_args, get_type_hints

from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from pydantic.json_schema import (
    CoreModeRef,
    CoreRef,
    DefsRef,
    GenerateJsonSchema,
    JsonSchemaMode,
    JsonSchemaValue,
    models_json_schema,
)
from pydantic_core import core_schema

from engine.domain.keys import ORDER_ID
from engine.http.models import Parameters, Problem, RequestBody, View

Schema = dict[str, Any]
Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Route:
    """A call of the API, with the method that answers it."""

    name: str
    """The name of the Azure function."""
    method: str
    path: str
    call: Callable[..., Awaitable[View]]
    """The method that answers the call.

    Its arguments are parts of the path, `Parameters`, and any other model for the body. The types
    of the arguments and of the result describe the call, and the docstring is its summary.
    """
    open: bool = False
    """Whether the call works without the operators' key."""
    also_refuses: Sequence[int] = ()
    """More statuses of refusals."""
    patterns: Mapping[str, str] = field(default_factory=dict)
    """A regular expression for each part of the path, by name. A part without one accepts any text.
    """

    @cached_property
    def types(self) -> Mapping[str, type]:
        """The types of the method's arguments, by name, and of its result."""
        return get_type_hints(self.call)

    def takes(self, kind: type[Kind]) -> Iterator[tuple[str, type[Kind]]]:
        """Yield the arguments of this kind: `str` for parts of the path, or `Parameters`."""
        return (
            (name, annotation)
            for name, annotation in self.types.items()
            if name != "return" and issubclass(annotation, kind)
        )

    @property
    def bodies(self) -> Iterator[tuple[str, type[BaseModel]]]:
        """The argument for the body with its model, if there is one."""
        for name, annotation in self.takes(BaseModel):
            if not issubclass(annotation, Parameters):
                yield name, annotation

    @property
    def views(self) -> Iterator[type[View]]:
        """The models of the answers. If there are several, each has its own status."""
        returned = self.types["return"]
        yield from get_args(returned) or (returned,)

    @property
    def summary(self) -> str:
        """The beginning of the docstring's first line, without the ids of statements."""
        line = (self.call.__doc__ or "").partition("\n")[0].partition(";")[0].removesuffix(".")
        return re.sub(r" \([A-Z]{3}-\d[^)]*\)$", "", line)

    @property
    def is_limited(self) -> bool:
        """Whether the number of these calls is limited for each caller.

        Operators' calls are not limited. Neither are calls that count wrong callback URLs
        themselves.
        """
        return self.open and 429 not in self.also_refuses

    def refusals(self) -> Iterator[int]:
        """Yield the statuses of refusals, except the one for a missing key."""
        parameters = [annotation for _, annotation in self.takes(Parameters)]
        names_thing = "{" in self.path
        names_key = any(parameter.place == "header" for parameter in parameters)
        if parameters or any(self.bodies):
            yield 400
        if names_thing:
            yield 404
        if names_thing or names_key:
            yield 409
        if any(self.bodies):
            yield 411
        if self.is_limited:
            yield 429
        yield from self.also_refuses
        yield 503


WAIT = {
    "schema": {
        "type": "integer",
        "minimum": 0,
        "description": "Seconds until the next try",
    }
}
WITH_WAIT = (404, 429, 503)
"""The statuses of refusals that may end without the caller's doing."""

NO_ROLE = "The signed-in user is not an operator, and nothing was changed"
REFUSALS = {
    400: "The request is not valid; every fault is named",
    403: "The callback URL is not valid, or is no longer valid",
    404: "Not found",
    409: "The request is not possible in the present state, or the order cannot be read; "
    "nothing was changed",
    411: "The body came without a Content-Length, or in chunks, and was not read",
    429: "Too many calls from one address, or with a wrong callback URL",
    503: "A service that this request needs is unavailable; try again",
}


BOUNDS_OF_TIMES = {"gt", "ge", "lt", "le"}
ABOUT_ALL = (
    "A time has a zone, and is in 1970 or later. "
    "A continuation is a value that a page of the same list returned."
)
"""What no schema says about the values of several calls."""


def description(routes: Sequence[Route]) -> Schema:
    """Return the OpenAPI 3.1 description of all calls."""
    references, schemas = _schemas(routes)
    paths: dict[str, Schema] = {}
    for route in routes:
        paths.setdefault(f"/{route.path}", {})[route.method.lower()] = _operation(route, references)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Order processing",
            "version": "1",
            "description": ABOUT_ALL,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "key": {"type": "apiKey", "in": "header", "name": "x-functions-key"}
            },
            "schemas": schemas,
        },
    }


def _titles(*bases: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Yield the name and title of each model below these bases that has a title."""
    for base in bases:
        for model in base.__subclasses__():
            if title := model.model_config.get("title"):
                yield model.__name__, title
            yield from _titles(model)


class _Described(GenerateJsonSchema):
    """Makes schemas that client generators turn into ordinary types."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Leave out titles, because they only repeat the names of fields."""
        del schema
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Leave out null as a default, because it only says that the value may be left out."""
        described = super().default_schema(schema)
        if described.get("default", "") is None:
            del described["default"]
        return described

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Describe each field by the docstring below it."""
        described = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        fields = described.get("properties", {})
        for name, text in field_texts(model):
            declared = model.model_fields.get(name)
            alias = (declared and declared.alias) or name
            if alias in fields:
                fields[alias] = {"description": text, **fields[alias]}
        return described

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """Describe a nullable value by two types instead of a choice of two schemas."""
        described = self.generate_inner(schema["schema"])
        if not isinstance(described.get("type"), str) or "const" in described:
            return super().nullable_schema(schema)
        return _or_null(described)

    def generate_inner(self, schema: Any) -> JsonSchemaValue:
        """Leave out the bounds of times. Pydantic has names for them, but JSON Schema does not."""
        described = super().generate_inner(schema)
        return {name: value for name, value in described.items() if name not in BOUNDS_OF_TIMES}

    def get_defs_ref(self, core_mode_ref: CoreModeRef) -> DefsRef:
        """Name the schema of a model by its title, which stays if the class is renamed."""
        core_ref, mode = core_mode_ref
        titles = dict(_titles(RequestBody, View))
        titled = re.sub(r"\w+(?=:)", lambda name: titles.get(name[0], name[0]), core_ref)
        return super().get_defs_ref((CoreRef(titled), mode))


def field_texts(kind: type) -> Iterator[tuple[str, str]]:
    """Yield the docstrings below the fields of a model or another class, those of its bases first.

    Pydantic could read them, too, but it would do so for each model at each start.
    """
    for base in reversed(kind.__mro__):
        if base not in (object, BaseModel):
            yield from _below_fields(base).items()


@cache
def _below_fields(kind: type) -> Mapping[str, str]:
    try:
        [definition] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    except (OSError, TypeError):  # a function made it, or it is no class of Python
        return {}
    found = {}
    for statement, text in pairwise(getattr(definition, "body", ())):
        match statement, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str() as docstring)),
            ):
                found[name] = " ".join(docstring.split())
    return found


def _schemas(routes: Sequence[Route]) -> tuple[Mapping[type[BaseModel], Schema], Schema]:
    """Return the reference to each model's schema, and all schemas by name."""
    models: set[tuple[type[BaseModel], JsonSchemaMode]] = {(Problem, "serialization")}
    for route in routes:
        models |= {(body, "validation") for _, body in route.bodies}
        models |= {(view, "serialization") for view in route.views}
    by_name = sorted(models, key=lambda model: model[0].__name__)
    found, definitions = models_json_schema(
        by_name, ref_template="#/components/schemas/{model}", schema_generator=_Described
    )
    schemas = definitions["$defs"]
    for schema in schemas.values():
        for name, described in schema.get("properties", {}).items():
            schema["properties"][name] = _as_one_enum(described, schemas)
    references = {model: found[model, mode] for model, mode in models}
    return references, _used(schemas, references.values())


def _used(schemas: Schema, references: Iterable[Schema]) -> Schema:
    """Return the schemas to which these references lead. Others became part of an enumeration."""
    left, used = [*references], set[str]()
    while left:
        for reference in REFERENCE.findall(str(left.pop())):
            if reference not in used:
                used.add(reference)
                left.append(schemas[reference])
    return {name: schema for name, schema in schemas.items() if name in used}


def _as_one_enum(described: Schema, schemas: Schema) -> Schema:
    """Merge a choice between an enumeration and further words into one enumeration."""
    choices = described.get("anyOf", ())
    targets = [schemas.get(choice.get("$ref", "").rpartition("/")[2], choice) for choice in choices]
    words = [target.get("enum") or [target.get("const")] for target in targets if target != NULL]
    if len(words) < 2 or not all(isinstance(word, str) for word in chain.from_iterable(words)):
        return described
    rest = {name: value for name, value in described.items() if name != "anyOf"}
    found = rest | {"type": "string", "enum": [*chain.from_iterable(words)]}
    return _or_null(found) if NULL in choices else found


NULL = {"type": "null"}
REFERENCE = re.compile(r"#/components/schemas/([^'\"]+)")


def _or_null(described: Schema) -> Schema:
    words = {"enum": [*described["enum"], None]} if "enum" in described else {}
    return described | words | {"type": [described["type"], "null"]}


def _operation(route: Route, references: Mapping[type[BaseModel], Schema]) -> Schema:
    responses: Schema = {}
    for status in route.refusals():
        problem = _json(REFUSALS[status], references[Problem], "application/problem+json")
        headers = {"headers": {"Retry-After": WAIT}} if status in WITH_WAIT else {}
        responses[str(status)] = problem | headers
    if not route.open:
        missing = "The key is missing or wrong, and nothing was changed"
        responses["401"] = {"description": missing}
        responses["403"] = _json(NO_ROLE, references[Problem], "application/problem+json")
    for view in route.views:
        responses.update(_answers(view, references[view]))
    described: Schema = {
        "operationId": to_camel(route.name),
        "summary": route.summary,
        "parameters": [*_parameters(route)],
        "responses": responses,
    }
    if route.open:
        described["security"] = []
    for _, body in route.bodies:
        described["requestBody"] = {"required": True, **_json("", references[body])}
    return described


def _parameters(route: Route) -> Iterator[Schema]:
    for name, _ in route.takes(str):
        pattern = ORDER_ID.pattern if name == "order_id" else route.patterns.get(name)
        limit = {"minLength": 1} if pattern is None else {"pattern": f"^{pattern}$"}
        schema = {"type": "string", **limit}
        yield {"name": to_camel(name), "in": "path", "required": True, "schema": schema}
    for _, parameters in route.takes(Parameters):
        described = parameters.model_json_schema(schema_generator=_Described)
        for name, schema in described["properties"].items():
            required = name in described.get("required", ())
            yield {"name": name, "in": parameters.place, "required": required, "schema": schema}
    if any(view.etag for view in route.views):
        yield {"name": "If-None-Match", "in": "header", "schema": {"type": "string"}}


def _answers(view: type[View], schema: Schema) -> Iterator[tuple[str, Schema]]:
    described = view.model_json_schema(by_alias=False, schema_generator=_Described)
    fields = described["properties"]
    headers = {header: {"schema": fields[name]} for header, name in view.in_headers().items()}
    if view.etag:
        headers["ETag"] = {
            "schema": {"type": "string", "description": "Names this answer in If-None-Match"}
        }
        yield "304", {"description": "Nothing has changed", "headers": headers}
    yield (
        str(view.http_status),
        _json(HTTPStatus(view.http_status).phrase, schema) | {"headers": headers},
    )


def _json(text: str, schema: Schema, kind: str = "application/json") -> Schema:
    return ({"description": text} if text else {}) | {"content": {kind: {"schema": schema}}}
