"""The payload of an order by its model: what is checked, erased, personal, and a key."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from engine.declarations.business import Payload
from engine.domain import exact_json
from engine.domain.contents import content_text
from engine.domain.errors import InputFault, InvalidError
from engine.domain.messages import decode
from engine.domain.personal_data import names_person, texts_in
from engine.domain.submitted_order import ERASED
from engine.workflow.model import KeyMark, M, PersonalData, T

Check = Callable[[M], None]
"""Checks what types cannot say; raises `InvalidError`, or `UnknownNameError` (FLT-12)."""


def payload_of(model: type[M], check: Check[M] | None = None) -> Payload:
    """Return the engine's functions on a payload of this model."""

    def checked(payload: Mapping[str, Any]) -> None:
        try:
            text = exact_json.write(payload)
        except ValueError as fault:
            raise InvalidError([InputFault("body", "no-json", {"error": str(fault)})]) from None
        content = decode(model, text)
        if check is not None:
            check(content)

    return Payload(
        check=checked,
        erased=partial(_erased, [model]),
        personal=lambda payload: texts_in([value for _, value in _marked([model], payload)]),
        belongs_to=lambda payload, email: any(
            mark.owns and names_person(value, email) for mark, value in _marked([model], payload)
        ),
        keys=lambda payload: _keys([model], payload),
        text=partial(content_text, model),
    )


Models = Sequence[type[BaseModel]]
"""The models that a value may be of; their fields count together."""


def _marked(models: Models, value: Any) -> Iterator[tuple[PersonalData, Any]]:
    """Yield each marked value of a payload, whatever else is wrong with the payload."""
    for place in _places(models, value):
        if place.mark:
            yield place.mark, value[place.name]
        elif place.models:
            for part in _parts(value[place.name]):
                yield from _marked(place.models, part)


def _keys(models: Models, value: Any) -> Iterator[str]:
    """Yield the values by which the business names the order, whatever else is wrong with it."""
    for place in _places(models, value):
        if place.is_key:
            yield from texts_in(value[place.name])
        elif place.models and not place.mark:
            for part in _parts(value[place.name]):
                yield from _keys(place.models, part)


def _erased(models: Models, value: Any) -> Any:
    """Return the value without what is marked, and without fields that no model knows.

    These may be personal, for all that is known: they were in the payload of another version.
    """
    if isinstance(value, list):
        return [_erased(models, part) for part in value]
    if not isinstance(value, Mapping):
        return _blank(value)
    erased = {name: _blank(member) for name, member in value.items()}
    for place in _places(models, value):
        name, inner = place.name, place.models
        if not place.mark:
            erased[name] = _erased(inner, value[name]) if inner else value[name]
    return erased


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """A field as a payload has it."""

    name: str
    """Its name on the wire."""
    mark: PersonalData | None
    is_key: bool
    models: Models
    """The models that its value may be of."""


def _places(models: Models, value: Any) -> Iterator[_Place]:
    """Yield the fields of the models that are in the value."""
    if not isinstance(value, Mapping):
        return
    for model in models:
        for place in _places_of(model):
            if place.name in value:
                yield place


@cache
def _places_of(model: type[BaseModel]) -> Sequence[_Place]:
    """Return the fields of a model; kept, since each payload asks for them several times."""
    return [
        _Place(
            name=field.alias or name,
            mark=mark_of(field),
            is_key=is_key(field),
            models=models_in(field.annotation),
        )
        for name, field in model.model_fields.items()
    ]


def mark_of(field: FieldInfo) -> PersonalData | None:
    """Return the mark of a field, also of a part of a union: `Personal[str] | None`."""
    return next(_marks(PersonalData, (*field.metadata, field.annotation)), None)


def is_key(field: FieldInfo) -> bool:
    """Whether the business names orders by this field."""
    return any(_marks(KeyMark, (*field.metadata, field.annotation)))


def _marks(kind: type[T], parts: tuple[Any, ...]) -> Iterator[T]:
    for part in parts:
        if isinstance(part, kind):
            yield part
        else:
            yield from _marks(kind, (*get_args(part), *getattr(part, "__metadata__", ())))


def models_in(annotation: Any) -> Models:
    """Return the models in an annotation such as `Line | None` or `tuple[Line, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in models_in(part)]


def _parts(value: Any) -> Iterator[Any]:
    """Yield the parts of a list, also of lists within it; anything else is its own only part."""
    if not isinstance(value, list):
        yield value
        return
    for part in value:
        yield from _parts(part)


def _blank(value: Any) -> Any:
    """Return a value of the same shape with nothing in it; of a list, one part stays."""
    if isinstance(value, Mapping):
        return {name: _blank(member) for name, member in value.items()}
    if isinstance(value, list):
        return [ERASED] if value else []
    return value if value is None else ERASED
