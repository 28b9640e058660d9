"""Models of what is sent, and the marks of their fields: personal data, and keys."""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
)
from pydantic.alias_generators import to_camel
from pydantic_core import SchemaValidator, core_schema, to_json

from engine.domain.errors import InvalidError
from engine.domain.exact_models import read_as
from engine.domain.messages import faults_of
from engine.domain.submitted_order import ERASED


class Model(BaseModel):
    """Base of payloads, requests and answers: camelCase on the wire, nothing undeclared."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
    )


@dataclass(frozen=True, slots=True)
class PersonalData:
    """Marks a field as personal data; in a recorded value it may be erased by now."""

    owns: bool = False
    """Whether the value tells whose the order is."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Let `ERASED` stand for any recorded value, whatever the type asks for."""
        schema = handler(source)
        is_text = schema["type"] == "str"

        @cache
        def validator() -> SchemaValidator:
            return SchemaValidator(schema, core_schema.CoreConfig(strict=True))

        def read(value: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
            if info.context is RECORDED and value in (ERASED, [ERASED]):
                return value
            if is_text or info.mode != "json":
                return check(value)
            # `check` would take the value for one of Python's, where no text is a date.
            return validator().validate_json(to_json(value))

        return core_schema.with_info_wrap_validator_function(read, schema)


@dataclass(frozen=True, slots=True)
class KeyMark:
    """Marks a field by whose value the business names an order."""


RECORDED = object()
"""The context in which a recorded value is read, and not one that somebody sends."""

T = TypeVar("T")
Personal = Annotated[T, PersonalData()]
"""Personal data: shown to an operator who says why, in no log or history, and erased on demand."""
Owner = Annotated[T, PersonalData(owns=True)]
"""Personal data by which an operator finds a person's orders, such as an email address."""
Key = Annotated[T, KeyMark()]
"""A text or number by which operators find the order, such as a claim number: never personal."""

M = TypeVar("M", bound=Model)


def recorded(model: type[M], value: Any) -> M:
    """Return a recorded value; raises `InvalidError` with every fault.

    Fields that the model does not know are ignored: it may have had them when the order came.
    Personal fields may be the text `ERASED`.
    """
    try:
        return read_as(model, value, extra="ignore", context=RECORDED)
    except ValidationError as error:
        raise InvalidError(faults_of(error)) from None
