"""Takes callbacks of people and services: each callback URL carries a token of its own (ANS-6)."""

import logging
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import Field

from engine.decisions.results import definition_of
from engine.decisions.transitions import Transition
from engine.declarations.workflow import Workflows
from engine.domain.errors import InvalidLinkError, TooManyTriesError, UnknownOrderError
from engine.domain.messages import OrderId, StepName
from engine.domain.orders import OrderAggregate
from engine.features.external_events import callback_urls, decide
from engine.features.external_events.content import question, read
from engine.http.answers import AnswerBody, AnswerTaken
from engine.http.models import Parameters, View
from engine.ports import Clock
from engine.storage.unit_of_work import UnitOfWork
from engine.words.causes import words_of

log = logging.getLogger(__name__)

ACTOR = "outside"
"""The actor of a callback in the history: nobody knows more of them."""
MOST_TRIES, WITHIN = 10, timedelta(minutes=10)
"""How many calls with a wrong link to one order are read in this time, by one process."""
MOST_ORDERS = 10_000
"""For how many orders wrong calls are counted at a time."""


class CallbackToken(Parameters):
    """What a callback URL carries."""

    token: str = Field(min_length=1, max_length=100)


class Shown(View):
    """What a step asks of whoever has its callback URL."""

    order_id: OrderId
    step: StepName
    title: str
    is_open: bool
    """Whether an answer still counts."""
    why_closed: str | None
    """Why none does; null if one does."""
    until: datetime | None
    """When the time for an answer is up; null if it is not awaited now."""
    question: dict[str, Any] | None
    """What is asked, as the workflow makes it; null if no answer counts, or a service was asked."""
    cache_control: Annotated[str, Field(exclude=True)] = "no-store"
    referrer_policy: Annotated[str, Field(exclude=True)] = "no-referrer"


@dataclass(frozen=True, kw_only=True)
class WrongTries:
    """Counts the calls with a wrong link to each order, so that guessing reads no rows.

    The count is in memory: a row for each try would cost more than the try itself.
    """

    clock: Clock
    _times: dict[str, deque[datetime]] = field(default_factory=dict, init=False)

    def check(self, order_id: str) -> None:
        """Raise `TooManyTriesError` if there were too many lately."""
        times = self._times.get(order_id)
        if times and len(times) == MOST_TRIES and self.clock() - times[0] < WITHIN:
            raise TooManyTriesError

    def add(self, order_id: str) -> None:
        """Count one more; if there are many orders, the one counted longest ago is forgotten."""
        times = self._times.pop(order_id, None) or deque(maxlen=MOST_TRIES)
        times.append(self.clock())
        self._times[order_id] = times
        if len(self._times) > MOST_ORDERS:
            del self._times[next(iter(self._times))]


@dataclass(frozen=True, kw_only=True)
class CallbackService:
    """Shows what a link asks, and records the answer."""

    unit_of_work: UnitOfWork
    workflows: Workflows
    remembering: Collection[str]
    """The agents whose services would repeat a refusal for its key."""
    wrong_tries: WrongTries

    async def answer(
        self, order_id: str, step: str, body: AnswerBody, token: CallbackToken
    ) -> AnswerTaken:
        """Answer a step of an order, by the token of its callback URL (ANS-6).

        Raises `InvalidLinkError`, `TooManyTriesError`, `InvalidError` with every fault,
        `RefusedError`, `UnknownOrderError`, and `UnavailableError` if only a newer version of the
        app knows the order's workflow.
        """

        def record(order: OrderAggregate, now: datetime) -> Transition | None:
            self._check(order, step, token)
            event = read(order, step, self.workflows, body.answer, body.refusal)
            event = replace(event, for_good=self._agent_of(order, step) in self.remembering)
            return decide.recorded(order, event, ACTOR, now)

        self.wrong_tries.check(order_id)
        decision = await self.unit_of_work.run(order_id, record)
        if decision is None:
            return AnswerTaken(order_id=order_id, step=step, status="known")
        log.info("customers.answered", extra={"order_id": order_id, "step": step})
        return AnswerTaken(order_id=order_id, step=step, status="recorded")

    async def show(self, order_id: str, step: str, token: CallbackToken) -> Shown:
        """Show what a link asks; nothing changes, for mail scanners open links too (ANS-6).

        Raises as `answer` does.
        """
        self.wrong_tries.check(order_id)
        order = await self.unit_of_work.store.load(order_id)
        if order is None:
            raise UnknownOrderError
        self._check(order, step, token)
        return self._shown(order, step)

    def _agent_of(self, order: OrderAggregate, name: str) -> str | None:
        """Return the agent that was asked; None if there is no such step."""
        step = order.step(name)
        return step.agent if step else None

    def _check(self, order: OrderAggregate, step: str, token: CallbackToken) -> None:
        """Raise `InvalidLinkError`, and count that, unless the token is that of the step."""
        try:
            callback_urls.step_of(order, step, token.token)
        except InvalidLinkError:
            self.wrong_tries.add(order.order_id)
            raise

    def _shown(self, order: OrderAggregate, name: str) -> Shown:
        step = next(candidate for candidate in order.steps if candidate.name == name)
        closed = decide.why_closed(order, step)
        asks = step.is_external and not closed
        return Shown(
            order_id=order.order_id,
            step=step.name,
            title=step.rules.title,
            is_open=not closed,
            why_closed=words_of(closed) if closed else None,
            until=step.complete_by,
            question=dict(self._question(order, name)) if asks else None,
        )

    def _question(self, order: OrderAggregate, step: str) -> Mapping[str, Any]:
        return question(order, definition_of(order, step, self.workflows))
