"""A test environment for a business, with its orders and services, and a controlled clock."""

import json
import math
import sys
import time
import weakref
from asyncio import get_running_loop
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from types import MappingProxyType
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from engine.azure.settings import Settings
from engine.decisions.operator_actions import BY_NAME
from engine.decisions.transitions import OperatorEvent
from engine.declarations.business import Application
from engine.domain import exact_json
from engine.domain.keys import buckets
from engine.domain.messages import Submission, decode
from engine.features.external_events.notifications import NEWS
from operations.api.external_events import EventRequest
from operations.api.requests import act_request
from operations.api.views import OrderView
from testkit.exploration.explorer import Limit
from testkit.exploration.for_authors import (
    ORDER_ID,
    Coverage,
    ExplorationOptions,
    Seen,
    anything,
    explore_order,
    silent,
)
from testkit.services import warn_of_functions
from testkit.world import AppWorld

BEGINS = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
"""The time at which a test environment starts. It is a Monday."""

SECONDS_BETWEEN = 5.0
"""The interval of progress reports of an exploration, in seconds of real time."""


class WorkflowTestEnvironment:
    """The shipped app with one business, on tables and queues in memory.

    The clock stands still unless the test advances it. Work that takes no time is done immediately,
    so an order whose services answer has ended when `submit` returns. Two environments with the
    same input behave in the same way. An environment runs its own event loop, so use it only in
    plain functions.

        environment = WorkflowTestEnvironment(RENTAL)
        order = environment.submit(Rental(car="compact"))
        assert order.state == "Processed"
    """

    def __init__(
        self,
        business: Application,
        *,
        begins: datetime = BEGINS,
        call_functions_with: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        """Start the app. `settings` are fields of `Settings`, such as `failure_threshold=5`.

        Services are simulated. Activities are simulated, too, and a warning names them, unless
        `call_functions_with` has the settings that they read, such as `{"STRIPE_KEY": "a-key"}`.
        Then they are called, in the thread of their caller, and the test has to replace whatever
        they call.

        Raises `DeclarationError` for a business that cannot work, and TypeError for an unknown
        setting.
        """
        _refuse_unknown(settings)
        _refuse_running_loop()
        self._simulates_functions = call_functions_with is None
        if self._simulates_functions:
            warn_of_functions(business)
        self._world = AppWorld(business, begins, settings, call_functions_with)
        self._finalizer = weakref.finalize(self, self._world.end)
        self._numbers = count(1)

    @property
    def now(self) -> datetime:
        """The time of the environment's clock."""
        return self._world.loop.now()

    def advance(self, **time: float) -> None:
        """Advance the clock, for example by `days=15`. The arguments are those of `timedelta`.

        During this time messages arrive, agents call their services, and every timer runs when
        something is due for it.
        """
        self._world.advance(timedelta(**time))

    # Orders

    def submit(
        self,
        content: BaseModel | Mapping[str, Any],
        workflow: str | None = None,
        *,
        not_before: datetime | None = None,
    ) -> "OrderUnderTest":
        """Submit an order, and return it when nothing more happens without time passing.

        The content is an instance of the payload's model, or its JSON as a dict. No step starts
        before `not_before`. Raises `InvalidError` with all faults if the app refuses the order.
        """
        order_id = self._order_id()
        body = self._submission(order_id, content, workflow, not_before)
        self._world.run(self._world.engine.submission.record(body))
        return OrderUnderTest(self, order_id)

    def cancel(self, order: "OrderUnderTest") -> None:
        """Cancel the order as its customer, at the endpoint of its workflow.

        Raises `RefusedError` if the endpoint does not let customers cancel the order, or no longer
        does. Raises LookupError if the workflow has no endpoint.
        """
        self._world.run(self._world.cancel(order.id))

    def upgrade(self, business: Application) -> None:
        """Continue with another version of the app.

        Orders in flight and the effects at services stay. Raises `DeclarationError` for a business
        that cannot work.
        """
        if self._simulates_functions:
            warn_of_functions(business)
        self._world.upgrade(business)

    def explore(
        self,
        content: BaseModel | Mapping[str, Any] | None = None,
        workflow: str | None = None,
        *,
        not_before: datetime | None = None,
        faults: int = 1,
        acts: Sequence[str] = (),
        instances: Literal[1, 2] = 1,
        answers: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
        callbacks: Collection[str] = (),
        invariant: Callable[[Seen], None] = anything,
        states: float = math.inf,
        seconds: float = 100.0,
        progress: bool | None = None,
    ) -> Coverage:
        """Explore every course of events of one order: each crash, loss, duplicate and race.

        The exploration starts from the beginning, with the business and settings of this
        environment. Content and `not_before` are those of `submit`. The default content is the
        sample of the business.

        * `faults`: how many faults may occur in each course of events.
        * `acts`: what people may do once, at any moment. It is an operators' action such as
          `cancel`, or `customer-cancel`, `pause-agent`, `erase`, or `restore`, which restores the
          store from an earlier moment.
        * `answers`: the answers of services and people, by step. The default is a text for every
          recorded field. People may answer early, late or repeatedly, refuse, or not answer at all.
        * `callbacks`: agents whose services may answer 202 without a time, and then use the
          callback URL (ANS-8). Services that declare `calls_back` do so in any case.
        * `instances`: the number of processes of the scheduler, the supervisor and each agent.
        * `invariant`: raises AssertionError for a state that must not occur.
        * `states` and `seconds` (of real time) limit the exploration.
        * `progress`: whether the number of states is printed to standard error every few seconds.
          With None, it is printed only in a terminal.

        Prints and returns the coverage, including the laws that were not checked.

        Raises `FoundError`, an AssertionError with the shortest trace as numbered lines, for a
        state that breaks an invariant of the pattern (docs/pattern.md, 10) or the `invariant`, and
        for a state from which no end can be reached. Raises `NothingEndedError` if no course of
        events ended within the limits. Raises LookupError for an unknown act or agent, and
        `InvalidError` for `answers` that the workflow does not accept.
        """
        if content is None:
            content, workflow = self._sample(workflow)
        body = self._submission(ORDER_ID, content, workflow, not_before)
        shows_progress = sys.stderr.isatty() if progress is None else progress
        wanted = ExplorationOptions(
            faults=faults,
            acts=acts,
            limit=Limit(states=states, seconds=seconds),
            instances=instances,
            answers=answers,
            callbacks=callbacks,
            invariant=invariant,
            progress=_Progress().show if shows_progress else silent,
        )
        engine = self._world.engine
        coverage = explore_order(engine.business, engine.settings, json.loads(body), wanted)
        print(coverage)
        return coverage

    def _submission(
        self,
        order_id: str,
        content: BaseModel | Mapping[str, Any],
        workflow: str | None,
        not_before: datetime | None = None,
    ) -> bytes:
        """Return the message that submits an order. Raises `InvalidError` if the app refuses it."""
        message = Submission.model_validate(
            {
                **_json(content),
                "schemaVersion": 1,
                "orderId": order_id,
                "placedAt": self.now,
                "workflow": workflow,
                "notBefore": not_before,
            }
        )
        body = message.to_json().encode()
        self._world.engine.submission.read(body)
        return body

    def _sample(self, workflow: str | None) -> tuple[Mapping[str, Any], str | None]:
        sample = self._world.engine.business.sample
        if sample is None:
            raise TypeError("the business has no sample; give the content of an order")
        return sample.payload, workflow or sample.workflow

    def act(
        self, order: "OrderUnderTest", action: str, step: str | None = None, **arguments: Any
    ) -> None:
        """Carry out an operator's action on the order, such as `resubmit`.

        `arguments` are the arguments of the action besides the step: for `settle` whether the step
        `was_done`, and then its `answer`. `confirm_late_effect` is another one. Raises
        `InvalidError` for any other arguments, `RefusedError` if the action is not possible now,
        and LookupError for an unknown action.
        """
        if action not in BY_NAME:
            raise LookupError(f"there is no action {action}; there are {', '.join(BY_NAME)}")
        fields = {"operator": "test", "note": "a test", **arguments}
        fields |= {} if step is None else {"step": step}
        body = exact_json.write({to_camel(name): value for name, value in fields.items()})
        request = decode(act_request(BY_NAME[action]), body)
        self._world.run(self._world.operations.orders.act(BY_NAME[action], order.id, request))

    def answer(
        self,
        order: "OrderUnderTest",
        step: str,
        content: BaseModel | Mapping[str, Any] | None = None,
        *,
        refusal: str | None = None,
    ) -> None:
        """Answer a step of the order as the person or service outside, or refuse to.

        Raises `InvalidError` with all faults of the answer, and `RefusedError` if the answer would
        change nothing.
        """
        answer = None if content is None else dict(_json(content))
        request = EventRequest(operator="test", answer=answer, refusal=refusal)
        external_events = self._world.operations.services.external_events
        self._world.run(external_events.record(order.id, step, request))

    def inspect(self, order_id: str) -> OrderView:
        """Return the order as operators see it."""
        return self._world.run(self._world.operations.orders.inspect(order_id))

    def alerts(self) -> Sequence[OperatorEvent]:
        """Return the alerts that have reached the operators, the oldest first.

        A timer sends them, so time has to pass.
        """
        return [alert for alert in self._world.events.published if alert.type not in NEWS]

    # Services

    def effects(self, agent: str, order: "OrderUnderTest | None" = None) -> list[str]:
        """Return the operations that took effect at the agent's service, in their order.

        Agents with the same capability share their service. An operation that was repeated with the
        same idempotency key took effect once.
        """
        return list(self._world.services.effects(agent, order.id if order else None))

    def refuse(self, agent: str, operation: str | None = None, reason: str | None = None) -> None:
        """Let the agent's service refuse an operation, or all operations, permanently.

        Nothing takes effect. Without a reason, the service gives the reason that its agent
        declares.
        """
        self._world.run(self._world.services.fail("reject", agent, operation, reason))

    def hang(self, agent: str, operation: str | None = None) -> None:
        """Let the agent's service accept calls without ever answering. Nothing takes effect."""
        self._world.run(self._world.services.fail("hang", agent, operation))

    def down(self, agent: str, operation: str | None = None) -> None:
        """Let the agent's service answer 503. Nothing takes effect."""
        self._world.run(self._world.services.fail("down", agent, operation))

    def late(self, agent: str, operation: str | None = None) -> None:
        """Let calls take effect after half a minute, when nobody waits for the answer any more."""
        self._world.run(self._world.services.fail("late", agent, operation))

    def accept(self, agent: str, operation: str | None = None) -> None:
        """Let the agent's service answer 202, and do the work after half a minute.

        Use this for a service whose agent declares `answer_within`.
        """
        self._world.run(self._world.services.fail("accept", agent, operation))

    def heal(self, agent: str | None = None, operation: str | None = None) -> None:
        """Let an operation work again, or all of the agent's operations, or all services."""
        self._world.run(self._world.services.heal(agent, operation))

    def _order_id(self) -> str:
        number = next(self._numbers)
        known = buckets(self._world.engine.settings.buckets)
        return f"{known[number % len(known)]}-{number:026}"


@dataclass(frozen=True)
class OrderUnderTest:
    """An order in a test environment. Each property shows its present state."""

    environment: WorkflowTestEnvironment
    id: str

    @property
    def state(self) -> str:
        """`Pending`, `Processing`, `Processed` or `Error`."""
        return str(self._seen().process_state)

    @property
    def outcome(self) -> str | None:
        """How the order ended in `Error`: `failed`, `undone` or `undo-incomplete`.

        None otherwise.
        """
        outcome = self._seen().outcome
        return None if outcome is None else str(outcome)

    @property
    def reason(self) -> str | None:
        """Why the order is in its state, in words. None if nothing is wrong."""
        return self._seen().reason

    @property
    def steps(self) -> dict[str, str]:
        """The state of each step by its name, such as `Completed`."""
        return {step.name: str(step.state) for step in self._seen().steps}

    @property
    def history(self) -> list[str]:
        """The history of the order in words, the oldest event first."""
        return [f"{entry.event}: {entry.detail}" for entry in self._seen().history]

    def _seen(self) -> OrderView:
        return self.environment.inspect(self.id)


class _Progress:
    """Reports the progress of an exploration."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()

    def show(self, states: int) -> None:
        """Print the number of states, unless it was printed shortly before."""
        now = time.monotonic()
        if now - self._last >= SECONDS_BETWEEN:
            self._last = now
            took = f"{now - self._began:.0f} s"
            print(f"exploring: {states} states after {took}", file=sys.stderr, flush=True)


def _json(content: BaseModel | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(content, BaseModel):
        return content.model_dump(mode="json", by_alias=True)
    return content


def _refuse_unknown(settings: Mapping[str, Any]) -> None:
    unknown = sorted(settings.keys() - Settings.model_fields.keys())
    if unknown:
        raise TypeError(f"there is no setting {', '.join(unknown)}; see engine/azure/settings.py")


def _refuse_running_loop() -> None:
    try:
        get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        "a test environment runs an event loop of its own: use it in a plain function"
    )
