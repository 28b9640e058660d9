"""The base models of requests and answers, from which the OpenAPI description is made."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Parameters(BaseModel):
    """The parameters of a call beside its path and body.

    Calls that only read ignore unknown ones.
    """

    model_config = ConfigDict(frozen=True)
    place: ClassVar[Literal["query", "header"]] = "query"
    """Where the parameters are sent. The name of a header is the alias of its field."""


class RequestBody(BaseModel):
    """The body of a call. JSON names are in camelCase, and undeclared fields are refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        populate_by_name=True,
        allow_inf_nan=False,
    )


class View(BaseModel):
    """Base of all answers. JSON names are in camelCase, and undeclared fields are refused.

    A field that is excluded from the body is sent as the header of its name, unless it is None.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        from_attributes=True,
    )
    http_status: ClassVar[int] = 200
    etag: ClassVar[bool] = False
    """Whether the answer has an ETag, and is left out for a caller that already has it."""

    @classmethod
    def in_headers(cls) -> Mapping[str, str]:
        """Return the fields that are sent as headers: the field's name by header."""
        return {
            name.replace("_", "-").title(): name
            for name, field in cls.model_fields.items()
            if field.exclude
        }

    def headers(self) -> Mapping[str, str]:
        found = {header: getattr(self, name) for header, name in self.in_headers().items()}
        return {header: str(value) for header, value in found.items() if value is not None}


class Problem(BaseModel):
    """Problem details (RFC 9457)."""

    model_config = ConfigDict(extra="forbid")

    type: str = "about:blank"
    title: str
    status: int
    detail: str | None = None
    faults: Sequence[str] | None = None
    """Everything that is wrong with the request."""
