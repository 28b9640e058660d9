"""Explores every course of events of one order of an author's workflow."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any

from engine.azure.settings import Settings
from engine.decisions.operator_actions import BY_NAME
from engine.declarations.business import Application
from engine.domain.errors import InputFault, InvalidError
from engine.domain.orders import PROCESS_STATE, InError, OrderAggregate
from engine.domain.states import PATTERN_STATE, Skipped
from testkit.exploration.deployment import (
    ANSWER,
    CUSTOMER_CANCEL,
    ERASE,
    PAUSE_AGENT,
    REFUSE,
    RESTORE,
    Deployment,
)
from testkit.exploration.explorer import ExplorationResult, Limit, explore
from testkit.exploration.laws.notifications import stands
from testkit.exploration.moves import Move, sent
from testkit.exploration.running import running
from testkit.exploration.world import World

MORE_ACTS = (CUSTOMER_CANCEL, PAUSE_AGENT, ERASE, RESTORE)
"""What people may do, besides the operators' actions on orders."""

ORDER_ID = "b00-00000000000000000000000001"

FAULTS: Mapping[str, Sequence[str]] = {
    "crashes": ("crashes",),
    "lost answers": ("answer is lost", "does not learn of it"),
    "lost messages": (" is lost",),
    "messages delivered twice": ("delivered twice",),
    "messages and answers too late": ("held up", "too late", "until it is dead"),
    "handlers too slow": ("too fast",),
    "writes without an answer": ("it may arrive later", "conflicts with itself"),
    "parts that are away": ("is away",),
    "failures of services": ("the service stumbles", "the service rejects"),
    "circuits that open": ("the circuit of",),
}
"""The kinds of faults, with the texts in their labels."""

LEFT_OUT = (
    "several orders at a time, clocks that differ, two versions of the app, "
    "gateways that turn calls away"
)


@dataclass(frozen=True, kw_only=True)
class ExplorationOptions:
    """The options of an author's exploration."""

    faults: int
    """How many faults may occur in one course of events."""
    acts: Sequence[str]
    """What people may do once, at any moment: operators' actions, or `MORE_ACTS`."""
    limit: Limit
    instances: int
    """The number of processes of the scheduler, the supervisor and each agent: 1 or 2."""
    answers: Mapping[str, Mapping[str, Any]]
    """The answer of the service or the person to each step."""
    callbacks: Collection[str]
    """The agents whose services answer at callback URLs, without a declaration (ANS-8)."""
    invariant: Callable[["Seen"], None]
    """The author's own invariant. It raises AssertionError for a state that breaks it."""
    progress: Callable[[int], None]
    """Gets the number of visited states after each state."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The order in one state of the exploration."""

    state: str
    """`Pending`, `Processing`, `Processed` or `Error`."""
    outcome: str | None
    """How the order ended in `Error`: `failed`, `undone` or `undo-incomplete`. None otherwise."""
    steps: Mapping[str, str]
    """The recorded state of each step, by its name."""
    standing: frozenset[str]
    """The steps that took effect at their services and were not undone, whatever is recorded."""


def anything(_: Seen) -> None:
    """Accept every state."""


def silent(_: int) -> None:
    """Show no progress."""


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """The coverage of an exploration. Its text is for people."""

    name: str
    """The workflow, with its version."""
    wanted: ExplorationOptions
    explored: ExplorationResult
    ends: Counter[str] = field(default_factory=Counter)
    """How often each outcome of the order occurred, in words."""

    @property
    def states(self) -> int:
        """The number of states, or of visited states if a limit was reached."""
        return self.explored.states

    @property
    def seconds(self) -> float:
        """How long the exploration took, in seconds of real time."""
        return self.explored.seconds

    @property
    def whole(self) -> bool:
        """Whether every state was visited, so that no limit was reached."""
        return self.explored.whole

    @property
    def unchecked(self) -> Sequence[str]:
        """The statements of docs/pattern.md with a law that was not checked."""
        laws = self.explored.unchecked
        return sorted({statement for law in laws for statement in law.statements})

    @property
    def faults(self) -> Mapping[str, int]:
        """At how many places each kind of fault occurred."""
        return Counter(map(_kind, self.explored.faults))

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        faults = ", ".join(f"{count} {kind}" for kind, count in sorted(self.faults.items()))
        ends = ", ".join(f"{count} {end}" for end, count in sorted(self.ends.items()))
        wanted = self.wanted
        return [
            f"{self.name}: {self.explored}",
            f"covered: {self._covered()}, and up to {wanted.faults} of the faults in each",
            f"kinds of faults, by place: {faults or 'none'}",
            f"ends: {ends or 'none'}",
            *self._unchecked(),
            f"left out: {self._left_out()}",
        ]

    def _unchecked(self) -> Iterator[str]:
        """Yield the statements whose laws were not checked, by the moment that never came."""
        by_moment: dict[str, set[str]] = {}
        for law in self.explored.unchecked:
            by_moment.setdefault(law.moment, set()).update(law.statements)
        if by_moment:
            yield "laws that were not tested, because these events did not happen:"
        for moment, statements in by_moment.items():
            yield f"    {moment}: {', '.join(sorted(statements))}"

    def _covered(self) -> str:
        many = f"{self.wanted.instances} of each process"
        acts = f", one act: {' or '.join(self.wanted.acts)}" if self.wanted.acts else ""
        if self.whole:
            return f"every course of events to its end, {many}{acts}"
        return f"the first {self.explored.events} events of every course, {many}{acts}"

    def _left_out(self) -> str:
        races = ", races between two processes of one kind" * (self.wanted.instances == 1)
        rest = "" if self.whole else "what comes after these events, "
        links = ", answers over links that no agent declares" * (not self.wanted.callbacks)
        copies = ", restored copies" * (RESTORE not in self.wanted.acts)
        return f"{rest}{LEFT_OUT}{copies}{links}{races}, more faults"


class NothingEndedError(AssertionError):
    """No course of events ended within the limit, so the laws about ends were not checked."""

    def __init__(self, coverage: Coverage) -> None:
        more = "give it more `seconds` or `states`, fewer `faults`, or a smaller order"
        super().__init__(f"no course of events reached its end; {more}\n{coverage}")
        self.coverage = coverage


def explore_order(
    business: Application,
    settings: Settings,
    submission: Mapping[str, Any],
    wanted: ExplorationOptions,
) -> Coverage:
    """Explore one order. Raises `FoundError` with the shortest trace to a violation.

    Raises LookupError for an unknown act or agent. Raises `InvalidError` if an answer of a person
    or a service does not fit the workflow. Raises `NothingEndedError` if a limit is reached before
    any course of events has ended.
    """
    _refuse_unknown("act", wanted.acts, [*BY_NAME, *MORE_ACTS])
    _refuse_unknown("agent", wanted.callbacks, [agent.name for agent in business.agents])
    deployed = deployed_of(business, settings, wanted)
    _check_answers(deployed, submission.get("workflow") or business.default_workflow)
    world = _beginning(deployed, submission, wanted)
    ends: Counter[str] = Counter()
    looked_at = count(1)

    def watch(world: World, following: Sequence[Move]) -> None:
        wanted.progress(next(looked_at))
        order = world.order()
        if order is None:
            return
        wanted.invariant(_seen(world, order))
        if not any(move.by_itself for move in following):
            ends[_end(order)] += 1

    with running():
        explored = explore(world, limit=wanted.limit, watch=watch)
    name = submission.get("workflow") or business.default_workflow
    version = business.workflows.latest(name).version
    coverage = Coverage(name=f"{name} {version}", wanted=wanted, explored=explored, ends=ends)
    if not ends:
        raise NothingEndedError(coverage)
    return coverage


def _refuse_unknown(what: str, names: Collection[str], known: Sequence[str]) -> None:
    if unknown := [name for name in names if name not in known]:
        raise LookupError(f"there is no {what} {', '.join(unknown)}; there are {', '.join(known)}")


def _check_answers(deployed: Deployment, workflow: str) -> None:
    """Raise `InvalidError` for answers of people or services that the workflow does not accept."""
    faults: list[InputFault | str] = []
    linked = {agent.offers for agent in deployed.agents.values() if deployed.calls_back(agent)}
    for step in deployed.workflows.latest(workflow).steps:
        if (step.is_external or step.capability in linked) and step.read_answer is not None:
            try:
                step.read_answer(deployed.answer_of(step.name))
            except InvalidError as error:
                needed = f"answers[{step.name!r}] has to be an answer to the step"
                faults += [f"{needed}: {fault}" for fault in error.faults]
    if faults:
        raise InvalidError(faults)


def deployed_of(
    business: Application, settings: Settings, wanted: ExplorationOptions
) -> Deployment:
    """Return the deployment for an exploration, with one bucket."""
    requests = {f"request to {agent.name}": agent.name for agent in business.agents}
    roles = {"wake": "scheduler", "reply": "scheduler", "poll": "scheduler", "sweep": "supervisor"}
    roles |= {kind: f"{agent}-agent" for kind, agent in requests.items()}
    slots = {kind: _instances(role, wanted.instances) for kind, role in roles.items()}
    pairs = {instances for instances in slots.values() if len(instances) > 1}
    alone = {"submission": ("submission",), "relay": ("relay",)}
    less = {"buckets": 1, "unknown_name_max_deliveries": 1, "notice_tries": 1}
    return Deployment(
        business=business,
        settings=settings.model_copy(update=less),
        slots=slots | alone,
        requests=requests,
        alike=[(one, other) for one, other in sorted(pairs)],
        answers=wanted.answers,
        callbacks=frozenset(wanted.callbacks),
    )


def _instances(role: str, count: int) -> tuple[str, ...]:
    return tuple(f"{role}-{number}" for number in range(1, count + 1))


def _beginning(
    deployed: Deployment, submission: Mapping[str, Any], wanted: ExplorationOptions
) -> World:
    world = World(
        deployed=deployed,
        now=datetime.fromisoformat(submission["placedAt"]),
        faults_left=wanted.faults,
        acts_left=1 if wanted.acts else 0,
        operator=tuple(wanted.acts),
        outside=(ANSWER, REFUSE),
        order_id=submission["orderId"],
        may_open=frozenset(deployed.agents),
    )
    return world.with_messages([sent(submission)])


def _seen(world: World, order: OrderAggregate) -> Seen:
    return Seen(
        state=str(PROCESS_STATE[type(order.state)]),
        outcome=str(order.state.outcome) if isinstance(order.state, InError) else None,
        steps={step.name: str(PATTERN_STATE[type(step.state)]) for step in order.steps},
        standing=frozenset(_standing(world.effects)),
    )


def _standing(effects: frozenset[str]) -> set[str]:
    done = (effect.removesuffix(" do") for effect in effects if effect.endswith(" do"))
    return {key.split(":")[1] for key in done if f"{key} undo" not in effects}


def _end(order: OrderAggregate) -> str:
    """Describe how an order has ended, with the steps whose effects stand or may stand."""
    if order.hold:
        return "held"
    standing = [step.name for step in order.steps if stands(step)]
    skipped = [step.name for step in order.in_state(Skipped)]
    how = str(PROCESS_STATE[type(order.state)])
    if isinstance(order.state, InError):
        how = str(order.state.outcome)
        how += f" ({' and '.join(standing)} not undone)" if standing else ""
    return how + (f" ({' and '.join(skipped)} skipped)" if skipped else "")


def _kind(label: str) -> str:
    for kind, words in FAULTS.items():
        if any(word in label for word in words):
            return kind
    return "others"
