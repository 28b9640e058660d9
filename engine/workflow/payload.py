"""Checks and erases the payload of an order by its model, and finds its personal data and keys."""

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
"""Checks what types cannot express. Raises `InvalidError`, or `UnknownNameError` (FLT-12)."""


def payload_of(model: type[M], check: Check[M] | None = None) -> Payload:
    """Make the payload functions of the engine for a model.

    `check` gets each new payload after its model has accepted it.
    """

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
"""The models that a value may have. A field counts if any of them declares it."""


def _marked(models: Models, value: Any) -> Iterator[tuple[PersonalData, Any]]:
    """Yield each marked value of a payload with its mark, even if the payload is invalid."""
    for place in _places(models, value):
        if place.mark:
            yield place.mark, value[place.name]
        elif place.models:
            for part in _parts(value[place.name]):
                yield from _marked(place.models, part)


def _keys(models: Models, value: Any) -> Iterator[str]:
    """Yield the values of business keys, even if the payload is otherwise invalid."""
    for place in _places(models, value):
        if place.is_key:
            yield from texts_in(value[place.name])
        elif place.models and not place.mark:
            for part in _parts(value[place.name]):
                yield from _keys(place.models, part)


def _erased(models: Models, value: Any) -> Any:
    """Return the value without personal data and without fields that no model knows."""
    if isinstance(value, list):
        return [_erased(models, part) for part in value]
    if not isinstance(value, Mapping):
        return _blank(value)
    # A field that no model knows may be personal: it was in the payload of another version.
    erased = {name: _blank(member) for name, member in value.items()}
    for place in _places(models, value):
        name, inner = place.name, place.models
        if not place.mark:
            erased[name] = _erased(inner, value[name]) if inner else value[name]
    return erased


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """A field of a payload."""

    name: str
    """The field's name in JSON."""
    mark: PersonalData | None
    is_key: bool
    models: Models
    """The models that the field's value may have."""


def _places(models: Models, value: Any) -> Iterator[_Place]:
    """Yield the declared fields that are present in the value."""
    if not isinstance(value, Mapping):
        return
    for model in models:
        for place in _places_of(model):
            if place.name in value:
                yield place


@cache
def _places_of(model: type[BaseModel]) -> Sequence[_Place]:
    # Cached, because each payload needs the list several times.
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
    """Return the mark of a field, even if it is on a part of a union: `Personal[str] | None`."""
    return next(_marks(PersonalData, (*field.metadata, field.annotation)), None)


def is_key(field: FieldInfo) -> bool:
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
    """Yield the items of a list, and of the lists inside it. Any other value is yielded itself."""
    if not isinstance(value, list):
        yield value
        return
    for part in value:
        yield from _parts(part)


def _blank(value: Any) -> Any:
    """Return a value of the same shape without its contents.

    A list that is not empty keeps one item.
    """
    if isinstance(value, Mapping):
        return {name: _blank(member) for name, member in value.items()}
    if isinstance(value, list):
        return [ERASED] if value else []
    return value if value is None else ERASED
