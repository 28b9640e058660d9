"""Workflows written as functions, each of which makes the request of one step.

A parameter with the name of an earlier step takes the answer of that step. So the signature of a
function says which answers the step uses and which steps come before it. The functions are compiled
to definitions. They are not replayed.
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
    """The options of a step besides the named arguments of `Workflow.step`. Each has a default."""

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
    """The deadline of a workflow's orders. Without `within` they have none (SCH-17)."""

    within: timedelta
    when_late: WhenLate


CONDITIONS = ("condition", "start_at")
STEP_OPTIONS = (*StepOptions.__annotations__, "after", "undo_needs")
WAIT_OPTIONS = (*WaitOptions.__annotations__, "within", "attempts", "after")
DEADLINE_OPTIONS = tuple(DeadlineOptions.__annotations__)
DEFINED_AS = {"within": "timeout", "attempts": "threshold"}
"""The fields of a step's definition that have another name as an option."""


class Workflow:
    """One version of a workflow. Orders in flight finish on the version with which they started.

    Without an endpoint, orders come only over the queue `order-submissions`. All versions of a
    workflow share the endpoint of the latest one. `within` is the time from the order's placement,
    or from its `notBefore`, to its deadline. `when_late` says what happens to an order that is late
    (SCH-17).

        rental = Workflow("rental", Rental, version=2, within=timedelta(days=2))
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
        """The name and version, as the place of a fault."""
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

        Its docstring is the title that operators read. `undo` is the operation that reverses the
        step. It is requested with the same content and with the answer of the step. `undo_needs`
        names the fields of the answer without which the undo cannot work. `after` names steps that
        come before this one although it does not use their answers.

        `condition` decides whether the step runs, and `start_at` gives the time before which it
        does not start. Both are functions with parameters like those of the decorated function. The
        other options are explained in `StepDefinition`. `application` reports faults in all of
        these.

            @rental.step(cars.book_car, undo=cars.cancel_car, on_failure=UNDO)
            def book_car(rental: Rental) -> CarRequest:
                return CarRequest(car=rental.car)
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

        The function makes the question. `event` is the model of the event that a person or a
        service sends. If no event comes `within` this time, the question is sent again, up to
        `attempts` times in all. Then the step has failed.

            @rental.wait_for(Approval, within=timedelta(days=1), attempts=3)
            def approve(rental: Rental) -> ApprovalQuestion:
                return ApprovalQuestion(car=rental.car)
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
        """Make the decorator that adds a function as a step.

        Options that cannot be used become faults. `fields` are the fields of the definition that
        follow from the kind of the step.
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
        """Return the earlier steps whose answers this function of the step takes, by parameter."""
        above = {earlier.make.__name__: earlier for earlier in self.above(step)}
        return {
            name: above[name]
            for name, parameter in signature_of(function).parameters.items()
            if name in above and parameter.annotation not in (self.payload, Order)
        }

    def uses(self, step: Step) -> Mapping[str, Step]:
        """Return the earlier steps whose answers any function of the step takes, by parameter."""
        taken = (self.taken(step, function).items() for function in step.functions)
        return dict(chain.from_iterable(taken))

    def above(self, step: Step) -> Sequence[Step]:
        """Return the steps that are written above this one."""
        return self.steps[: self.steps.index(step)]

    def after(self, step: Step) -> Sequence[Step]:
        """Return the steps directly before this one.

        If one of these steps comes before another one of them, only the later step is returned.
        """
        direct = self._named_by(step)
        implied = self._before(direct)
        return [earlier for earlier in direct if earlier.name not in implied]

    def _named_by(self, step: Step) -> Sequence[Step]:
        """Return the steps that this one names: in parameters, or with `after`."""
        wanted = [*(use.make for use in self.uses(step).values()), *step.after]
        return [earlier for earlier in self.above(step) if earlier.make in wanted]

    def _before(self, steps: Sequence[Step]) -> set[str]:
        """Return the names of all steps before any of these, directly or indirectly."""
        ends = {step.name for step in steps}
        found: set[str] = set()
        # Each step is above those that come after it, so one pass finds all.
        for step in reversed(self.steps):
            if step.name in ends | found:
                found.update(earlier.name for earlier in self._named_by(step))
        return found

    def all_before(self, step: Step) -> Sequence[Step]:
        """Return all steps before this one, directly or indirectly."""
        direct = self._named_by(step)
        names = {earlier.name for earlier in direct} | self._before(direct)
        return [earlier for earlier in self.above(step) if earlier.name in names]

    def workflow(self) -> WorkflowDefinition:
        """Return the workflow in the form that the engine runs."""
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
        """Draw the workflow as text for Mermaid."""
        return mermaid(self.workflow())
