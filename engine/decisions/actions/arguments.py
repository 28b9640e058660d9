"""The arguments of an action, read from its model.

The options of commands and the fields of dialogs follow from them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import BaseModel


class ArgumentKind(StrEnum):
    """The kind of value that people give for an argument."""

    STEP = "step"
    """The name of a step that the action can concern."""
    FLAG = "flag"
    """Yes or no."""
    CHOICE = "choice"
    OBJECT = "object"
    """A JSON object."""
    TIME = "time"
    TEXT = "text"


@dataclass(frozen=True, kw_only=True, slots=True)
class Argument:
    """One argument of an action."""

    name: str
    kind: ArgumentKind
    is_required: bool
    choices: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The name in the keys of its texts, such as `was-done`."""
        return self.name.replace("_", "-")


def concerns_named_step(asks: type[BaseModel]) -> bool:
    """Return whether an action on many orders needs the name of a step.

    It does if the action has arguments about that step, such as whether the step was done.
    """
    return {"step"} < asks.model_fields.keys()


def arguments_of(asks: type[BaseModel]) -> tuple[Argument, ...]:
    """Return the arguments in the order of the model.

    Raises `TypeError` for a type that no option and no field can take.
    """
    schema = asks.model_json_schema()
    required = schema.get("required", ())
    return tuple(
        Argument(
            name=name,
            kind=_kind(name, shape),
            is_required=name in required,
            choices=tuple(shape.get("enum", ())),
        )
        for name, shape in _shapes(schema)
    )


def _shapes(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each name with the schema of its values, without null."""
    for name, found in schema["properties"].items():
        shape = next(one for one in found.get("anyOf", [found]) if one.get("type") != "null")
        reference = shape.get("$ref", "").rpartition("/")[2]
        yield name, schema["$defs"][reference] if reference else shape


def _kind(name: str, shape: Mapping[str, Any]) -> ArgumentKind:
    match shape:
        case _ if name == ArgumentKind.STEP:
            return ArgumentKind.STEP
        case {"enum": _}:
            return ArgumentKind.CHOICE
        case {"type": "boolean"}:
            return ArgumentKind.FLAG
        case {"type": "object"}:
            return ArgumentKind.OBJECT
        case {"type": "string", "format": "date-time"}:
            return ArgumentKind.TIME
        case {"type": "string"}:
            return ArgumentKind.TEXT
    raise TypeError(f"{name}: no option and no field takes {dict(shape)}")
