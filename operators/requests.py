"""What operators send: who it is, and why. Both go into the history of what they change."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from core.messages import StepName, Text


class OperatorRequest(BaseModel):
    """The body of an operator's action."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, alias_generator=to_camel, populate_by_name=True)
    operator: Annotated[Text, Field(max_length=80)]
    note: Annotated[Text, Field(max_length=1000)]


class SkipRequest(OperatorRequest):
    """The body of a skip."""

    step: StepName | None = None
    """Which of the failed steps; may be left out if there is only one."""
