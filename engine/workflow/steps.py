"""A workflow written as functions, each of which makes the request of one step.

A parameter named like a step above is the answer of that step, so what a step uses, and what it
comes after, follows from its signature. Nothing is replayed: the functions compile to definitions.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from types import MappingProxyType
from typing import Any, TypedDict, Unpack

from engine.declarations.workflow import StepDefinition, WorkflowDefinition
from engine.domain.deadlines import WhenLate
from engine.domain.submitted_order import OnFailure, Order
from engine.workflow import options
from engine.workflow.binding import BoundFunction, Request, bind, signature_of, used_by
from engine.workflow.drawing import mermaid
from engine.workflow.endpoints import OrderEndpoint
from engine.workflow.external_events import (
    ReadCallback,
    WaitOptions,
    fields_of,
    marked_in,
    operation_of,
)
from engine.workflow.model import Model
from engine.workflow.services import Operation
from engine.workflow.written import Ask, Make, Step


class StepOptions(TypedDict, total=False):
    """The rules of a step, as its definition has them; what is left out has its default."""

    condition: Callable[..., bool]
    start_at: Callable[..., datetime | None]
    on_failure: OnFailure
    pivot: bool
    timeout: timedelta
    threshold: int
    cooldown: timedelta
    max_cooldowns: int
    max_retry_pause: timedelta
    late_effect_window: timedelta


class DeadlineOptions(TypedDict, total=False):
    """The deadline of a workflow's orders; without `within` there is none (SCH-17)."""

    within: timedelta
    when_late: WhenLate


CONDITIONS = ("condition", "start_at")
STEP_OPTIONS = (*StepOptions.__annotations__, "after", "undo_needs")
WAIT_OPTIONS = (*WaitOptions.__annotations__, "within", "attempts", "after")
DEADLINE_OPTIONS = tuple(DeadlineOptions.__annotations__)
DEFINED_AS = {"within": "timeout", "attempts": "threshold"}
"""The fields of a definition that an option of another name gives."""


class Workflow:
    """One version of a workflow; orders in flight finish on the version they started with.

    Without an endpoint, orders come over the queue `order-submissions` alone. All versions of a
    workflow share the endpoint of the latest one. An order has to be over `within` that time from
    its placement, or from its `notBefore`; `when_late` says what follows if it is not (SCH-17).
    """

    def __init__(
        self,
        name: str,
        payload: type[Model],
        *,
        version: int = 1,
        endpoint: OrderEndpoint | None = None,
        **deadline: Unpack[DeadlineOptions],
    ) -> None:
        self.name, self.payload, self.version, self.endpoint = name, payload, version, endpoint
        self.faults = tuple(options.faults_of(deadline, DEADLINE_OPTIONS))
        self.deadline: Mapping[str, Any] = {} if self.faults else deadline
        self.steps: list[Step] = []

    @property
    def place(self) -> str:
        """The place of its faults."""
        return f"{self.name} version {self.version}"

    def step(
        self,
        operation: Operation[Ask, Any],
        *,
        undo: Operation[Ask, Any] | None = None,
        after: Sequence[Make[Any]] = (),
        undo_needs: Sequence[str] = (),
        **rules: Unpack[StepOptions],
    ) -> Callable[[Make[Ask]], Make[Ask]]:
        """Add the decorated function as the next step.

        The undo is requested with the same content and the step's own answer, of which `undo_needs`
        names the fields that it cannot do without. `condition` returns whether the step is needed,
        and `start_at` the time before which it does not start. Their parameters are like those of
        the decorated function. The rules are fields of `StepDefinition`.
        """
        given: dict[str, Any] = {**rules, "after": after, "undo_needs": undo_needs}
        return self._written(operation, given, STEP_OPTIONS, undo=undo)

    def wait_for(
        self,
        event: type[Model],
        *,
        within: timedelta,
        attempts: int = 1,
        after: Sequence[Make[Any]] = (),
        **rules: Unpack[WaitOptions],
    ) -> Callable[[Make[Ask]], Make[Ask]]:
        """Add the decorated function as a step that an external event completes.

        The function makes the question, and `event` is the model of the event, which a person or a
        service sends. If none comes `within` that time, the question is sent again, in all
        `attempts` times. Then the step has failed.
        """
        given = {**rules, "within": within, "attempts": attempts, "after": after}
        fields = {"timeout": timedelta(days=1), **fields_of(event)}  # within, where it is usable
        return self._written(operation_of(event), given, WAIT_OPTIONS, fields=fields)

    def _written(
        self,
        operation: Operation[Ask, Any],
        given: Mapping[str, Any],
        known: Sequence[str],
        *,
        undo: Operation[Ask, Any] | None = None,
        fields: Mapping[str, Any] = MappingProxyType({}),
    ) -> Callable[[Make[Ask]], Make[Ask]]:
        """Return the decorator that adds a function as a step with the options that it can have.

        `fields` are those of its definition that follow from what the step is.
        """
        usable = options.usable(given, known)
        conditions = {name: usable[name] for name in CONDITIONS if usable.get(name)}
        rules = {
            DEFINED_AS.get(name, name): value
            for name, value in usable.items()
            if name not in ("after", "undo_needs", *CONDITIONS)
        }
        rules["compensation_needs"] = tuple(usable.get("undo_needs") or ())

        def written(make: Make[Ask]) -> Make[Ask]:
            step = Step(
                make=make,
                operation=operation,
                undo=undo,
                after=usable.get("after") or (),
                rules={**fields, **rules},
                conditions=conditions,
                faults=tuple(options.faults_of(given, known)),
            )
            self.steps.append(step)
            return make

        return written

    def taken(self, step: Step, function: Callable[..., Any]) -> Mapping[str, Step]:
        """Return the steps above whose answers a function of the step takes, by parameter."""
        above = {earlier.make.__name__: earlier for earlier in self.above(step)}
        return {
            name: above[name]
            for name, parameter in signature_of(function).parameters.items()
            if name in above and parameter.annotation not in (self.payload, Order)
        }

    def uses(self, step: Step) -> Mapping[str, Step]:
        """Return the steps above whose answers its functions take, by parameter."""
        taken = (self.taken(step, function).items() for function in step.functions)
        return dict(chain.from_iterable(taken))

    def above(self, step: Step) -> Sequence[Step]:
        """Return the steps that are written above this one."""
        return self.steps[: self.steps.index(step)]

    def after(self, step: Step) -> Sequence[Step]:
        """Return the steps that it comes after, without those that others of them come after."""
        direct = self._named_by(step)
        implied = self._before(direct)
        return [earlier for earlier in direct if earlier.name not in implied]

    def _named_by(self, step: Step) -> Sequence[Step]:
        """Return the steps above whose answers it takes, or which it names as those before it."""
        wanted = [*(use.make for use in self.uses(step).values()), *step.after]
        return [earlier for earlier in self.above(step) if earlier.make in wanted]

    def _before(self, steps: Sequence[Step]) -> set[str]:
        """Return the names of the steps that come before one of these, directly or not."""
        ends = {step.name for step in steps}
        found: set[str] = set()
        # Each step is above those that come after it, so one pass finds all.
        for step in reversed(self.steps):
            if step.name in ends | found:
                found.update(earlier.name for earlier in self._named_by(step))
        return found

    def all_before(self, step: Step) -> Sequence[Step]:
        """Return the steps that come before it, directly or not."""
        direct = self._named_by(step)
        names = {earlier.name for earlier in direct} | self._before(direct)
        return [earlier for earlier in self.above(step) if earlier.name in names]

    def workflow(self) -> WorkflowDefinition:
        """Return the workflow as the engine runs it."""
        steps = tuple(self._definition(step) for step in self.steps)
        return WorkflowDefinition(
            name=self.name,
            version=self.version,
            steps=steps,
            **self.deadline,
        )

    def _definition(self, step: Step) -> StepDefinition:
        request = self._bind(step, step.make)
        conditions: dict[str, Any] = {
            name: self._bind(step, function) for name, function in step.conditions.items()
        }
        uses, may_lack = used_by([request, *conditions.values()])
        return StepDefinition(
            name=step.name,
            title=step.title,
            capability=step.operation.capability,
            operation=step.operation.name,
            compensation=step.undo.name if step.undo else None,
            request=Request(request),
            uses=uses,
            may_lack=may_lack,
            after=tuple(earlier.name for earlier in self.after(step)),
            result_fields=step.fields,
            **conditions,
            **marked_in(step.operation.response),
            **{"read_answer": ReadCallback(step.operation.response), **step.rules},
        )

    def _bind(self, step: Step, function: Callable[..., Any]) -> BoundFunction:
        taken = self.taken(step, function).items()
        answers = {name: (earlier.name, earlier.operation.response) for name, earlier in taken}
        return bind(function, self.payload, answers)

    def mermaid(self) -> str:
        """Return the drawing of the workflow, as text for Mermaid."""
        return mermaid(self.workflow())
