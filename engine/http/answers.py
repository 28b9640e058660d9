"""What somebody outside says to a step, and what becomes of it: for operators and over links."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from engine.domain.messages import Text
from engine.http.models import RequestBody, View


class AnswerBody(RequestBody):
    """The body of an answer to a step: what was answered, or why there is no answer."""

    answer: dict[str, Any] | None = None
    """As the workflow declares it."""
    refusal: Annotated[Text, Field(max_length=200)] | None = None
    """Stands in the history, so it names nobody; the step has failed then."""

    @model_validator(mode="after")
    def _is_one(self) -> "AnswerBody":
        if (self.answer is None) == (self.refusal is None):
            raise ValueError("expected either an answer or a refusal")
        return self


class AnswerTaken(View):
    """What became of an answer."""

    order_id: str
    step: str
    status: Literal["recorded", "known"]
    """Whether it was recorded now, or the same had been recorded before."""
