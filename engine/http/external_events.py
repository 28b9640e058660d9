"""External events over HTTP: the body of an event, and callback URLs (ANS-6).

Each callback URL contains its own token.
"""

import logging
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from engine.decisions.results import definition_of
from engine.decisions.transitions import Transition
from engine.declarations.workflow import Workflows
from engine.domain.errors import InvalidCallbackUrlError, UnknownOrderError
from engine.domain.messages import OrderId, StepName, Text
from engine.domain.orders import OrderAggregate
from engine.domain.steps import Step
from engine.features.external_events import callback_urls, decide
from engine.features.external_events.content import question, read
from engine.http.models import Parameters, RequestBody, View
from engine.http.openapi import Route
from engine.storage.external_events import WrongTries
from engine.storage.unit_of_work import UnitOfWork
from engine.words.causes import words_of

log = logging.getLogger(__name__)


EITHER: JsonDict = {
    "not": {
        "anyOf": [
            {"properties": {"answer": {"type": "null"}, "refusal": {"type": "null"}}},
            {
                "properties": {"answer": {"type": "object"}, "refusal": {"type": "string"}},
                "required": ["answer", "refusal"],
            },
        ]
    }
}
"""The rule of `EventBody` as JSON Schema. Validators apply it, and client generators ignore it."""


class EventBody(RequestBody):
    """The body of an external event: its answer, or a refusal with its reason."""

    model_config = ConfigDict(title="AnswerBody", json_schema_extra=EITHER)
    answer: dict[str, Any] | None = None
    """The result, as the workflow declares it."""
    refusal: Annotated[Text, Field(max_length=200)] | None = None
    """Why the step cannot be completed. The step fails, and the history keeps this text, so it must
    name nobody."""

    @model_validator(mode="after")
    def _is_one(self) -> "EventBody":
        if (self.answer is None) == (self.refusal is None):
            raise PydanticCustomError(
                "either-answer-or-refusal", "expected either an answer or a refusal"
            )
        return self


class EventReceipt(View):
    """The outcome of an external event."""

    model_config = ConfigDict(title="AnswerTaken")
    order_id: str
    step: str
    status: Literal["recorded", "known"]
    """Whether the event was recorded now, or the same event had already been recorded."""


class CallbackToken(Parameters):
    """The token in a callback URL."""

    token: str = Field(min_length=1, max_length=100)


class CallbackQuestion(View):
    """The question that a step asks the holder of its callback URL."""

    model_config = ConfigDict(title="Shown")
    order_id: OrderId
    step: StepName
    title: str
    is_open: bool
    """Whether the step still accepts an event."""
    why_closed: str | None
    """Why the step no longer accepts an event; null if it does."""
    until: datetime | None
    """The time by which the event is due; null if the step does not wait for it now."""
    question: dict[str, Any] | None
    """The question that the workflow makes; null if the step accepts no event, or if a service does
    the step."""
    cache_control: Annotated[str, Field(exclude=True)] = "no-store"
    referrer_policy: Annotated[str, Field(exclude=True)] = "no-referrer"


@dataclass(frozen=True, kw_only=True)
class CallbackService:
    """Shows a step's question, and records external events, through callback URLs."""

    unit_of_work: UnitOfWork
    workflows: Workflows
    remembering: Collection[str]
    """The agents whose services repeat a refusal for the same key."""
    wrong_tries: WrongTries

    async def record(
        self, order_id: str, step: str, body: EventBody, token: CallbackToken
    ) -> EventReceipt:
        """Complete or refuse a step of an order over its callback URL (ANS-6).

        Raises `InvalidCallbackUrlError`, `TooManyTriesError`, `InvalidError` with all faults,
        `RefusedError` and `UnknownOrderError`. Raises `UnavailableError` if only a newer version of
        the app knows the order's workflow.
        """

        def record(order: OrderAggregate, now: datetime) -> Transition | None:
            found = self._step(order, step, token)
            event = read(order, step, self.workflows, body.answer, body.refusal)
            event = replace(event, for_good=found.agent in self.remembering)
            try:
                return decide.recorded(order, event, decide.ACTOR, now)
            except decide.EventNotAcceptedError as refused:
                raise decide.EventNotAcceptedError(
                    decide.for_outsiders(found, refused.cause)
                ) from None

        self.wrong_tries.check(order_id)
        decision = await self.unit_of_work.run(order_id, record)
        if decision is None:
            return EventReceipt(order_id=order_id, step=step, status="known")
        log.info("customers.answered", extra={"order_id": order_id, "step": step})
        return EventReceipt(order_id=order_id, step=step, status="recorded")

    async def show(self, order_id: str, step: str, token: CallbackToken) -> CallbackQuestion:
        """Show the question of the step to which a callback URL belongs (ANS-6).

        Nothing changes, because mail scanners open URLs.

        Raises the same errors as `record`.
        """
        self.wrong_tries.check(order_id)
        order = await self.unit_of_work.store.load(order_id)
        if order is None:
            raise UnknownOrderError
        return self._shown(order, self._step(order, step, token))

    def _step(self, order: OrderAggregate, name: str, token: CallbackToken) -> Step:
        """Return the step that the token belongs to.

        Raises `InvalidCallbackUrlError`, and counts the wrong token.
        """
        try:
            return callback_urls.step_of(order, name, token.token)
        except InvalidCallbackUrlError:
            self.wrong_tries.add(order.order_id)
            raise

    def _shown(self, order: OrderAggregate, step: Step) -> CallbackQuestion:
        why_closed = decide.why_closed(order, step)
        closed = decide.for_outsiders(step, why_closed) if why_closed else None
        asks = step.is_external and not closed
        definition = definition_of(order, step.name, self.workflows) if asks else None
        return CallbackQuestion(
            order_id=order.order_id,
            step=step.name,
            title=step.rules.title,
            is_open=not closed,
            why_closed=words_of(closed) if closed else None,
            until=step.complete_by,
            question=dict(question(order, definition)) if definition else None,
        )


def callback_routes(callbacks: CallbackService) -> list[Route]:
    """Return the routes of callback URLs.

    They need no key, because each URL contains its own token.
    """
    place = "api/answers/{orderId}/{step}"
    also = (403, 429)
    return [
        Route("customers_question", "GET", place, callbacks.show, open=True, also_refuses=also),
        Route("customers_answer", "POST", place, callbacks.record, open=True, also_refuses=also),
    ]
