"""Takes answers from outside to steps that await them, from operators and for other people."""

import logging
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from engine.decisions import callback_actions
from engine.decisions.operator_actions import OperatorCommand
from engine.decisions.transitions import Transition
from engine.declarations.business import Payload
from engine.declarations.workflow import StepDefinition, Workflows
from engine.domain.callback_urls import CallbackUrls
from engine.domain.errors import RefusedError, UnknownOrderError
from engine.domain.messages import Moment, Text
from engine.domain.orders import OrderAggregate
from engine.domain.states import AwaitingExternalEvent
from engine.features.external_events import without_personal_data
from engine.http.answers import AnswerBody, AnswerTaken
from engine.http.models import View
from engine.storage.unit_of_work import UnitOfWork
from operations.api.requests import OperatorRequest
from operations.api.views import Acted

log = logging.getLogger(__name__)


class AnswerRequest(AnswerBody):
    """The body of an answer to a step, from an operator."""

    operator: Annotated[Text, Field(max_length=80)]


class ExtendRequest(OperatorRequest):
    """The body that moves the deadline of an answer."""

    until: Moment
    """The new deadline: at most 30 days from now."""


class NewLink(View):
    """The new link by which a step is answered; whoever has it needs no key."""

    order_id: str
    step: str
    callback_url: str
    cache_control: Annotated[str, Field(exclude=True)] = "no-store"


class QuestionView(View):
    """What a step asks of somebody outside."""

    order_id: str
    step: str
    title: str
    why_closed: str | None
    """Why no answer counts; null if one does."""
    until: datetime | None
    """When the time for an answer is up; null if it is not awaited now."""
    requests_sent: int
    """How often it was asked for since the step last began anew, at first and as reminders.

    It begins anew after a cooldown, or by an operator's action.
    """
    asks: int
    """How often it is asked for in all, counted like that."""
    question: dict[str, Any] | None
    """Its personal data is `hidden`; null if it cannot be made, or not without that data."""
    fields: list[str]
    """The fields that an answer may have."""


@dataclass(frozen=True, kw_only=True)
class AnswerService:
    """Shows what is asked of somebody outside, and records answers."""

    unit_of_work: UnitOfWork
    workflows: Workflows
    payload: Payload
    callback_urls: CallbackUrls | None = None
    """Makes new callback URLs; None where there are none."""

    async def answer(self, order_id: str, step: str, request: AnswerRequest) -> AnswerTaken:
        """Answer a step of an order, for somebody outside (ANS-1, ANS-3).

        Raises `InvalidError` with every fault, `RefusedError`, `UnknownOrderError`, and
        `UnavailableError` if only a newer version of the app knows the order's workflow.
        """
        actor = f"operator/{request.operator}"

        def decide(order: OrderAggregate, now: datetime) -> Transition | None:
            callback_actions.awaiting(order, step)
            answer = callback_actions.read(
                order, step, self.workflows, request.answer, request.refusal
            )
            return callback_actions.answered(order, answer, actor, now)

        decision = await self.unit_of_work.run(order_id, decide)
        if decision is None:
            return AnswerTaken(order_id=order_id, step=step, status="known")
        log.info("operators.answered", extra={"order_id": order_id, "step": step})
        return AnswerTaken(order_id=order_id, step=step, status="recorded")

    async def show(self, order_id: str, step: str) -> QuestionView:
        """Show what a step asks of somebody outside, without personal data (ANS-5).

        Raises `RefusedError`, `UnknownOrderError`, and `UnavailableError` if only a newer version
        of the app knows the order's workflow.
        """
        order = await self.unit_of_work.store.load(order_id)
        if order is None:
            raise UnknownOrderError
        found = callback_actions.awaiting(order, step)
        definition = callback_actions.definition_of(order, step, self.workflows)
        return QuestionView(
            order_id=order_id,
            step=step,
            title=found.rules.title,
            why_closed=callback_actions.why_closed(order, found) or None,
            until=found.complete_by,
            requests_sent=found.counts.failures + isinstance(found.state, AwaitingExternalEvent),
            asks=found.rules.threshold,
            question=_question(self._hidden(order), definition),
            fields=list(definition.result_fields),
        )

    def _hidden(self, order: OrderAggregate) -> OrderAggregate:
        """Return the order as its workflow sees it where personal data is hidden."""
        payload = self.payload.hidden(order.submitted.payload)
        steps = tuple(map(without_personal_data, order.steps))
        return replace(order, submitted=replace(order.submitted, payload=payload), steps=steps)

    async def extend(self, order_id: str, step: str, request: ExtendRequest) -> Acted:
        """Wait longer for an answer, or shorter (ANS-7).

        Raises `RefusedError`, `UnknownOrderError`, and `InvalidError` for a time that is too far.
        """
        command, until = _command(step, request), request.until
        await self.unit_of_work.run(
            order_id, lambda order, now: callback_actions.extended(order, command, until, now)
        )
        log.info("operators.wait_extended", extra={"order_id": order_id, "step": step})
        return Acted(order_id=order_id, status="extended")

    async def remind(self, order_id: str, step: str, request: OperatorRequest) -> Acted:
        """Remind of an answer now; its deadline stays (ANS-7).

        Raises `RefusedError` and `UnknownOrderError`.
        """
        command = _command(step, request)
        await self.unit_of_work.run(
            order_id, lambda order, now: callback_actions.reminded(order, command, now)
        )
        log.info("operators.reminded", extra={"order_id": order_id, "step": step})
        return Acted(order_id=order_id, status="reminded")

    async def renew_link(self, order_id: str, step: str, request: OperatorRequest) -> NewLink:
        """Make a new link to the answer of a step, which ends the former one (ANS-6).

        Raises `RefusedError` and `UnknownOrderError`.
        """
        callback_urls = self.callback_urls
        if callback_urls is None:
            raise RefusedError("this app makes no links: its public address is not configured")
        command = _command(step, request)
        made: dict[str, str | None] = {}

        def decide(order: OrderAggregate, now: datetime) -> Transition:
            transition = callback_actions.with_new_callback_url(order, command, callback_urls, now)
            made["url"] = callback_urls.of(
                order_id, callback_actions.awaiting(transition.after, step)
            )
            return transition

        await self.unit_of_work.run(order_id, decide)
        log.info("operators.link_renewed", extra={"order_id": order_id, "step": step})
        return NewLink(order_id=order_id, step=step, callback_url=made["url"] or "")


def _question(order: OrderAggregate, definition: StepDefinition) -> dict[str, Any] | None:
    try:
        return dict(callback_actions.question(order, definition))
    except RefusedError:
        return None


def _command(step: str, request: OperatorRequest) -> OperatorCommand:
    return OperatorCommand(operator=request.operator, note=request.note, step=step)
