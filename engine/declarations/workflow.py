"""A workflow: the business logic as data, independent of the scheduler that runs it."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import cached_property
from hashlib import sha256
from itertools import chain
from typing import Any

from engine.declarations.faults import Fault, FaultCode, StartUpError
from engine.domain.deadlines import Deadline, WhenLate, deadline_of
from engine.domain.messages import OPERATION, STEP_NAME
from engine.domain.states import ConditionPending, Waiting
from engine.domain.steps import MAX_RETRY_PAUSE, Step, StepIn, StepKind, StepRules
from engine.domain.submitted_order import OnFailure, Order

# The function of an agent ends a few seconds later. The host ends the process of a function that
# exceeds `functionTimeout`, and renews the lock of a message for `maxAutoLockRenewalDuration`. Both
# are in host.json, and are half a minute longer.
LONGEST_TIMEOUT = timedelta(minutes=4, seconds=30)

LONGEST_WAIT = timedelta(days=30)
"""The longest cooldown, late-effect window, wait for an external event and deadline of an order."""

MOST_TRIES = 1000

MOST_VERSION = 10**6

MAX_TITLE = 80
"""Maximum number of characters of a step's title. Each order keeps a copy."""

MAX_STEPS = 20
"""Maximum number of steps of a workflow. One column of 32 Ki characters keeps them all."""

Results = Mapping[str, Mapping[str, Any]]
"""The results of the completed steps, by step name."""


LAMBDA = "<lambda>"

ANSWER = "answer"
"""The operation of every external step."""

ReadAnswer = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Returns the fields of an answer that are kept. Raises `InvalidError` with every fault."""


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of the function of a condition or of a start time."""
    return str(getattr(function, "__name__", type(function).__name__))


@dataclass(frozen=True, kw_only=True, slots=True)
class StepDefaults:
    """The settings for steps that do not set their own values.

    Code that does not know the settings of a deployment uses the defaults of these fields.
    """

    timeout: timedelta = timedelta()
    threshold: int = 1
    cooldown: timedelta = timedelta()
    max_retry_pause: timedelta = MAX_RETRY_PAUSE


@dataclass(frozen=True, kw_only=True)
class StepDefinition:
    """The definition of one step: its service, its request, its predecessors and its rules.

    An external step has no agent. Its request is a question to an external party, `timeout` is the
    time for the event, and `threshold` is the number of times that the event is requested.

    If `timeout` or `threshold` is None, the setting of that name applies.
    """

    name: str
    title: str = ""
    """The title that operators see beside the name, or empty for the name alone."""
    kind: StepKind = StepKind.SERVICE
    capability: str
    """The capability that the step needs. An agent that offers it is selected when the step starts.
    An external step has `EXTERNAL_PARTY`."""
    operation: str
    """The operation of the agent's service that does the step."""
    request: Callable[[Order, Results], Mapping[str, Any]]
    """Makes the content of the request from the order and the results of the steps in `uses`."""
    uses: tuple[str, ...] = ()
    """The steps whose results `request` gets."""
    after: tuple[str, ...] = ()
    """The steps that have to be finished first. They are defined above this step, so there are no
    cycles. Steps that do not depend on each other run at the same time (SCH-10)."""
    compensation: str | None = None
    """The operation of the same service that undoes the step, or None if there is nothing to
    undo."""
    result_fields: tuple[str, ...] = ()
    """The fields of the service's answer that are kept for later steps and for the undo (UND-3)."""
    compensation_needs: tuple[str, ...] = ()
    """The result fields that the undo requires."""
    timeout: timedelta | None = None
    threshold: int | None = None
    may_lack: tuple[str, ...] = ()
    """The steps in `uses` whose results may be missing, because these steps were skipped."""
    condition: Callable[[Order, Results], bool] | None = None
    """Returns whether the step is needed, from the arguments of `request`. Otherwise the step is
    skipped (SCH-14). It is evaluated once, when the step's turn comes. The function must have a
    name, which operators see."""
    start_at: Callable[[Order, Results], datetime | None] | None = None
    """Returns the earliest start of the step, from the arguments of `request`, or None for an
    immediate start (SCH-15). It is evaluated once, when the step's turn comes. The time must have a
    time zone."""
    on_failure: OnFailure = OnFailure.ERROR
    """The rule for the order if the step fails."""
    pivot: bool = False
    """Whether the step is a pivot: once it may have been done, the order is not undone by itself
    (UND-6)."""
    cooldown: timedelta | None = None
    """With the rule `cooldown`: the pause before the next attempt, or None for the setting."""
    max_cooldowns: int = 3
    """With the rule `cooldown`: the number of cooldowns before the order goes to `Error`."""
    max_retry_pause: timedelta | None = None
    """The longest pause between two attempts that timed out, or None for the setting (SUP-3). The
    pause grows with each time-out, and the first retry has none. Zero switches pauses off."""
    late_effect_window: timedelta = timedelta()
    """How long after its timeout a call may still take effect (UND-2). The undo waits for this
    time, even if the step has completed. Zero is for a service that refuses undone keys."""
    read_answer: ReadAnswer | None = None
    """Checks the content of an external event. None for a service's answer, which is kept
    unchecked."""
    personal: tuple[str, ...] = ()
    """The result fields that are personal data. They are erased with the order's personal data."""
    owners: tuple[str, ...] = ()
    """Those of the personal fields by which an operator finds a person's orders."""

    @property
    def is_external(self) -> bool:
        return self.kind is StepKind.EXTERNAL

    @property
    def conditions(self) -> Mapping[str, Callable[[Order, Results], Any]]:
        """The functions that are evaluated when the step's turn comes, by field."""
        named = {"condition": self.condition, "start_at": self.start_at}
        return {name: function for name, function in named.items() if function is not None}

    @property
    def may_be_skipped(self) -> bool:
        """Whether the workflow's own rules may let an order continue without the step."""
        return self.on_failure is OnFailure.CONTINUE or self.condition is not None

    def rules(self, defaults: StepDefaults) -> StepRules:
        """Return the copy of the rules that an order keeps."""
        cools_down, pause = self.on_failure is OnFailure.COOLDOWN, self.max_retry_pause
        return StepRules(
            kind=self.kind,
            capability=self.capability,
            title=self.title,
            timeout=self.timeout or defaults.timeout,
            threshold=self.threshold or defaults.threshold,
            on_failure=self.on_failure,
            after=self.after,
            uses=tuple(step for step in self.uses if step not in self.may_lack),
            undoable=self.compensation is not None,
            pivot=self.pivot,
            cooldown=(self.cooldown or defaults.cooldown) if cools_down else timedelta(),
            max_cooldowns=self.max_cooldowns if cools_down else 0,
            max_retry_pause=defaults.max_retry_pause if pause is None else pause,
            late_effect_window=self.late_effect_window,
            personal=self.personal,
            fingerprint=self.fingerprint,
        )

    @cached_property
    def fingerprint(self) -> str:
        """Eight characters that change if the definition changes.

        Not all fields count. `request` is left out, because it may be corrected for orders in
        flight. The title, the check of an answer and `owners` are left out too. The capability
        shows the kind. Of a condition and of a start time, only the name counts.
        """
        own = ("name", "title", "kind", "request", "read_answer", "owners")
        compared = [field.name for field in fields(self) if field.name not in own]
        values = {name: _as_text(getattr(self, name)) for name in compared}
        # Default values are left out, because a field that a later version of the app adds is no
        # change.
        changed = {name: value for name, value in values.items() if value != _DEFAULTS.get(name)}
        return sha256(str(sorted(changed.items())).encode()).hexdigest()[:8]


def _as_text(value: Any) -> Any:
    return name_of(value) if callable(value) else value


_DEFAULTS = {field.name: field.default for field in fields(StepDefinition)}


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkflowDefinition:
    """A workflow in one version. Orders in flight finish on the version with which they started."""

    name: str
    version: int
    steps: tuple[StepDefinition, ...]
    within: timedelta | None = None
    """How long an order may take, counted from its placement or its `notBefore`, or None for no
    limit (SCH-17). Each order keeps its deadline, so a changed limit applies only to new orders."""
    when_late: WhenLate = WhenLate.ALERT
    """The rule for an order that is still open at its deadline."""

    @property
    def place(self) -> str:
        """The place that faults of this workflow name."""
        return f"{self.name} version {self.version}"

    def definition(self, step: str) -> StepDefinition | None:
        """Return the definition of a step, or None if the workflow has no step of this name."""
        return next((definition for definition in self.steps if definition.name == step), None)

    @property
    def waits_for_events(self) -> bool:
        return any(step.is_external for step in self.steps)

    def deadline(self, submitted: Order) -> Deadline | None:
        """Return the deadline of a new order.

        It does not depend on the time at which the order is recorded or claimed.
        """
        if self.within is None:
            return None
        starts_at = max(submitted.placed_at, submitted.not_before or submitted.placed_at)
        return deadline_of(starts_at, self.within, self.when_late)

    def initial_steps(self, defaults: StepDefaults) -> tuple[Step, ...]:
        """Return the step records of a new order, each with a copy of its rules."""
        return tuple(
            StepIn(
                name=definition.name,
                rules=definition.rules(defaults),
                state=ConditionPending() if definition.conditions else Waiting(),
            )
            for definition in self.steps
        )

    def faults(self, capabilities: Collection[str]) -> Iterator[Fault]:
        """Yield every fault of the definition, given the capabilities of the app's agents."""
        known = [definition.name for definition in self.steps]
        if not re.fullmatch(STEP_NAME, self.name):
            yield Fault(
                FaultCode.PATTERN_MISMATCH, field="name", value=self.name, pattern=STEP_NAME
            )
        if not 1 <= self.version <= MOST_VERSION:
            yield Fault(
                FaultCode.OUT_OF_RANGE,
                field="version",
                value=self.version,
                least=1,
                most=MOST_VERSION,
            )
        if not known:
            yield Fault(FaultCode.NO_STEP)
        if len(known) > MAX_STEPS:
            yield Fault(FaultCode.TOO_MANY_STEPS, steps=len(known), limit=MAX_STEPS)
        yield from self._faults_of_deadline()
        for name in dict.fromkeys(known):
            if known.count(name) > 1:
                yield Fault(FaultCode.DUPLICATE_STEP, step=name)
        for index, definition in enumerate(self.steps):
            faults = chain(
                _faults(definition, known[:index], capabilities),
                self._missing_results(definition),
                self._undo_after_a_pivot(definition),
            )
            yield from (fault.within(f"step {definition.name}") for fault in faults)

    def _faults_of_deadline(self) -> Iterator[Fault]:
        if self.within is None:
            if self.when_late is not WhenLate.ALERT:
                yield Fault(FaultCode.WHEN_LATE_WITHOUT_WITHIN, when_late=self.when_late)
        elif self.within <= timedelta():
            yield Fault(FaultCode.NOT_POSITIVE, field="within", value=self.within)
        elif self.within > LONGEST_WAIT:
            yield Fault(FaultCode.TOO_HIGH, field="within", value=self.within, limit=LONGEST_WAIT)

    def _missing_results(self, definition: StepDefinition) -> Iterator[Fault]:
        """Yield a fault for each step whose result is used but may be missing."""
        before = self._before(definition)
        for name in definition.uses:
            if name not in before:
                yield Fault(FaultCode.RESULT_NOT_AFTER, step=name)
            used = self.definition(name)
            if used and used.may_be_skipped and name not in definition.may_lack:
                yield Fault(FaultCode.RESULT_MAY_BE_MISSING, step=name)

    def _undo_after_a_pivot(self, definition: StepDefinition) -> Iterator[Fault]:
        """Yield a fault if the step's rule requires an undo after a pivot (UND-6)."""
        if definition.on_failure is OnFailure.UNDO:
            before = self._before(definition)
            for step in self.steps:
                if step.pivot and step.name in before:
                    yield Fault(FaultCode.UNDO_AFTER_PIVOT, step=step.name)

    def _before(self, definition: StepDefinition) -> set[str]:
        """Return the steps that have to be finished before this step, directly or indirectly."""
        before = set(definition.after)
        for step in reversed(self.steps):
            if step.name in before:
                before.update(step.after)
        return before


def _faults(
    definition: StepDefinition, above: Collection[str], capabilities: Collection[str]
) -> Iterator[Fault]:
    for name in definition.after:
        if name not in above:
            yield Fault(FaultCode.NOT_ABOVE, step=name)
    if definition.is_external:
        yield from _faults_of_answer(definition)
    elif definition.capability not in capabilities:
        fault = Fault(FaultCode.CAPABILITY_NOT_OFFERED, capability=definition.capability)
        yield fault.like(definition.capability, capabilities)
    kept = definition.result_fields
    missing = tuple(name for name in definition.compensation_needs if name not in kept)
    if missing:
        yield Fault(FaultCode.UNDO_NEEDS_NOT_KEPT, fields=missing)
    if definition.compensation_needs and definition.compensation is None:
        yield Fault(FaultCode.UNDO_NEEDS_WITHOUT_UNDO)
    if len(definition.title) > MAX_TITLE:
        yield Fault(FaultCode.TITLE_TOO_LONG, length=len(definition.title), limit=MAX_TITLE)
    yield from _out_of_bounds(definition)
    yield from _malformed_names(definition)


def _faults_of_answer(definition: StepDefinition) -> Iterator[Fault]:
    """Yield the faults of an external step: missing values, and values that it cannot have."""
    if definition.read_answer is None:
        yield Fault(FaultCode.EXTERNAL_WITHOUT_MODEL)
    if definition.timeout is None:
        yield Fault(FaultCode.EXTERNAL_WITHOUT_TIMEOUT)
    if definition.compensation is not None:
        yield Fault(FaultCode.EXTERNAL_WITH_UNDO)
    if definition.pivot:
        yield Fault(FaultCode.EXTERNAL_AS_PIVOT)


MORE_THAN_NOTHING = ("timeout", "threshold", "cooldown")
AT_MOST: Mapping[str, timedelta | int] = {
    "timeout": LONGEST_TIMEOUT,
    "threshold": MOST_TRIES,
    "cooldown": LONGEST_WAIT,
    "max_cooldowns": MOST_TRIES,
    "max_retry_pause": LONGEST_WAIT,
    "late_effect_window": LONGEST_WAIT,
}


def _out_of_bounds(definition: StepDefinition) -> Iterator[Fault]:
    waits = {"timeout": LONGEST_WAIT} if definition.is_external else {}
    for name, most in {**AT_MOST, **waits}.items():
        value = getattr(definition, name)
        if value is None:
            continue
        nothing = type(most)()
        if name in MORE_THAN_NOTHING:
            if value <= nothing:
                yield Fault(FaultCode.NOT_POSITIVE, field=name, value=value)
        elif value < nothing:
            yield Fault(FaultCode.NEGATIVE, field=name, value=value)
        if value > most:
            yield Fault(FaultCode.TOO_HIGH, field=name, value=value, limit=most)


def _malformed_names(definition: StepDefinition) -> Iterator[Fault]:
    """Yield a fault for each name that cannot be part of a request."""
    if not re.fullmatch(STEP_NAME, definition.name):
        yield Fault(
            FaultCode.PATTERN_MISMATCH, field="name", value=definition.name, pattern=STEP_NAME
        )
    if not re.fullmatch(STEP_NAME, definition.capability):
        yield Fault(
            FaultCode.PATTERN_MISMATCH,
            field="capability",
            value=definition.capability,
            pattern=STEP_NAME,
        )
    for field, function in definition.conditions.items():
        if len(name_of(function)) > MAX_TITLE or name_of(function) == LAMBDA:
            yield Fault(FaultCode.FUNCTION_WITHOUT_NAME, field, limit=MAX_TITLE)
    for operation in (definition.operation, definition.compensation):
        if operation is not None and not OPERATION.fullmatch(operation):
            yield Fault(
                FaultCode.PATTERN_MISMATCH,
                field="operation",
                value=operation,
                pattern=OPERATION.pattern,
            )


class DeclarationError(StartUpError):
    """The declarations of the business are invalid. `faults` lists all of their faults."""


class Workflows:
    """The workflows that this app knows, by name and version."""

    def __init__(self, *workflows: WorkflowDefinition) -> None:
        self.all = workflows
        self._known = {(workflow.name, workflow.version): workflow for workflow in workflows}

    def check(self, capabilities: Collection[str]) -> None:
        """Raise `DeclarationError` with every fault, given the capabilities of the app's agents."""
        if faults := list(self.faults(capabilities)):
            raise DeclarationError(faults)

    def faults(self, capabilities: Collection[str]) -> Iterator[Fault]:
        """Yield every fault of the workflows, given the capabilities of the app's agents."""
        for workflow in self.all:
            yield from (fault.within(workflow.place) for fault in workflow.faults(capabilities))
        counted = Counter(workflow.place for workflow in self.all)
        for place, count in counted.items():
            if count > 1:
                yield Fault(FaultCode.DUPLICATE_WORKFLOW, place)

    @property
    def have_deadlines(self) -> bool:
        """Whether the orders of any workflow have a deadline (SCH-17)."""
        return any(workflow.within is not None for workflow in self.all)

    def find(self, name: str, version: int) -> WorkflowDefinition | None:
        """Return the workflow version of an order, or None if this app does not have it."""
        return self._known.get((name, version))

    def was_retired(self, name: str, version: int) -> bool:
        """Return whether this version of a workflow is older than the versions that this app knows.

        An unknown name, or an unknown version that is not older, may be newer than this app: during
        an upgrade, old and new hosts run side by side (FLT-12).
        """
        latest = self.latest(name)
        return self.find(name, version) is None and latest is not None and version < latest.version

    def latest(self, name: str) -> WorkflowDefinition | None:
        """Return the version with which new orders start, or None for an unknown name."""
        versions = [workflow for workflow in self._known.values() if workflow.name == name]
        return max(versions, key=lambda workflow: workflow.version, default=None)
