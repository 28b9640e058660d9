"""The deciders that the tests ask, what agents say, and the orders that come of it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

from bench.workflows import MEASURED
from engine.decisions.proceed import NO_SILENT_AGENTS
from engine.domain.attempts import FailureOrigin, NotAttemptedReason, ReplyOutcome
from engine.domain.events import (
    Claimed,
    HistoryEvent,
    OrderEnded,
    OrderProcessed,
    Submitted,
    UnknownEvent,
)
from engine.domain.messages import REPLIES, AgentReply, AttemptMessage, request_id_of
from engine.domain.orders import OrderAggregate
from engine.domain.states import UnderWay
from engine.domain.statuses import Outcome
from engine.storage.agent_health import AgentHealth, AttemptFault
from operations.api.prospects import ActingRules
from scheduler.rules import SchedulerRules
from scheduler.service import WAKE_UP_TIME
from supervisor.rules import SupervisorRules

from . import orders
from .values import (
    LONGEST_UPGRADE,
    MAX_SILENCE,
    NOW,
    ORDER_ID,
    PROVIDERS,
    SOMEWHERE,
    THRESHOLD,
    TIMEOUT,
    TOLERANCE,
    refusal,
)


class All:
    """Whatever it may be."""

    def __contains__(self, _: object) -> bool:
        return True


_ALL = cast("tuple[str, ...]", All())


def begun_by(now: datetime, *agents: str, **more: Any) -> list[AgentHealth]:
    """What the agents report that have begun whatever was requested, each time with a fault of no text."""
    reported = {"faults": (fault_of_all(""),)} | more
    return [
        AgentHealth(agent=agent, instance="1", at=now, begun=_ALL, **reported)
        for agent in agents or PROVIDERS
    ]


def fault_of_all(text: str, *, by_gateway: bool = False) -> AttemptFault:
    """What the agent says of whatever it was asked for."""
    return AttemptFault(text=text, by_gateway=by_gateway, requests=_ALL)


def under_way(order: OrderAggregate) -> tuple[str, ...]:
    """The ids of the requests of all attempts of an order that are under way."""
    running = order.in_state(UnderWay)
    return tuple(request_id_of(order.order_id, step) for step in running)


class Rules(SchedulerRules):
    """The scheduler's rules, where there is room, and replies come from who was asked, unless a test says otherwise."""

    def claim(
        self,
        order: OrderAggregate,
        now: datetime,
        capacity: Mapping[str, Sequence[str]] = SOMEWHERE,
        silent: Mapping[str, datetime] = NO_SILENT_AGENTS,
    ) -> Any:
        return super().claim(order, now, capacity, silent)

    def receive(
        self,
        order: OrderAggregate,
        reply: AgentReply,
        now: datetime,
        capacity: Mapping[str, Sequence[str]] = SOMEWHERE,
        agent: str | None = None,
    ) -> Any:
        step = order.step(reply.step)
        return super().receive(
            order, reply, now, capacity, agent or (step.agent if step else "payment")
        )


WORKFLOWS, PAYLOAD = MEASURED.workflows, MEASURED.payload


MAX_UNBEGUN = 12


class Recovery(SupervisorRules):
    """The supervisor's rules, where agents have begun whatever was asked of them, unless a test says otherwise."""

    def recover(
        self, order: OrderAggregate, now: datetime, health: Sequence[AgentHealth] | None = None
    ) -> Any:
        return super().recover(order, now, begun_by(now) if health is None else health)


scheduler = Rules(
    instance="s1",
    workflows=WORKFLOWS,
    payload=PAYLOAD,
    providers=PROVIDERS,
    clock_tolerance=TOLERANCE,
    version_overlap=LONGEST_UPGRADE,
    max_silence=MAX_SILENCE,
)
other_scheduler = replace(scheduler, instance="s2")
supervisor = Recovery(instance="v1", clock_tolerance=TOLERANCE, max_unbegun_attempts=MAX_UNBEGUN)


acting_rules = ActingRules(
    claim=scheduler.claim,
    recover=supervisor.recover,
    poll_delay=WAKE_UP_TIME,
    clock_tolerance=TOLERANCE,
    offers={"payment": ("payment", "payment-backup")},
    version_overlap=LONGEST_UPGRADE,
    max_silence=MAX_SILENCE,
)


OF_OUTCOME: Mapping[ReplyOutcome, Mapping[str, Any]] = {
    ReplyOutcome.FAILED: {"origin": FailureOrigin.SERVICE},
    ReplyOutcome.NOT_ATTEMPTED: {"reason": NotAttemptedReason.BUSY},
}


def answer(step: str = "payment", outcome: str = "completed", **more: Any) -> AgentReply:
    """What an agent says of the first attempt to do a step, unless the test says otherwise."""
    known = ReplyOutcome(outcome)
    return REPLIES[known](
        **{
            "order_id": ORDER_ID,
            "step": step,
            "action": "do",
            "attempt": 1,
            "complete_by": NOW + TIMEOUT,
            **OF_OUTCOME.get(known, {}),
        }
        | more
    )


def answer_to(request: AttemptMessage, outcome: str = "completed", **more: Any) -> AgentReply:
    """What an agent says of a request."""
    named = {"order_id": request.order_id, "action": request.action, "attempt": request.attempt}
    return answer(request.step, outcome, **named, **more)


def claimed(order: OrderAggregate | None = None, at: datetime = NOW) -> OrderAggregate:
    """An order that a scheduler has claimed, with its payment running."""
    after: OrderAggregate = scheduler.claim(order or orders.new(), at).after
    return after


def timed_out(order: OrderAggregate) -> datetime:
    """The first moment at which the supervisor may act on a claimed order."""
    due = order.derived.complete_by
    assert due, "nothing of the order is due"
    return due + TOLERANCE + timedelta(microseconds=1)


def next_try(order: OrderAggregate, now: datetime) -> datetime:
    """When the order may be claimed."""
    return order.derived.not_before or now


def failed_for_good() -> tuple[OrderAggregate, datetime]:
    """An order whose payment timed out as often as the threshold allows, and when that was seen."""
    order, now = orders.new(), NOW
    for _ in range(THRESHOLD):
        order = claimed(order, now)
        now = timed_out(order)
        order = supervisor.recover(order, now).after
        now = next_try(order, now)
    return order, now


def some(what: str, words: str = "") -> tuple[HistoryEvent, ...]:
    """An event, where a test is not about that; one of another version of the app, if ours has none of this name."""
    known: dict[str, HistoryEvent] = {
        "submitted": Submitted(workflow="payment-only"),
        "claimed": Claimed(),
        "processed": OrderProcessed(),
        "failed": OrderEnded(outcome=Outcome.FAILED, step="payment", cause=refusal("declined")),
    }
    return (known.get(what) or UnknownEvent(name=what, words=words),)
