"""Pydantic models of JSON with exact numbers."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, RootModel

from engine.domain import exact_json
from engine.domain.exact_json import ExactNumber

M = TypeVar("M", bound=BaseModel)


def read_as(model: type[M], value: Any, **options: Any) -> M:
    """Return the model of a JSON value, with exact numbers.

    A `Decimal` gets the exact number, and so does a field that takes any JSON. A field of type
    float gets the float. Raises `ValidationError` if the value is invalid.
    """
    found = _read_once(model, value, options)
    # Pydantic makes a float of each number, so a `Decimal` is given its number as a text.
    if exact_json.has_exact(value):
        found = _read_once(model, _with_texts(value, found), options)
        _exact(found, value, takes_any=False)
    return found


def _read_once(model: type[M], value: Any, options: Mapping[str, Any]) -> M:
    return model.model_validate_json(exact_json.write(value), by_alias=True, **options)


def _with_texts(value: Any, content: Any) -> Any:
    """Return the value with each exact number as a text if the model made a `Decimal` of it."""
    if isinstance(content, RootModel):
        content = content.root
    match value:
        case ExactNumber() if isinstance(content, Decimal):
            return str(value)
        case Mapping():
            members = _members_of(content)
            return {name: _with_texts(part, members.get(name)) for name, part in value.items()}
        case list():
            return list(map(_with_texts, value, _parts_of(content, len(value))))
    return value


def _members_of(content: Any) -> Mapping[str, Any]:
    """Return the values that a model made from the members of an object, where known."""
    if isinstance(content, BaseModel):
        declared = type(content).model_fields.items()
        known = {_on_the_wire(name, field): content.__dict__[name] for name, field in declared}
        return {**known, **(content.model_extra or {})}
    if isinstance(content, Mapping):
        return {str(name): part for name, part in content.items()}
    if is_dataclass(content):
        return {field.name: getattr(content, field.name) for field in fields(content)}
    return {}


def _parts_of(content: Any, length: int) -> Sequence[Any]:
    """Return the values that a model made from the parts of a list, where known."""
    if isinstance(content, list | tuple) and len(content) == length:
        return content
    if isinstance(content, Set):  # it has lost its order: a decimal stands for all
        return [next((part for part in content if isinstance(part, Decimal)), None)] * length
    return [None] * length


def _on_the_wire(name: str, field: Any) -> str:
    alias = field.validation_alias
    return alias if isinstance(alias, str) else name


def _exact(content: Any, value: Any, *, takes_any: bool) -> Any:
    """Return the content with exact numbers wherever its type takes any JSON."""
    if isinstance(content, BaseModel):
        received = {"root": value} if isinstance(content, RootModel) else value
        _put_exact(content, received if isinstance(received, Mapping) else {})
        return content
    match content, value:
        case dict(), Mapping():
            return {
                name: _exact(part, value.get(str(name)), takes_any=takes_any)
                for name, part in content.items()
            }
        case ((list() | tuple()), list()) if len(content) == len(value):
            parts = zip(content, value, strict=True)
            made = [_exact(part, came, takes_any=takes_any) for part, came in parts]
            return made if isinstance(content, list) else _as_tuple(content, made)
    return exact_json.with_exact(content, value) if takes_any else content


def _as_tuple(content: tuple[Any, ...], parts: list[Any]) -> tuple[Any, ...]:
    """Return the parts as a tuple. A named tuple stays unchanged."""
    return tuple(parts) if type(content) is tuple else content


def _put_exact(content: BaseModel, received: Mapping[str, Any]) -> None:
    values = content.__dict__
    for name, field in type(content).model_fields.items():
        value = received.get(_on_the_wire(name, field))
        values[name] = _exact(values[name], value, takes_any=_takes_any(field.annotation))
    extra = content.model_extra or {}
    for name, part in extra.items():
        extra[name] = _exact(part, received.get(name), takes_any=True)


def _takes_any(annotation: Any) -> bool:
    return annotation in (Any, object, dict, list) or any(map(_takes_any, get_args(annotation)))


def as_json(content: BaseModel, **options: Any) -> dict[str, Any]:
    """Return the content as a JSON object with exact numbers."""
    written = content.model_dump(mode="json", by_alias=True, **options)
    exact = content.model_dump(by_alias=True, **options)
    found: dict[str, Any] = exact_json.with_exact(written, exact)
    return found
