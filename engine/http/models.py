"""The models of requests and answers, from which the description of the API is made."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Parameters(BaseModel):
    """The parameters of a call beside path and body; of a call that reads, others are ignored."""

    model_config = ConfigDict(frozen=True)
    place: ClassVar[Literal["query", "header"]] = "query"
    """Where the parameters are sent; the name of a header is its field's alias."""


class RequestBody(BaseModel):
    """The body of a call: camelCase on the wire, and nothing that is not declared."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        populate_by_name=True,
        allow_inf_nan=False,
    )


class View(BaseModel):
    """Base of all answers: camelCase on the wire, and nothing that is not declared.

    A field that is excluded from the body goes as the header of its name, unless it is None.
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
    """Whether the answer has an ETag, and is not sent again to a caller that has it."""

    @classmethod
    def in_headers(cls) -> Mapping[str, str]:
        """Return the names of the fields that are sent as headers, by header."""
        return {
            name.replace("_", "-").title(): name
            for name, field in cls.model_fields.items()
            if field.exclude
        }

    def headers(self) -> Mapping[str, str]:
        """Return the headers of the answer."""
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
