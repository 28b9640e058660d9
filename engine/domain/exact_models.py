"""Pydantic models of JSON whose numbers are exact."""

from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, RootModel

from engine.domain import exact_json

M = TypeVar("M", bound=BaseModel)


def read_as(model: type[M], value: Any, **options: Any) -> M:
    """Return the model of a JSON value, with exact numbers; raises `ValidationError`.

    Pydantic makes a float of a number, so a `Decimal` gets one that a float would round as a text.
    """
    found = _read_once(model, value, options)
    if places := list(exact_json.rounded_places(value)):
        texts = [place for place in places if not isinstance(_part_of(found, place), float)]
        found = _read_once(model, exact_json.with_texts(value, texts), options)
        _put_exact(found, value)
    return found


def _read_once(model: type[M], value: Any, options: Mapping[str, Any]) -> M:
    return model.model_validate_json(exact_json.write(value), by_alias=True, **options)


def _part_of(content: Any, place: exact_json.Place) -> Any:
    """Return what a model has at a place of its JSON; None if that place is not to be found."""
    for name in place:
        if isinstance(content, BaseModel):
            fields = type(content).model_fields
            names = {field.alias or own: own for own, field in fields.items()}
            content = getattr(content, names.get(str(name), str(name)), None)
        elif isinstance(content, Mapping):
            content = content.get(name)
        elif isinstance(content, list | tuple) and name in range(len(content)):
            content = content[int(name)]
        else:
            return None
    return content


def _put_exact(content: Any, value: Any) -> None:
    """Put the exact numbers into the fields of a model, and of those in it, that take any JSON."""
    if isinstance(content, list | tuple) and isinstance(value, list):
        for part, received in zip(content, value, strict=False):
            _put_exact(part, received)
    received = {"root": value} if isinstance(content, RootModel) else value
    if not isinstance(content, BaseModel) or not isinstance(received, Mapping):
        return
    fields = content.__dict__
    for name, field in type(content).model_fields.items():
        if _takes_any(field.annotation):
            fields[name] = exact_json.with_exact(fields[name], received.get(field.alias or name))
        else:
            _put_exact(fields[name], received.get(field.alias or name))
    if content.model_extra:
        content.model_extra.update({name: value[name] for name in content.model_extra})


def _takes_any(annotation: Any) -> bool:
    return annotation is Any or any(map(_takes_any, get_args(annotation)))


def as_json(content: BaseModel, **options: Any) -> dict[str, Any]:
    """Return the content as a JSON object, with exact numbers."""
    written = content.model_dump(mode="json", by_alias=True, **options)
    exact = content.model_dump(by_alias=True, **options)
    found: dict[str, Any] = exact_json.with_exact(written, exact)
    return found
