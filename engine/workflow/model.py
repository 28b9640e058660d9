"""The base of all models that are sent, and the marks for personal data and keys."""

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
    """Base of payloads, requests and answers.

    JSON names are in camelCase. Fields that the model does not declare are refused.

        class Rental(Model):
            car: Text
            email: Owner[Text]
    """

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
    """Marks a field as personal data. In a recorded value, the data may already be erased."""

    owns: bool = False
    """Whether the value identifies the customer of the order."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        schema = handler(source)
        is_text = schema["type"] == "str"

        @cache
        def validator() -> SchemaValidator:
            return SchemaValidator(schema, core_schema.CoreConfig(strict=True))

        def read(value: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
            # Whatever the type of the field, `ERASED` may stand in its place.
            if info.context is RECORDED and value in (ERASED, [ERASED]):
                return value
            if is_text or info.mode != "json":
                return check(value)
            # `check` would take the value for one of Python's, where no text is a date.
            return validator().validate_json(to_json(value))

        return core_schema.with_info_wrap_validator_function(read, schema)


@dataclass(frozen=True, slots=True)
class KeyMark:
    """Marks a field as a business key, by which operators find an order."""


RECORDED = object()
"""The validation context for recorded values. Values that somebody sends are read without it."""

T = TypeVar("T")
Personal = Annotated[T, PersonalData()]
"""Personal data. It is in no log and no history, and is erased on demand. Operators see it after
giving a reason."""
Owner = Annotated[T, PersonalData(owns=True)]
"""Personal data by which operators find a person's orders, such as an email address."""
Key = Annotated[T, KeyMark()]
"""A business key: a text or number by which operators find the order, such as a claim number.

A key must not be personal data.
"""

M = TypeVar("M", bound=Model)


def recorded(model: type[M], value: Any) -> M:
    """Read a recorded value as a model.

    Personal fields may hold the text `ERASED`. Unknown fields are ignored, since the model may have
    had them when the order was placed.

    Raises `InvalidError` with all faults.
    """
    try:
        return read_as(model, value, extra="ignore", context=RECORDED)
    except ValidationError as error:
        raise InvalidError(faults_of(error)) from None
