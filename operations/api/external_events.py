"""The operators' actions on external events: show the question, answer for somebody, remind."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from engine.decisions.drafts import NextVersion
from engine.decisions.results import definition_of
from engine.decisions.transitions import OPERATOR, Transition, transition_of
from engine.declarations.business import Payload
from engine.declarations.workflow import StepDefinition, Workflows
from engine.domain.causes import Cause, Code
from engine.domain.errors import RefusedError, UnknownOrderError
from engine.domain.messages import Moment, Text
from engine.domain.orders import OrderAggregate
from engine.domain.states import AwaitingExternalEvent
from engine.features.external_events import actions, decide
from engine.features.external_events.callback_urls import CallbackUrls, callback_url
from engine.features.external_events.content import question, read
from engine.features.external_events.steps import without_personal_data
from engine.http.external_events import EventBody, EventReceipt
from engine.http.models import View
from engine.http.openapi import Route
from engine.storage.unit_of_work import UnitOfWork
from engine.words.causes import words_of
from operations.api.requests import OperatorRequest
from operations.api.views import Acted

log = logging.getLogger(__name__)

Decide = Callable[[OrderAggregate, datetime], NextVersion]
"""Decides an action on an order at this time."""


class EventRequest(EventBody):
    """The body by which an operator sends an external event for somebody else."""

    model_config = ConfigDict(title="AnswerRequest")
    operator: Annotated[Text, Field(max_length=80)]


class ExtendRequest(OperatorRequest):
    """The body that moves the due time of an external event."""

    until: Moment
    """The new due time: at most 30 days from now."""


class NewCallbackUrl(View):
    """The new callback URL of a step. A caller with this URL needs no key."""

    model_config = ConfigDict(title="NewLink")
    order_id: str
    step: str
    callback_url: str
    cache_control: Annotated[str, Field(exclude=True)] = "no-store"


class QuestionView(View):
    """The question that a step asks a person or a service."""

    order_id: str
    step: str
    title: str
    why_closed: str | None
    """Why the step accepts no event; null if it does."""
    until: datetime | None
    """The deadline of the event; null if it is not awaited now."""
    requests_sent: int
    """How many requests and reminders were sent since the step last started again, after a cooldown
    or an operator's action."""
    asks: int
    """The largest number of requests that are sent, counted in the same way."""
    question: dict[str, Any] | None
    """The question, with personal data as `hidden`; null if it cannot be generated, or not without
    that data."""
    fields: list[str]
    """The fields that the result may have."""


@dataclass(frozen=True, kw_only=True)
class ExternalEventService:
    """Shows the questions to people and services, records their answers, and reminds them."""

    unit_of_work: UnitOfWork
    workflows: Workflows
    payload: Payload
    callback_urls: CallbackUrls | None = None
    """Makes new callback URLs. None if there are none."""

    async def record(self, order_id: str, step: str, request: EventRequest) -> EventReceipt:
        """Complete or refuse an external step of an order (ANS-1, ANS-3).

        Raises `InvalidError` with all faults, `RefusedError` and `UnknownOrderError`. Raises
        `UnavailableError` if only a newer version of the app knows the order's workflow.
        """

        def record(order: OrderAggregate, now: datetime) -> Transition | None:
            decide.external_step(order, step)
            event = read(order, step, self.workflows, request.answer, request.refusal)
            return decide.recorded(order, event, f"{OPERATOR}{request.operator}", now)

        decision = await self.unit_of_work.run(order_id, record)
        if decision is None:
            return EventReceipt(order_id=order_id, step=step, status="known")
        log.info("operators.answered", extra={"order_id": order_id, "step": step})
        return EventReceipt(order_id=order_id, step=step, status="recorded")

    async def show(self, order_id: str, step: str) -> QuestionView:
        """Show the question of an external step, without personal data (ANS-5).

        Raises `RefusedError` and `UnknownOrderError`. Raises `UnavailableError` if only a newer
        version of the app knows the order's workflow.
        """
        order = await self.unit_of_work.store.load(order_id)
        if order is None:
            raise UnknownOrderError
        found = decide.external_step(order, step)
        definition = definition_of(order, step, self.workflows)
        closed = decide.why_closed(order, found)
        return QuestionView(
            order_id=order_id,
            step=step,
            title=found.rules.title,
            why_closed=words_of(closed) if closed else None,
            until=found.complete_by,
            requests_sent=found.counts.failures + isinstance(found.state, AwaitingExternalEvent),
            asks=found.rules.threshold,
            question=_question(self._hidden(order), definition),
            fields=list(definition.result_fields),
        )

    def _hidden(self, order: OrderAggregate) -> OrderAggregate:
        """Return the order with its personal data hidden, as its workflow's functions read it."""
        payload = self.payload.hidden(order.submitted.payload)
        steps = tuple(map(without_personal_data, order.steps))
        return replace(order, submitted=replace(order.submitted, payload=payload), steps=steps)

    async def extend_deadline(self, order_id: str, step: str, request: ExtendRequest) -> Acted:
        """Move the time by which an external event is due (ANS-7).

        Raises `RefusedError`, `UnknownOrderError`, and `InvalidError` for a time that is too far
        away.
        """
        until, note = request.until, request.note
        await self._act(
            order_id,
            request,
            lambda order, now: actions.extend_deadline(order, step, until, note, now),
        )
        log.info("operators.wait_extended", extra={"order_id": order_id, "step": step})
        return Acted(order_id=order_id, status="extended")

    async def remind(self, order_id: str, step: str, request: OperatorRequest) -> Acted:
        """Send the request for an external event again; its deadline stays (ANS-7).

        Raises `RefusedError` and `UnknownOrderError`.
        """
        await self._act(
            order_id, request, lambda order, now: actions.remind(order, step, request.note, now)
        )
        log.info("operators.reminded", extra={"order_id": order_id, "step": step})
        return Acted(order_id=order_id, status="reminded")

    async def new_callback_url(
        self, order_id: str, step: str, request: OperatorRequest
    ) -> NewCallbackUrl:
        """Make a new callback URL for a step; the former one becomes invalid (ANS-6).

        Raises `RefusedError` and `UnknownOrderError`.
        """
        if self.callback_urls is None:
            raise RefusedError(Cause(Code.NO_CALLBACK_URLS))
        token, note = self.callback_urls.new_token(), request.note
        await self._act(
            order_id,
            request,
            lambda order, now: actions.new_callback_url(order, step, token, note, now),
        )
        log.info("operators.link_renewed", extra={"order_id": order_id, "step": step})
        url = callback_url(self.callback_urls.address, order_id, step, token)
        return NewCallbackUrl(order_id=order_id, step=step, callback_url=url)

    async def _act(self, order_id: str, request: OperatorRequest, decide: Decide) -> None:
        """Change the order by `decide`, in the operator's name. Raises `RefusedError`."""

        def act(order: OrderAggregate, now: datetime) -> Transition:
            return transition_of(decide(order, now), f"{OPERATOR}{request.operator}")

        await self.unit_of_work.run(order_id, act)


def _question(order: OrderAggregate, definition: StepDefinition) -> dict[str, Any] | None:
    try:
        return dict(question(order, definition))
    except RefusedError:
        return None


def external_event_routes(events: ExternalEventService) -> Sequence[Route]:
    """Return the operators' routes about the external event of a step."""
    step = "api/operator/orders/{orderId}/answers/{step}"
    return [
        Route("operator_question", "GET", step, events.show),
        Route("operator_answer", "POST", step, events.record),
        Route("operator_link", "POST", f"{step}/link", events.new_callback_url),
        Route("operator_extend", "POST", f"{step}/extend", events.extend_deadline),
        Route("operator_remind", "POST", f"{step}/remind", events.remind),
    ]
