"""Comparison of contents. The model decides which differences mean nothing.

A field at its default equals a missing field, and a time is equal in every time zone.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from pydantic import AwareDatetime, BaseModel, FutureDatetime, PastDatetime, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from engine.domain.digests import canonical_text

MOMENTS = (datetime, AwareDatetime, FutureDatetime, PastDatetime)
AS_MOMENT = TypeAdapter(datetime)

Models = Sequence[type[BaseModel]]
"""The models to which a value may belong."""


def content_text(model: type[BaseModel], value: Any) -> str:
    """Return a text that is the same for all JSON values with the same content for this model.

    The value may be invalid, because another version recorded it or personal data was erased.
    """
    return canonical_text(_reduced([model], value))


def _reduced(models: Models, value: Any) -> Any:
    """Return the value without fields that are at their default, and with times in UTC."""
    if isinstance(value, list | tuple):
        return [_reduced(models, part) for part in value]
    if not isinstance(value, Mapping):
        return value
    fields = [_fields(model) for model in models]
    reduced = {name: _part(name, part, fields) for name, part in value.items()}
    return {name: part for name, part in reduced.items() if not _is_default(name, part, fields)}


Fields = Sequence[Mapping[str, FieldInfo]]
"""The fields of each model to which a value may belong, by their names on the wire."""


def _part(name: str, value: Any, fields: Fields) -> Any:
    found = [known[name] for known in fields if name in known]
    kinds = [kind for field in found for kind in _kinds(field.annotation)]
    if kinds and all(kind in MOMENTS for kind in kinds):
        return _in_utc(value)
    return _reduced([kind for kind in kinds if _is_model(kind)], value)


def _is_default(name: str, value: Any, fields: Fields) -> bool:
    """Return whether every possible model lets the sender omit the field at this value."""
    text = canonical_text(value)
    return bool(fields) and all(
        name in known and _default_text(known[name]) == text for known in fields
    )


def _default_text(field: FieldInfo) -> str | None:
    """Return the text of a field's default, or None if there is no default or it is computed."""
    if field.is_required() or field.default_factory is not None:
        return None
    default = to_jsonable_python(field.default, by_alias=True, fallback=str)
    return canonical_text(_part("", default, [{"": field}]))


@cache
def _fields(model: type[BaseModel]) -> Mapping[str, FieldInfo]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _kinds(annotation: Any) -> Iterator[Any]:
    """Yield the types in an annotation such as `Line | None` or `tuple[Line, ...]`.

    A mapping counts as one type, because its keys are data and not names of fields.
    """
    origin = get_origin(annotation)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        yield origin
    elif origin is Annotated:
        yield from _kinds(get_args(annotation)[0])
    elif parts := get_args(annotation):
        for part in parts:
            yield from _kinds(part)
    elif annotation not in (None, NoneType, Ellipsis):
        yield annotation


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _in_utc(value: Any) -> Any:
    """Return a time, or each time of a list, in UTC. Return any other value unchanged."""
    if isinstance(value, list | tuple):
        return [_in_utc(part) for part in value]
    try:
        moment = AS_MOMENT.validate_python(value)
        return moment.astimezone(UTC).isoformat() if moment.tzinfo else value
    except (ValueError, OverflowError):  # no time, or one at an end of the calendar
        return value
