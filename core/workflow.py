"""A workflow: the business logic as data, apart from the scheduler that runs it."""

import re
from collections.abc import Callable, Collection, Container, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from hashlib import sha256
from typing import Any

from core.errors import AppError
from core.messages import OPERATION, STEP_NAME
from core.orders import OnFailure, Order, Step

LONGEST_TIMEOUT = timedelta(minutes=4, seconds=30)
"""Of one attempt: the host ends a function that takes longer than `functionTimeout`, with all calls beside it.

It renews the lock of a message for `maxAutoLockRenewalDuration`. Both are in host.json, and leave half a minute more.
"""

LONGEST_WAIT = timedelta(days=30)
"""Of a step that cools down, or is not undone before calls for it are over: each is time in which nothing goes on."""

MOST_TRIES = 1000

MOST_VERSION = 10**6

MAX_STEPS = 20
"""Of a workflow: the state row keeps them in one column of 32 Ki characters, whatever they are called and suffer."""

Results = Mapping[str, Mapping[str, Any]]
"""What the completed steps answered, by step name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepDefinition:
    """One step: what it takes, after what, and what of the order the agent needs to know.

    `timeout` and `threshold` stand for the setting of that name when they are None.
    """

    name: str
    capability: str
    """What has to be done; an agent that offers it is found when the step starts."""
    operation: str
    """What the agent's service is asked to do."""
    request: Callable[[Order, Results], Mapping[str, Any]]
    """What of the order, and of the results of the steps that it uses, goes into the request."""
    uses: tuple[str, ...] = ()
    """The steps whose results the request is made from: it gets these, and no others."""
    after: tuple[str, ...] = ()
    """The steps that have to be done before, which stand above it: so there are no circles.

    Steps that do not depend on each other run at the same time (SCH-10).
    """
    compensation: str | None = None
    """What the same service is asked to do to take the step back; None if there is nothing to take back."""
    result_fields: tuple[str, ...] = ()
    """What of the service's answer is kept: for later steps, and for the undo (UND-3)."""
    compensation_needs: tuple[str, ...] = ()
    """What of that the undo cannot do without."""
    timeout: timedelta | None = None
    threshold: int | None = None
    on_failure: OnFailure = OnFailure.ERROR
    """What happens when the step fails for good."""
    cooldown: timedelta | None = None
    """With the rule `cooldown`: how long until the step is tried again, with a fresh count; None for the setting."""
    max_cooldowns: int = 3
    """With the rule `cooldown`: after so many of them the order is in `Error`."""
    late_effect_window: timedelta = timedelta()
    """For a service that does not refuse undone keys: how long its slowest call may take effect after its time (UND-2).

    The undo waits for it, also if the step has completed.
    """

    @property
    def fingerprint(self) -> str:
        """What tells this definition from a changed one, in eight characters.

        The request is left out: it may be put right for orders in flight. So is what has its default: a field that a
        later version of the app adds is no change.
        """
        said = {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if each.name not in ("name", "request")
        }
        changed = {name: value for name, value in said.items() if value != _DEFAULTS.get(name)}
        return sha256(str(sorted(changed.items())).encode()).hexdigest()[:8]


_DEFAULTS = {each.name: each.default for each in fields(StepDefinition)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Workflow:
    """Named, versioned steps; orders in flight finish on the version they started with."""

    name: str
    version: int
    steps: tuple[StepDefinition, ...]

    def definition(self, step: str) -> StepDefinition | None:
        """Return the definition of a step; None for a name that the workflow does not have."""
        return next((definition for definition in self.steps if definition.name == step), None)

    def initial_steps(
        self, *, timeout: timedelta, threshold: int, cooldown: timedelta
    ) -> tuple[Step, ...]:
        """Return the step records of a new order, with the rules that hold for each copied in."""
        return tuple(
            Step(
                name=definition.name,
                capability=definition.capability,
                agent=definition.capability,
                timeout=definition.timeout or timeout,
                threshold=definition.threshold or threshold,
                on_failure=definition.on_failure,
                after=definition.after,
                uses=definition.uses,
                undoable=definition.compensation is not None,
                late_effect_window=definition.late_effect_window,
                cooldown=(definition.cooldown or cooldown)
                if definition.on_failure is OnFailure.COOLDOWN
                else timedelta(),
                fingerprint=definition.fingerprint,
                max_cooldowns=definition.max_cooldowns
                if definition.on_failure is OnFailure.COOLDOWN
                else 0,
            )
            for definition in self.steps
        )

    def faults(self, capabilities: Container[str]) -> Iterator[str]:
        """Return everything that is wrong with the definition, given what the app's agents offer."""
        known = [definition.name for definition in self.steps]
        if not re.fullmatch(STEP_NAME, self.name):
            yield f"its name has to match {STEP_NAME}"
        if not 1 <= self.version <= MOST_VERSION:
            yield f"its version has to be from 1 to {MOST_VERSION}"
        if not known:
            yield "there is no step"
        if len(known) > MAX_STEPS:
            yield f"there are {len(known)} steps; an order can keep {MAX_STEPS}"
        yield from (
            f"step {name} is defined twice"
            for name in dict.fromkeys(known)
            if known.count(name) > 1
        )
        for place, definition in enumerate(self.steps):
            faults = (
                *_faults(definition, known[:place], capabilities),
                *self._unanswered(definition),
            )
            yield from (f"step {definition.name}: {fault}" for fault in faults)

    def _unanswered(self, definition: StepDefinition) -> Iterator[str]:
        before = set(definition.after)
        for each in reversed(self.steps):
            if each.name in before:
                before.update(each.after)
        for name in definition.uses:
            if name not in before:
                yield f"it uses what {name} answers, and does not come after it"


def _faults(
    definition: StepDefinition, above: Collection[str], capabilities: Container[str]
) -> Iterator[str]:
    yield from (
        f"it comes after {name}, which is no step above it"
        for name in definition.after
        if name not in above
    )
    if definition.capability not in capabilities:
        yield f"no agent offers {definition.capability}"
    missing = [
        name for name in definition.compensation_needs if name not in definition.result_fields
    ]
    if missing:
        yield f"its undo needs {', '.join(missing)}, which is not kept"
    if definition.compensation_needs and definition.compensation is None:
        yield "it says what its undo needs, but not what undoes it"
    yield from _out_of_bounds(definition)
    yield from _unspeakable(definition)


MORE_THAN_NOTHING = ("timeout", "threshold", "cooldown")
AT_MOST = {
    "timeout": LONGEST_TIMEOUT,
    "threshold": MOST_TRIES,
    "cooldown": LONGEST_WAIT,
    "max_cooldowns": MOST_TRIES,
    "late_effect_window": LONGEST_WAIT,
}


def _out_of_bounds(definition: StepDefinition) -> Iterator[str]:
    for name, most in AT_MOST.items():
        value = getattr(definition, name)
        if value is None:
            continue
        nothing = type(most)()
        if value < nothing or (value == nothing and name in MORE_THAN_NOTHING):
            yield f"{name} is {value}; it has to be more"
        if value > most:
            yield f"{name} is {value}; it can be {most} at most"


def _unspeakable(definition: StepDefinition) -> Iterator[str]:
    """Yield what no request can say."""
    if not re.fullmatch(STEP_NAME, definition.name):
        yield f"its name has to match {STEP_NAME}"
    if not re.fullmatch(STEP_NAME, definition.capability):
        yield f"capability {definition.capability} has to match {STEP_NAME}"
    for operation in (definition.operation, definition.compensation):
        if operation is not None and not OPERATION.fullmatch(operation):
            yield f"operation {operation} has to match {OPERATION.pattern}"


class DeclarationError(AppError):
    """What the business declares is not usable; `faults` names everything that is wrong with it."""

    def __init__(self, faults: list[str]) -> None:
        head = f"{len(faults)} fault(s) in what the business declares:"
        super().__init__("\n".join([head, *(f"- {fault}" for fault in faults)]))
        self.faults = faults


class Workflows:
    """The workflows that this app knows, by name and version."""

    def __init__(self, *workflows: Workflow) -> None:
        self.all = workflows
        self._known = {(workflow.name, workflow.version): workflow for workflow in workflows}

    def check(self, capabilities: Container[str]) -> None:
        """Raise `DeclarationError` with every fault of every workflow, given what the app's agents offer."""
        if faults := list(self.faults(capabilities)):
            raise DeclarationError(faults)

    def faults(self, capabilities: Container[str]) -> Iterator[str]:
        """Return everything that is wrong with the workflows, given what the app's agents offer."""
        for workflow in self.all:
            which = f"{workflow.name} version {workflow.version}"
            yield from (f"{which}: {fault}" for fault in workflow.faults(capabilities))
        if len(self._known) < len(self.all):
            yield "two workflows have the same name and version"

    def find(self, name: str, version: int) -> Workflow | None:
        """Return the workflow that an order was started with, if this app still has it."""
        return self._known.get((name, version))

    def was_retired(self, name: str, version: int) -> bool:
        """Whether this is an older version of a workflow than those that this app knows.

        Another version, or another name, may be newer than this app: during an upgrade old and new hosts work side by
        side (FLT-12).
        """
        latest = self.latest(name)
        return self.find(name, version) is None and latest is not None and version < latest.version

    def latest(self, name: str) -> Workflow | None:
        """Return the version that new orders start with."""
        versions = [workflow for (known, _), workflow in self._known.items() if known == name]
        return max(versions, key=lambda workflow: workflow.version, default=None)
