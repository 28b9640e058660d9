"""Makes example answers from models, for the simulated services."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json

from engine.declarations.business import REFERENCE
from engine.domain.errors import InvalidError
from engine.domain.messages import faults_of
from engine.workflow.model import Model

Schema = Mapping[str, Any]
FORMATS = {
    "date": "2030-01-31",
    "date-time": "2030-01-31T08:00:00Z",
    "time": "08:00:00Z",
    "duration": "P1D",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "uri": "https://example.com/",
    "email": "ada@example.com",
}


def examples_of(
    answers: Iterable[tuple[str, type[Model]]],
) -> Mapping[str, Mapping[str, Any]]:
    """Return an example answer for each operation.

    An operation whose example cannot be made is left out. It is reported as a fault of its step.
    """
    made: dict[str, Mapping[str, Any]] = {}
    for operation, model in answers:
        with suppress(InvalidError):
            made[operation] = {**made.get(operation, {}), **example_of(model)}
    return made


def example_of(model: type[Model]) -> Mapping[str, Any]:
    """Make an example that the model allows, as JSON. Fields with a default are left out.

    A field's own example comes first (`Field(examples=["B-AB 123"])`). A text without one is
    `REFERENCE`, which differs in each call.

    Raises `InvalidError` with the fields for which no example was found.
    """
    try:
        schema = model.model_json_schema(by_alias=True)
        found: Mapping[str, Any] = _value(schema, schema.get("$defs", {}))
        model.model_validate_json(to_json(found), by_alias=True)
    except ValidationError as error:
        raise InvalidError(faults_of(error)) from None
    except Exception as error:  # noqa: BLE001 - a validator of the author's may raise any
        raise InvalidError([f"{type(error).__name__}: {error}"]) from None
    return found


def _value(schema: Schema, named: Mapping[str, Schema]) -> Any:
    """Make a value for a JSON schema that pydantic wrote."""
    if "$ref" in schema:
        return _value(named[schema["$ref"].rpartition("/")[2]], named)
    for given in ("examples", "enum"):
        if given in schema:
            return schema[given][0]
    if "const" in schema:
        return schema["const"]
    for one_of in ("anyOf", "oneOf"):
        if one_of in schema:
            return _value(schema[one_of][0], named)
    make = KINDS.get(schema.get("type", ""))
    return make(schema, named) if make else None


def _object(schema: Schema, named: Mapping[str, Schema]) -> Mapping[str, Any]:
    fields = schema.get("properties", {})
    return {name: _value(fields[name], named) for name in schema.get("required", ())}


def _list(schema: Schema, named: Mapping[str, Schema]) -> list[Any]:
    parts = schema.get("prefixItems") or [schema.get("items", {})] * schema.get("minItems", 0)
    return [_value(part, named) for part in parts]


def _text(schema: Schema, _: Mapping[str, Schema]) -> str:
    if "format" in schema:
        return FORMATS.get(schema["format"], "")
    text = "a" * schema.get("minLength", 1)
    is_free = not schema.keys() & {"pattern", "minLength", "maxLength"}
    return REFERENCE if is_free else text


def _number(schema: Schema, _: Mapping[str, Schema]) -> float:
    least: float = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
    most: float = schema.get("maximum", schema.get("exclusiveMaximum", least + 2) - 1)
    return min(max(1, least), most)


KINDS: Mapping[str, Callable[[Schema, Mapping[str, Schema]], Any]] = {
    "object": _object,
    "array": _list,
    "string": _text,
    "integer": _number,
    "number": _number,
    "boolean": lambda *_: True,
}
