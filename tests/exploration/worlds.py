"""The named worlds."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.workflows import MEASURED, PAYMENT_ONLY
from engine.azure.settings import Settings
from engine.declarations.business import AgentDefinition, Application
from engine.declarations.workflow import StepDefinition, WorkflowDefinition, Workflows
from engine.domain.backoff import interval_after
from engine.domain.deadlines import WhenLate
from engine.domain.steps import StepKind
from engine.domain.submitted_order import EXTERNAL_PARTY, OnFailure
from engine.domain.work_index import IndexRow
from scheduler.service import WAKE_UP_TIME
from testkit.exploration.deployment import Deployment
from testkit.exploration.laws.counting import MOST_SPARED
from testkit.exploration.moves import INSTANT, sent
from testkit.exploration.ports import ASK_AGAIN
from testkit.exploration.running import running
from testkit.exploration.world import Rows, World
from testkit.world import settings_for

NOW = datetime(2026, 1, 31, 8, 15, tzinfo=UTC)
ORDER_ID = "b00-01JCX4T9Q8ZK7M2N5P6R3S1V0W"
BESIDE_ID = "b00-01JCX4T9Q8ZK7M2N5P6R3S1V0X"
GARBAGE_ID, NEWER_ID = "b00-01JCX4T9Q8ZK7M2N5P6R3S1V0A", "b00-01JCX4T9Q8ZK7M2N5P6R3S1V0B"
ALLOWED = timedelta(seconds=8)
MARGIN = timedelta(seconds=1)
TOLERANCE = timedelta(seconds=1)
COOLDOWN = timedelta(seconds=60)
PROBES = 5
"""At most so many requests go to an agent that is away before orders are given up."""
LONGEST_UPGRADE = timedelta(days=1)
MAX_SILENCE = timedelta(seconds=60)
"""How long orders wait for a silent agent where there may be one."""
SLOTS: Mapping[str, tuple[str, ...]] = {
    "submission": ("submission",),
    "wake": ("scheduler-1", "scheduler-2"),
    "reply": ("scheduler-1", "scheduler-2"),
    "poll": ("scheduler-1", "scheduler-2"),
    "request": ("agent-1", "agent-2"),
    "backup-request": ("agent-3",),
    "sweep": ("supervisor-1", "supervisor-2"),
    "relay": ("relay",),
}
"""Who may do what, unless a world says otherwise."""
ALIKE = (("scheduler-1", "scheduler-2"), ("agent-1", "agent-2"), ("supervisor-1", "supervisor-2"))
"""Instances that differ in nothing but their names."""
AGENT_OF = {"request": "payment", "backup-request": "payment-backup"}
PROCESS_PER_FUNCTION = (
    ("wake", ("scheduler-1",)),
    ("reply", ("scheduler-2",)),
    ("poll", ("scheduler-3",)),
)
"""Each of the scheduler's functions has a process of its own."""
ONE_NEVER_POLLS = (
    ("wake", ("scheduler-1", "scheduler-2")),
    ("reply", ("scheduler-1", "scheduler-2")),
    ("poll", ("scheduler-2",)),
)
PROCESSES = {
    PROCESS_PER_FUNCTION: "a process for each function",
    ONE_NEVER_POLLS: "scheduler-1 never polls",
}
"""Which of the scheduler's processes does what, and how that is called."""
SUBMISSION = {
    "schemaVersion": 1,
    "orderId": ORDER_ID,
    "placedAt": "2026-01-31T08:15:00Z",
    "customer": {"name": "Ada", "email": "ada@example.com"},
    "items": [{"sku": "TEA-SENCHA", "quantity": 2, "unitPrice": "14.00"}],
    "workflow": "payment-only",
}


def _nothing(order: Any, results: Any) -> dict[str, Any]:
    return {}


def _broken(order: Any, results: Any) -> dict[str, Any]:
    raise LookupError("claimNumber")


LONG = timedelta(seconds=30)
DAY = timedelta(days=1)


def _step(
    name: str, *after: str, on_failure: OnFailure = OnFailure.UNDO, cooldowns: int = 0
) -> StepDefinition:
    """A step that can be undone; one agent does them all."""
    return StepDefinition(
        name=name,
        capability="payment",
        operation="do",
        compensation="undo",
        request=_nothing,
        after=after,
        on_failure=on_failure,
        max_cooldowns=cooldowns,
    )


SINGLE = PAYMENT_ONLY
IN_SEQUENCE = WorkflowDefinition(
    name="in-sequence", version=1, steps=(_step("a"), _step("b", "a"), _step("c", "b"))
)
ONE = WorkflowDefinition(name="one", version=1, steps=(_step("a"),))
RESTING = WorkflowDefinition(
    name="resting", version=1, steps=(_step("a", on_failure=OnFailure.COOLDOWN, cooldowns=1),)
)
PAIR = WorkflowDefinition(name="pair", version=1, steps=(_step("a"), _step("b", "a")))
PLAIN = WorkflowDefinition(
    name="plain",
    version=1,
    steps=(replace(_step("a", on_failure=OnFailure.ERROR), compensation=None),),
)
EXTERNAL_EVENT = WorkflowDefinition(
    name="asked",
    version=1,
    steps=(replace(_step("a", on_failure=OnFailure.ERROR), result_fields=("reference",)),),
)
"""If its step is refused, an operator is asked."""
NEWER = WorkflowDefinition(name="one", version=2, steps=(_step("a"),))
PARALLEL = WorkflowDefinition(name="parallel", version=1, steps=(_step("a"), _step("b")))
PARALLEL_ERROR = WorkflowDefinition(
    name="parallel-error", version=1, steps=(_step("a", on_failure=OnFailure.ERROR), _step("b"))
)


BESIDE = WorkflowDefinition(
    name="beside",
    version=1,
    steps=(
        replace(
            _step("a", on_failure=OnFailure.COOLDOWN, cooldowns=1), threshold=1, compensation=None
        ),
        replace(_step("b"), timeout=LONG),
        _step("c", "b"),
    ),
)
"""A step that rests may leave others to run, or to begin."""
BESIDE_ONE = replace(BESIDE, name="beside-one", steps=BESIDE.steps[:2])
LATE_EFFECT_WINDOW = WorkflowDefinition(
    name="late-effect", version=1, steps=(replace(_step("a"), late_effect_window=LONG),)
)
LATE_PAIR = WorkflowDefinition(
    name="late-pair",
    version=1,
    steps=(replace(_step("a"), late_effect_window=LONG), _step("b", "a")),
)
"""The first step may be done, and then have to be taken back because of the second."""
RETIRING = WorkflowDefinition(
    name="retiring", version=1, steps=(_step("a"), replace(_step("b"), timeout=LONG))
)
BROKEN = WorkflowDefinition(
    name="broken", version=1, steps=(_step("a"), replace(_step("b", "a"), request=_broken))
)


def not_needed(order: Any, results: Any) -> bool:
    """Say that a step is not needed."""
    return False


BEGINS = NOW + timedelta(hours=1)


def in_an_hour(order: Any, results: Any) -> datetime:
    """Let a step begin when nothing else can happen any more."""
    return BEGINS


def needed(order: Any, results: Any) -> bool:
    """Say otherwise under the same name, as after a change of the workflow in place."""
    return True


needed.__name__ = not_needed.__name__

LAST_NOT_NEEDED = WorkflowDefinition(
    name="last-not-needed",
    version=1,
    steps=(_step("a"), replace(_step("b", "a"), condition=not_needed)),
)
LAST_NEEDED = replace(
    LAST_NOT_NEEDED, steps=(_step("a"), replace(_step("b", "a"), condition=needed))
)
BEGINS_LATER = WorkflowDefinition(
    name="begins-later",
    version=1,
    steps=(_step("a"), replace(_step("b", "a"), start_at=in_an_hour)),
)
WITHOUT_ONE = WorkflowDefinition(
    name="without-one", version=1, steps=(_step("a", on_failure=OnFailure.CONTINUE), _step("b"))
)
"""The order goes on without the first step, and is undone because of the second."""
NO_WAY_BACK = WorkflowDefinition(
    name="no-way-back",
    version=1,
    steps=(_step("a"), replace(_step("b", "a"), pivot=True, compensation=None)),
)
"""If the last step is refused, the order is undone; if it may be done, an operator decides."""


def cannot_judge(order: Any, results: Any) -> bool:
    """Raise what nobody has foreseen."""
    raise LookupError("amount")


CANNOT_JUDGE = WorkflowDefinition(
    name="cannot-judge",
    version=1,
    steps=(_step("a"), replace(_step("b", "a"), condition=cannot_judge)),
)
BEGINS_BESIDE = WorkflowDefinition(
    name="begins-beside",
    version=1,
    steps=(replace(_step("a"), timeout=LONG), replace(_step("b"), start_at=in_an_hour)),
)
WITHOUT_BESIDE_A_REST = WorkflowDefinition(
    name="without-beside-a-rest",
    version=1,
    steps=(
        _step("a", on_failure=OnFailure.CONTINUE),
        _step("b", on_failure=OnFailure.COOLDOWN, cooldowns=1),
        _step("c", "a", "b"),
    ),
)
NO_WAY_BACK_BESIDE = WorkflowDefinition(
    name="no-way-back-beside",
    version=1,
    steps=(replace(_step("a"), pivot=True, compensation=None), _step("b")),
)
"""The step beside the point of no return may fail while that is being done."""
JUDGED_NEWER = WorkflowDefinition(
    name="one",
    version=2,
    steps=(_step("a"), replace(_step("b", "a"), start_at=in_an_hour)),
)
"""A newer version of `ONE`, whose last step begins later."""


def _wait(*after: str, attempts: int = 1, on_failure: OnFailure = OnFailure.UNDO) -> StepDefinition:
    """A step that somebody outside answers, or not."""
    return StepDefinition(
        name="w",
        kind=StepKind.EXTERNAL,
        capability=EXTERNAL_PARTY,
        operation="answer",
        request=_nothing,
        result_fields=("said",),
        read_answer=dict,
        personal=("said",),
        after=after,
        timeout=LONG,
        threshold=attempts,
        on_failure=on_failure,
    )


WAITS = WorkflowDefinition(name="waits", version=1, steps=(_wait(attempts=2),))
WAITS_ONCE = WorkflowDefinition(name="waits-once", version=1, steps=(_wait(),))
WAITS_BETWEEN = WorkflowDefinition(
    name="waits-between",
    version=1,
    steps=(_step("a"), _wait("a", attempts=2), _step("b", "w")),
)
WAITS_CHAIN = replace(WAITS_BETWEEN, name="waits-chain")
WAITS_IF_NEEDED = WorkflowDefinition(
    name="waits-if-needed", version=1, steps=(_step("a"), replace(_wait("a"), condition=needed))
)
WAITS_UNNEEDED = WorkflowDefinition(
    name="waits-unneeded", version=1, steps=(_step("a"), replace(_wait("a"), condition=not_needed))
)
WAITS_FIRST = WorkflowDefinition(
    name="waits-first",
    version=1,
    steps=(_wait(on_failure=OnFailure.ERROR), _step("b", "w")),
)
WAITS_BESIDE = WorkflowDefinition(
    name="waits-beside", version=1, steps=(_step("a"), _wait(), _step("b", "a", "w"))
)
"""If the step beside it fails, the order goes back."""
WAITS_BESIDE_ERROR = replace(
    WAITS_BESIDE,
    name="waits-beside-error",
    steps=(_step("a", on_failure=OnFailure.ERROR), *WAITS_BESIDE.steps[1:]),
)
"""If the step beside it fails, an operator decides."""
WAIT_TWO = WorkflowDefinition(
    name="wait-two",
    version=1,
    steps=(_wait(), replace(_wait(on_failure=OnFailure.CONTINUE), name="v"), _step("b", "w", "v")),
)
"""Two answers at once; the order goes on without the second one."""
WAITS_AND_RUNS = WorkflowDefinition(
    name="waits-and-runs",
    version=1,
    steps=(_wait(attempts=2), replace(_step("a"), timeout=LONG), _step("b", "w", "a")),
)
"""Both are due at the same time, the answer first."""
WAIT_AFTER_BOTH = WorkflowDefinition(
    name="wait-after-both", version=1, steps=(_step("a"), _step("b"), _wait("a", "b"))
)
WITHIN = timedelta(seconds=10)
"""How long an order may take: a step that is tried again has too little time for a call."""
LATE_ATTEMPTS = 4
"""So many attempts fit into the second before the deadline, in which no call is made any more."""
LATE_UNDO = replace(PAIR, name="late-undo", within=WITHIN, when_late=WhenLate.UNDO)
LATE_STOP = replace(PAIR, name="late-stop", within=WITHIN, when_late=WhenLate.STOP)
LATE_ALERT = replace(ONE, name="late-alert", within=timedelta(seconds=5))
"""The deadline passes while the first attempt runs."""
LATE_WAIT = replace(WAITS_BETWEEN, name="late-wait", within=WITHIN, when_late=WhenLate.UNDO)
"""An answer is awaited for longer than the order may take."""
LATE_PIVOT = replace(
    NO_WAY_BACK, name="late-pivot", within=timedelta(seconds=12), when_late=WhenLate.UNDO
)
"""A step that is tried again has less than its timeout."""
LATE_DATED = replace(ONE, name="late-dated", within=WITHIN, when_late=WhenLate.STOP)
BEFORE = "!pending|0|payment|2026-01-31T08:00:00.000000Z"
NEIGHBOURS = (
    IndexRow(key=f"{BEFORE}|{GARBAGE_ID}", order_id=GARBAGE_ID, data={"NotBefore": "early"}),
    IndexRow(
        key=f"{BEFORE}|{NEWER_ID}",
        order_id=NEWER_ID,
        data={"NotBefore": NOW, "UpdatedAt": NOW, "Workflow": "unheard-of", "WorkflowVersion": 1},
    ),
)
"""A row that nobody can read, and an order that follows a workflow which nobody knows yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorldOf:
    """One order; two schedulers, two agents, two supervisors; and what goes wrong."""

    workflow: WorkflowDefinition = SINGLE
    faults: int = 0
    only: tuple[str, ...] = ()
    """Which faults, by what their labels say; empty if any may happen."""
    acts: int = 0
    """How often an operator does something, at any moment at which it makes sense."""
    operator: tuple[str, ...] = ("resubmit",)
    """What that may be."""
    outside: tuple[str, ...] = ()
    """What somebody outside may say to each step that waits for it, at any moment, as often as they like."""
    threshold: int = 2
    """At how many failures a step fails."""
    unbegun: int = 12
    """After how many requests that no agent begins a step fails."""
    agents: tuple[str, ...] = ("payment",)
    """Who offers what every step needs."""
    circuits: bool = False
    """Whether circuits may open."""
    alone: bool = False
    """Whether there is one of each role only, for what no race is needed to see."""

    believes: bool = False
    """Whether schedulers' processes live on between events, with one slot at each agent."""
    recalls: bool = False
    """Whether processes remember the orders that they have written."""
    answered: bool = True
    """Whether agents live to tell how a call went; if not, each call kills the process, and every step expires."""
    busy: bool = False
    """Whether agents have said something a moment ago, so that they do not say at once what they begin."""
    one_provider: bool = True
    """Whether the agents lead to one provider, which shares its idempotency keys."""
    takes_out: str = ""
    """The agent that a new version of the app has not, which takes over at any moment."""
    remembers: bool = False
    """Whether the service repeats a refusal for its idempotency key."""
    accepts: bool = False
    """Whether the service accepts each call at first, and does it at once or when it is asked again."""
    callbacks: bool = False
    """Whether the service answers the first call with 202, and then over its link or never.

    It says no time for that, unless it `accepts`.
    """
    forgets: bool = False
    """Whether the service forgets a key soon after an attempt with it has timed out."""
    away: bool = False
    """Whether no agent takes a request before somebody starts it again, which may happen at any moment, or never."""
    broken: tuple[str, ...] = ()
    """The instances of agents whose circuits may open, each for itself, and then never close."""
    hangs: bool = False
    """Whether the service never answers in time, be it for this order alone, or for several at the same time."""
    gateway: bool = False
    """Whether a gateway before the service may turn a call away."""
    either_way: bool = False
    """Whether what a process does side by side is done from the first to the last as well as the other way round."""
    clocks: tuple[tuple[str, timedelta], ...] = ()
    """By how much the clocks of instances are ahead; those of all others show the true time."""
    processes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Which of the scheduler's processes does what, if not each everything: each believes and remembers for itself."""
    tells: bool = False
    """Whether the sender is told what happens."""
    beside: WorkflowDefinition | None = None
    """What a second order follows that comes at the same time; the first is urgent then, and the second is not."""
    arrives: WorkflowDefinition | None = None
    """What a second order follows that may come at any moment, and is as urgent as the first."""
    later: bool = False
    """Whether the order is submitted for a time (SUB-9)."""
    neighbours: bool = False
    """Whether orders lie in the same bucket that nobody can claim, and that came before."""
    others: tuple[tuple[str, WorkflowDefinition], ...] = ()
    """Instances of another version of the app, and what they know instead of this order's workflow."""
    lacks: tuple[tuple[str, str], ...] = ()
    """Instances of the version before, and the agent that each does not have yet."""

    def __str__(self) -> str:
        operator = f"{' or '.join(self.operator)} {self.acts}"
        parts = [
            f"{self.workflow.name}, faults {self.faults}, {operator}, threshold {self.threshold}",
            f"only {' and '.join(self.only)}" if self.only else "",
            f"outside they {' or '.join(self.outside)}" if self.outside else "",
            f"circuits of {' and '.join(self.agents)}" if self.circuits else "",
            "" if self.answered else "each call kills its agent",
            "agents have just spoken" if self.busy else "",
            "" if self.one_provider else f"providers of {' and '.join(self.agents)}",
            f"{self.takes_out} is taken out" if self.takes_out else "",
            "the service remembers refusals" if self.remembers else "",
            "the service accepts, and does it later" if self.accepts else "",
            "the service answers over its link" if self.callbacks else "",
            "the service forgets keys" if self.forgets else "",
            "the agents are away" if self.away else "",
            f"{' and '.join(self.broken)} may break" if self.broken else "",
            "the service hangs" if self.hangs else "",
            "behind a gateway" if self.gateway else "",
            "side by side in either order" if self.either_way else "",
            *(f"{slot} ahead {ahead.total_seconds():+}" for slot, ahead in self.clocks),
            *(
                f"{slot} knows version {known.version} of {self.workflow.version}"
                for slot, known in self.others
            ),
            *(f"{slot} has no {agent}" for slot, agent in self.lacks),
            "alone" if self.alone else "",
            "what schedulers believe lasts" if self.believes else "",
            "processes remember what they wrote" if self.recalls else "",
            PROCESSES[self.processes] if self.processes else "",
            "the sender is told" if self.tells else "",
            f"beside a normal order, {self.beside.name}" if self.beside else "",
            "for a time" if self.later else "",
            f"another order may come, {self.arrives.name}" if self.arrives else "",
            "beside orders that nobody can claim" if self.neighbours else "",
        ]
        return ", ".join(filter(None, parts))

    def beginning(self) -> World:
        """The order is on its way."""
        world = World(
            deployed=self.deployed(),
            now=NOW,
            faults_left=self.faults,
            acts_left=self.acts,
            operator=self.operator,
            outside=self.outside,
            only=self.only,
            may_open=frozenset(self.broken or (self.agents if self.circuits else ())),
            broken=frozenset(self.broken),
            away=frozenset(self.agents if self.away else ()),
            order_id=ORDER_ID,
            others=(BESIDE_ID,) if self._second() else (),
            shared=bool(self._second() or self.neighbours),
            rows=Rows({row.key: (1, row) for row in NEIGHBOURS} if self.neighbours else {}),
            to_come=(sent(self._submission_beside(self.arrives)),) if self.arrives else (),
        )
        more: dict[str, Any] = {"replyTo": "status-1"} if self.tells else {}
        more |= {"notBefore": BEGINS.isoformat()} if self.later else {}
        more |= {"priority": "high"} if self.beside or self.neighbours else {}
        first = SUBMISSION | {"workflow": self.workflow.name} | more
        both = (first, self._submission_beside(self.beside)) if self.beside else (first,)
        return world.with_messages(map(sent, both))

    def _second(self) -> WorkflowDefinition | None:
        return self.beside or self.arrives

    @staticmethod
    def _submission_beside(workflow: WorkflowDefinition) -> dict[str, Any]:
        return SUBMISSION | {"workflow": workflow.name, "orderId": BESIDE_ID}

    def bounds(self) -> dict[str, timedelta]:
        """How long each order takes at most, by the rules, from any state to its end, if nothing else goes wrong.

        That is: handlers take no time, messages are delivered, timers come as soon as they would find something, a
        circuit that opened closes when somebody waits for nothing else. Where two orders share a slot, each may have to
        wait until what the other lost of a step shows; not until that has rested.
        """
        bounds = {ORDER_ID: self._bound(self.workflow)}
        if second := self._second():
            bounds |= {BESIDE_ID: self._bound(second) + self._longest_try(self.workflow)}
            bounds[ORDER_ID] += self._longest_try(second)
        return bounds

    def _bound(self, workflow: WorkflowDefinition) -> timedelta:
        """What an order takes by itself.

        What was lost of a step shows when its time is up; then it may have to rest, or to settle, and it goes on.
        Where there are answers, nothing more can take time, and steps that run at once wait at once. Where there are
        none, that happens at each try of each step, on the way forward and back. Where all that can go wrong is that an
        instance is broken, and another is at work, only pauses take time, one after each fault.
        """
        if self.broken:
            return sum(map(interval_after, range(1, self.faults + 1)), timedelta())
        if self.away:
            return 2 * sum(map(self._silence, workflow.steps), timedelta())
        waits = [self._wait(step) for step in workflow.steps if step.is_external]
        ways = [self._way(step) for step in workflow.steps if not step.is_external]
        time = max(ways, default=timedelta()) if self._is_answered() else 2 * sum(ways, timedelta())
        later = BEGINS - NOW if self.later else timedelta()
        later += LONGEST_UPGRADE if self.takes_out else timedelta()
        if workflow.within:  # then each step is tried once more, or undone
            later += workflow.within + sum(ways, timedelta())
        return time + sum(waits, later)

    def _silence(self, step: StepDefinition) -> timedelta:
        """How long a step may take at an agent that is away: until it is given up, after each rest anew.

        The last request may go out just before that, and so may the first one that is taken.
        """
        times = 1 + self._cooldowns(step)
        return times * (MAX_SILENCE + 2 * self._try(step)) + (times - 1) * COOLDOWN

    def _wait(self, step: StepDefinition) -> timedelta:
        """How long an answer from outside may take: each time that it is asked for, nobody answers."""
        return (step.threshold or self.threshold) * self._try(step)

    def _way(self, step: StepDefinition) -> timedelta:
        cooldowns, tries = self._cooldowns(step), self._tries(step)
        if self._is_answered():
            cooldowns, tries = min(cooldowns, 1), 1 + self.callbacks
        poll_pause = LONG if self.callbacks else ASK_AGAIN
        later = 2 * poll_pause if self.accepts else timedelta()
        later += BEGINS - NOW if step.start_at else timedelta()
        return tries * self._try(step) + cooldowns * COOLDOWN + step.late_effect_window + later

    def _cooldowns(self, step: StepDefinition) -> int:
        return step.max_cooldowns if step.on_failure is OnFailure.COOLDOWN else 0

    def _tries(self, step: StepDefinition) -> int:
        """How often a step is tried at most that never succeeds: as often as it may fail, and once more.

        For one attempt may not be heard of, and so not be charged: by a fault, or since its agent has just spoken.
        """
        return (step.threshold or self.threshold) * (self._cooldowns(step) + 1) + 1 + self._spared()

    def _spared(self) -> int:
        """How many time-outs of a step count as no failure, since those of others come with them."""
        return MOST_SPARED if self.hangs else 0

    def _most_attempts(self) -> int:
        """How often any step is tried at most: a fault spares one, there and back, and so does what nobody hears of.

        The first attempt of all is spared too, since its reply may wait. An operator lets the step begin afresh.
        """
        steps = [*self.workflow.steps, *(second.steps if (second := self._second()) else ())]
        failures = max(
            (step.threshold or self.threshold) * (self._cooldowns(step) + 1) for step in steps
        )
        ways = 2 if any(step.compensation for step in steps) else 1
        if self.away:  # each pause is longer than the one before, so these are few
            return ways * PROBES * max(1 + self._cooldowns(step) for step in steps)
        cut_short = LATE_ATTEMPTS if self.workflow.within else 0
        more = self.busy + self.accepts + self._spared()
        tries = ways * (failures + more) + self.faults + cut_short
        return 1 + tries * (1 + self.acts)

    def _try(self, step: StepDefinition) -> timedelta:
        """How long a try takes: until a poll finds what no wake-up announced, and then until it is given up."""
        clocks = max((abs(ahead) for _, ahead in self.clocks), default=timedelta())
        return WAKE_UP_TIME + (step.timeout or ALLOWED) + TOLERANCE + INSTANT + clocks

    def _longest_try(self, workflow: WorkflowDefinition) -> timedelta:
        return max(map(self._try, workflow.steps))

    def _is_answered(self) -> bool:
        """Whether replies come, and count: not for whom the workflow is retired."""
        return (
            self.answered
            and not self.hangs
            and all(known.version <= self.workflow.version for _, known in self.others)
        )

    def running(self) -> AbstractContextManager[None]:
        """While this lasts, the services do one thing after another, quietly."""
        page = 2 if self._second() else 1  # so that a sweep of all orders has two pages
        return running(
            page=page,
            may_pass_over=lambda order_id: order_id == GARBAGE_ID,
            records_silence=self.away,
        )

    def deployed(self) -> Deployment:
        """What is explored."""
        if not self.takes_out:
            return self._deployed_with(self.agents)
        rest = [agent for agent in self.agents if agent != self.takes_out]
        following = replace(self._deployed_with(rest), gone=self._provider_of(self.takes_out))
        return replace(self._deployed_with(self.agents), following=following)

    def _provider_of(self, agent: str) -> Mapping[str, str]:
        """Return the provider of an agent by its name."""
        return {agent: self._agent(agent).provider or agent}

    def _deployed_with(self, agents: Sequence[str]) -> Deployment:
        """What is explored, with these agents."""
        known = dict.fromkeys(filter(None, (self.workflow, self._second())))
        business = Application(
            workflows=Workflows(*known),
            default_workflow="order",
            agents=[self._agent(name) for name in agents],
            payload=MEASURED.payload,
        )
        differ = (
            self.clocks
            or self.others
            or self.lacks
            or self.believes
            or self.recalls
            or self.processes
            or self.broken
        )
        return Deployment(
            business=business,
            settings=self._settings(business),
            slots={kind: self._slots(kind) for kind in SLOTS},
            requests={kind: agent for kind, agent in AGENT_OF.items() if agent in agents},
            alike=() if differ else ALIKE,
            known={slot: Workflows(workflow) for slot, workflow in self.others},
            lacks={slot: (agent,) for slot, agent in self.lacks},
            clocks=dict(self.clocks),
            callbacks=frozenset(agents if self.callbacks else ()),
            answered=self.answered,
            has_just_spoken=self.busy,
            most_attempts=self._most_attempts(),
            believing=self.believes,
            remembering=self.recalls,
            behind_gateway=self.gateway,
            hangs=self.hangs,
            either_way=self.either_way,
            records_silence=self.away,
        )

    def _agent(self, name: str) -> AgentDefinition:
        """An agent that offers what every step needs."""
        return AgentDefinition(
            name=name,
            offers="payment",
            address=name,
            calls_in_flight=1 if self.believes else 10,
            provider="psp" if self.one_provider else name,
            remembers_refusals=self.remembers,
            answer_within=LONG if self.accepts else None,
            calls_back=self.accepts and self.callbacks,
            keys_last=self._keys_last(),
        )

    def _keys_last(self) -> timedelta | None:
        if not self.forgets:
            return None
        return DAY if self.remembers else LONG

    def _settings(self, business: Application) -> Settings:
        times = {
            "step_timeout": ALLOWED,
            "reply_margin": MARGIN,
            "remote_call_timeout": ALLOWED,
            "clock_tolerance": TOLERANCE,
            "cooldown": COOLDOWN,
        }
        return settings_for(
            business,
            {
                **{f"{name}_seconds": time.total_seconds() for name, time in times.items()},
                "buckets": 1,
                "reply_to_prefix": "status-",
                "failure_threshold": self.threshold,
                "max_unbegun_attempts": self.unbegun,
                "max_silence_seconds": MAX_SILENCE.total_seconds(),
                "unknown_name_max_deliveries": 1,
                "notice_tries": 1,
            },
        )

    def _slots(self, kind: str) -> tuple[str, ...]:
        """Who there is to do this."""
        if kind in dict(self.processes):
            return dict(self.processes)[kind]
        extra = {slot for slot, _ in (*self.others, *self.lacks)}.union(self.broken)
        return tuple(
            name
            for place, name in enumerate(SLOTS[kind])
            if not (self.alone and place) or name in extra
        )


ALL_ACTS = ("resubmit", "skip", "cancel")
HALF = timedelta(seconds=0.5)

UNDISTURBED = WorldOf()
GIVEN_UP = WorldOf(faults=1, acts=1, threshold=1)
TRIED_AGAIN = WorldOf(faults=1, acts=1)
CANCELLED = WorldOf(acts=1, operator=("cancel",), workflow=PAIR)
NOT_BEGUN = WorldOf(faults=2, only=("request is lost",), unbegun=2, workflow=PAIR, alone=True)
"""Each of the two requests of a step may be lost."""
SKIPPED = WorldOf(faults=1, acts=1, operator=("skip",), threshold=1, alone=True)
HELD = WorldOf(
    faults=1,
    only=("request is lost",),
    acts=2,
    operator=("hold", "release"),
    workflow=ONE,
    alone=True,
)
HELD_BACK = WorldOf(acts=2, operator=("hold", "cancel"), workflow=PAIR, alone=True)
CIRCUIT = WorldOf(faults=1, circuits=True)
REROUTED = WorldOf(faults=1, circuits=True, agents=("payment", "payment-backup"))
RESTED = WorldOf(faults=1, threshold=1, workflow=RESTING)
THREE_STEPS = WorldOf(faults=1, threshold=1, workflow=IN_SEQUENCE)
TWO_STEPS = WorldOf(faults=1, workflow=PAIR, alone=True)
SILENT = WorldOf(workflow=ONE, beside=PLAIN, away=True, alone=True)
"""The rule of one order is the undo, and no agent takes the requests."""
SILENT_RESTS = WorldOf(workflow=RESTING, away=True, alone=True)
SILENT_CANCELLED = WorldOf(acts=1, operator=("cancel",), workflow=PAIR, away=True, alone=True)
SILENT_OPTIONAL = WorldOf(workflow=WITHOUT_ONE, away=True, alone=True)
UNANSWERED = WorldOf(faults=1, threshold=1, answered=False)
CLOCKS_DIFFER = WorldOf(faults=1, alone=True, clocks=(("supervisor-1", HALF), ("agent-1", -HALF)))
CLOCKS_DIFFER_BACK = WorldOf(
    faults=1, alone=True, clocks=(("supervisor-1", -HALF), ("agent-1", HALF))
)
TAKEN_BACK = WorldOf(
    faults=1,
    only=("hears too late", "rejects"),
    acts=1,
    operator=("cancel",),
    threshold=1,
    workflow=ONE,
    alone=True,
)
"""With any other fault it is a part of the next."""
UNDO_FAILS = WorldOf(faults=1, acts=2, operator=ALL_ACTS, threshold=1, workflow=ONE, alone=True)
UPGRADED = WorldOf(faults=1, workflow=NEWER, others=(("scheduler-2", ONE),), alone=True)
PROVIDER_ADDED = WorldOf(
    faults=1,
    only=("request is lost",),
    workflow=ONE,
    agents=("payment-backup", "payment"),
    one_provider=False,
    lacks=(("scheduler-2", "payment-backup"),),
    alone=True,
)
"""A step is tried at a provider that a scheduler of the version before does not know."""
RESTS_BESIDE = WorldOf(
    faults=1, only=("request is held up",), workflow=BESIDE, threshold=1, alone=True
)
REFUSED_BESIDE = WorldOf(
    faults=2, only=("hears too late", "rejects"), workflow=BESIDE_ONE, threshold=1, alone=True
)
RESTS_CANCELLED = WorldOf(
    acts=1, operator=("cancel",), workflow=BESIDE, threshold=1, alone=True, answered=False
)
HURRIED = WorldOf(
    faults=1,
    only=("hears too late",),
    acts=1,
    operator=("expedite",),
    workflow=RESTING,
    threshold=1,
    alone=True,
)
HURRIED_AGAIN = WorldOf(
    faults=1,
    only=("submission is delivered twice",),
    acts=1,
    operator=("expedite",),
    alone=True,
)
"""An operator hurries the order, and its message comes again."""
SETTLES = WorldOf(faults=2, workflow=LATE_EFFECT_WINDOW, threshold=1, alone=True)
SETTLES_DONE = WorldOf(faults=2, only=("too fast", "rejects"), workflow=LATE_PAIR, alone=True)
"""A call hangs, the next attempt completes, and then the next step is refused."""
SETTLES_TWICE = WorldOf(
    faults=1,
    only=("request is delivered twice",),
    acts=1,
    operator=("cancel",),
    workflow=LATE_PAIR,
    alone=True,
)
"""One request completes the first step; the same one, once more, may do so until its time is up."""
RETIRED_WHILE_IT_RUNS = WorldOf(
    workflow=RETIRING,
    others=(("scheduler-2", replace(RETIRING, version=2)),),
    alone=True,
    answered=False,
)
NOT_BUILT = WorldOf(faults=1, workflow=BROKEN, alone=True)
GONE = WorldOf(workflow=ONE, others=(("scheduler-1", NEWER),), alone=True)
RETIRED = WorldOf(workflow=ONE, others=(("scheduler-2", NEWER),), alone=True)

ONE_SLOT = WorldOf(faults=1, alone=True, believes=True)
ONE_SLOT_PER_AGENT = WorldOf(
    faults=1, circuits=True, agents=("payment", "payment-backup"), alone=True, believes=True
)
ONE_SLOT_FOR_TWO = WorldOf(faults=1, workflow=PARALLEL, alone=True, believes=True)
ONE_SLOT_CANCELLED = WorldOf(acts=1, operator=("cancel",), workflow=PAIR, believes=True)

URGENT_FIRST = WorldOf(
    faults=2, only=("wake is lost",), workflow=ONE, beside=PAIR, alone=True, believes=True
)
RESTS_IN_ANOTHER = WorldOf(
    faults=1, only=("hears too late",), threshold=1, beside=RESTING, alone=True, believes=True
)
UNCLAIMABLE = WorldOf(faults=1, workflow=ONE, neighbours=True, alone=True, believes=True)
PROCESS_PER_JOB = WorldOf(
    faults=1, processes=PROCESS_PER_FUNCTION, alone=True, believes=True, workflow=PAIR
)
RECALLED = WorldOf(faults=1, alone=True, recalls=True)
RECALLED_APART = WorldOf(
    faults=1, processes=PROCESS_PER_FUNCTION, alone=True, recalls=True, workflow=PAIR
)
RECALLED_BESIDE = WorldOf(faults=1, recalls=True)
RECALLED_CANCELLED = WorldOf(acts=1, operator=("cancel",), workflow=PAIR, recalls=True)
NEVER_POLLS = WorldOf(faults=1, processes=ONE_NEVER_POLLS, alone=True, believes=True, workflow=ONE)
ARRIVES = WorldOf(
    faults=1, only=("request is lost",), workflow=ONE, arrives=ONE, alone=True, believes=True
)
"""The first order has to wait for another try when the second comes, or is there already."""
TWO_AT_ONCE = WorldOf(
    faults=2,
    only=("wake is lost", "request is lost"),
    workflow=ONE,
    beside=ONE,
    either_way=True,
    alone=True,
)
"""Both may be claimed, and be overdue, at the same time."""
ONE_INSTANCE_BREAKS = WorldOf(
    faults=3,
    only=("circuit of agent-2", "which is broken"),
    broken=("agent-2",),
    workflow=PAIR,
    alone=True,
)
"""The other instance is at work all the time."""
ELSEWHERE = WorldOf(
    faults=2,
    only=("request is lost", "request is delivered twice", "circuit of payment opens"),
    circuits=True,
    workflow=ONE,
    agents=("payment", "payment-backup"),
    one_provider=False,
    alone=True,
)
"""What may have been done waits for its own agent, though another one has room."""
STARTS_BESIDE = WorldOf(
    faults=1,
    only=("circuit of payment opens",),
    circuits=True,
    workflow=PARALLEL,
    threshold=1,
    alone=True,
    answered=False,
)
"""A step that was not tried begins while another runs."""
KILLED = WorldOf(faults=1, answered=False, busy=True, alone=True, workflow=ONE)
"""What each call kills is heard of at the latest at the second attempt, and still ends."""
REFUSED_FOR_GOOD = WorldOf(
    faults=2,
    only=("rejects", "hears too late", "request is delivered twice"),
    acts=2,
    operator=("resubmit", "cancel"),
    threshold=1,
    workflow=EXTERNAL_EVENT,
    remembers=True,
    alone=True,
)
"""A refusal is remembered: what is resubmitted then begins a new round, and what is in doubt does not."""
FORGOTTEN = WorldOf(
    faults=1,
    only=("too late", "too fast"),
    acts=2,
    operator=("resubmit", "retry-with-new-key", "skip", "cancel"),
    threshold=1,
    workflow=EXTERNAL_EVENT,
    forgets=True,
    alone=True,
)
"""What is in doubt is resubmitted while its key is known; later an operator has to find out."""
FORGOTTEN_LATER = WorldOf(
    acts=1, operator=("cancel",), workflow=BEGINS_LATER, forgets=True, alone=True
)
"""Of the first step nothing is kept, and its key is forgotten when the order is cancelled."""
RESTORED = WorldOf(workflow=PAIR, acts=1, operator=("restore",), alone=True)
"""The store is lost, and the order restored as it was at any moment before."""
RESTORED_LATER = replace(FORGOTTEN_LATER, operator=("restore",))
"""The service has forgotten the key when that happens."""
RESTORED_ELSEWHERE = replace(
    RESTORED,
    workflow=ONE,
    agents=("payment", "payment-backup"),
    one_provider=False,
    circuits=True,
    faults=1,
    only=("the circuit of payment opens",),
)
"""Nobody knows which of two providers was asked since."""
RESTORED_CANCELLED = replace(RESTORED, acts=2, operator=("restore", "cancel"))
TURNED_AWAY = WorldOf(faults=1, only=("gateway",), threshold=1, workflow=PARALLEL, gateway=True)
"""A gateway turns one of two requests away, while the service may not answer the other."""
TAKEN_OUT = WorldOf(
    faults=1,
    only=("request is lost",),
    acts=1,
    operator=("cancel",),
    workflow=PAIR,
    agents=("payment", "payment-backup"),
    one_provider=False,
    takes_out="payment",
    alone=True,
)
"""A new version of the app, which knows one of two agents, takes over at any moment."""
ACCEPTED = WorldOf(
    faults=1,
    only=("is lost", "too late", "request is delivered twice", "crashes before: send"),
    acts=1,
    operator=("cancel",),
    threshold=1,
    workflow=ONE,
    accepts=True,
    alone=True,
)
"""The service does things later, and may be asked again, or for the undo, meanwhile."""
STRIPE_LIKE = WorldOf(
    faults=1,
    acts=1,
    operator=("resubmit", "retry-with-new-key"),
    threshold=1,
    workflow=EXTERNAL_EVENT,
    remembers=True,
    forgets=True,
    alone=True,
)
"""A payment service: it repeats a refusal for its key for a day, and then forgets the key."""
CARRIER_LIKE = replace(STRIPE_LIKE, remembers=False, accepts=True)
"""A carrier: it accepts a call, does it later, and forgets keys."""
CALLED_BACK = WorldOf(workflow=ONE, callbacks=True, alone=True)
"""The service answers early, late, again or never, or refuses over its link."""
CALLED_BACK_IN_TIME = replace(CALLED_BACK, accepts=True, threshold=1)
"""Its agent declares how long that may take, and asks again after it."""
POLLED_AGAIN = replace(CALLED_BACK_IN_TIME, workflow=NO_WAY_BACK)
"""The call that asks again may come after the refusal over the link of the first one."""
HANGS = WorldOf(threshold=1, workflow=ONE, hangs=True, alone=True)
"""The service hangs, for this order alone or for several: in the end each time-out counts."""
NOT_NEEDED = WorldOf(faults=1, threshold=1, workflow=LAST_NOT_NEEDED, alone=True)
JUDGED_ONCE = WorldOf(
    faults=1, workflow=LAST_NEEDED, others=(("scheduler-2", LAST_NOT_NEEDED),), alone=True
)
"""Whether the last step is needed depends on who is asked, so nobody may be asked again."""
LATER = WorldOf(faults=1, threshold=1, workflow=BEGINS_LATER, alone=True)
WITHOUT = WorldOf(
    faults=2, only=("rejects", "too late"), threshold=1, workflow=WITHOUT_ONE, alone=True
)
PIVOT = WorldOf(
    faults=1,
    only=("rejects", "too late", "is lost", "crashes"),
    acts=1,
    operator=ALL_ACTS,
    threshold=1,
    workflow=NO_WAY_BACK,
    alone=True,
)
ANSWERS = ("answer", "answer-otherwise", "refuse")
WAITS_ALONE = WorldOf(workflow=WAITS, alone=True)
ANSWERED = WorldOf(workflow=WAITS, outside=ANSWERS, alone=True)
"""Before it is asked for, at any moment until its time is up, at that moment, later, and twice."""
REFUSED_EARLY = WorldOf(workflow=WAITS_IF_NEEDED, outside=("answer", "refuse"), alone=True)
"""Also before it is known that the step is needed."""
REFUSED_UNNEEDED = WorldOf(workflow=WAITS_UNNEEDED, outside=("refuse",), alone=True)
REMINDED = WorldOf(faults=1, workflow=WAITS_BETWEEN, alone=True)
WITHDRAWN = WorldOf(
    faults=1,
    only=("rejects",),
    threshold=1,
    workflow=WAITS_BESIDE,
    outside=("answer",),
    alone=True,
)
"""The step beside it fails, so the order goes back, whatever is said then."""
ANSWERED_BETWEEN = replace(WITHDRAWN, workflow=WAITS_CHAIN, only=(), faults=0)
AWAITED_BESIDE = WorldOf(faults=1, only=("request is lost",), workflow=WAITS_AND_RUNS, alone=True)
"""A supervisor recovers the step beside an answer that is awaited."""
WAITS_FOR_TWO = WorldOf(workflow=WAIT_TWO, outside=("answer",), alone=True)
ANSWER_CANCELLED = WorldOf(
    acts=1, operator=("cancel",), workflow=WAITS_ONCE, outside=("answer",), alone=True
)
ANSWER_HELD = WorldOf(
    acts=2, operator=("hold", "release"), workflow=WAITS, outside=("answer",), alone=True
)
ANSWER_ERASED = replace(ANSWER_HELD, acts=1, operator=("erase",))
RESUBMITTED = WorldOf(
    faults=1,
    only=("rejects",),
    acts=1,
    operator=ALL_ACTS,
    threshold=1,
    workflow=WAITS_BESIDE_ERROR,
    outside=("answer",),
    alone=True,
)
"""What was withdrawn is asked for anew."""
REFUSED_FIRST = WorldOf(
    acts=1,
    operator=ALL_ACTS,
    threshold=1,
    workflow=WAITS_FIRST,
    outside=("answer", "refuse"),
    alone=True,
)
CANNOT_BE_JUDGED = WorldOf(acts=1, operator=ALL_ACTS, workflow=CANNOT_JUDGE, alone=True)
LATER_BESIDE = WorldOf(
    faults=1,
    only=("lost", "too late", "rejects"),
    threshold=1,
    workflow=BEGINS_BESIDE,
    alone=True,
)
WITHOUT_AND_A_REST = WorldOf(
    faults=2,
    only=("rejects", "hears too late"),
    threshold=1,
    workflow=WITHOUT_BESIDE_A_REST,
    alone=True,
)
PIVOT_BESIDE = WorldOf(
    faults=2,
    only=("rejects", "too late"),
    threshold=1,
    workflow=NO_WAY_BACK_BESIDE,
    alone=True,
)
FOR_A_TIME = WorldOf(
    acts=2, operator=("hold", "release", "cancel"), workflow=ONE, later=True, alone=True
)
FOR_A_TIME_ANSWERED = WorldOf(
    acts=1,
    operator=("resubmit",),
    threshold=1,
    workflow=WAITS_FIRST,
    outside=("answer", "refuse"),
    later=True,
    alone=True,
)
"""An answer, or a refusal that is resubmitted, comes before the time of the order."""
JUDGED_UPGRADED = WorldOf(
    faults=1,
    only=("lost", "away"),
    workflow=JUDGED_NEWER,
    others=(("scheduler-2", ONE),),
    alone=True,
)
"""An old host knows nothing of the steps that are judged."""
NOTIFIED = WorldOf(
    faults=1, only=("relay", "rejects"), threshold=1, workflow=PAIR, tells=True, alone=True
)

UNDONE_LATE = WorldOf(faults=1, workflow=LATE_UNDO)
"""At its deadline the order begins nothing more, and is undone."""
STARTS_LATE = replace(
    UNDONE_LATE,
    only=("wake is lost",),
    alone=True,
    workflow=replace(LATE_UNDO, name="starts-late", within=timedelta(seconds=1)),
)
"""The deadline passes before anybody claims the order."""
STOPPED_LATE = WorldOf(
    faults=1,
    only=("request is lost", "wake is lost"),
    acts=1,
    operator=ALL_ACTS,
    workflow=LATE_STOP,
    alone=True,
)
"""An operator lets it go on, without a deadline if that has passed."""
ALERTED_LATE = WorldOf(faults=1, workflow=LATE_ALERT, threshold=3, alone=True)
AWAITED_LATE = WorldOf(workflow=LATE_WAIT, outside=("answer", "refuse"), alone=True)
LATE_PAST_PIVOT = WorldOf(
    faults=2,
    only=("request is lost", "wake is lost", "hears too late"),
    workflow=LATE_PIVOT,
    alone=True,
)
HELD_LATE = WorldOf(acts=2, operator=("hold", "release"), workflow=LATE_WAIT, alone=True)
DATED_LATE = WorldOf(
    faults=1, only=("request is lost",), workflow=LATE_DATED, later=True, alone=True
)
"""The deadline counts from the time for which the order was placed."""

CIRCUITS = (
    WorldOf(faults=2, circuits=True, threshold=1, agents=("payment", "payment-backup"), alone=True),
    WorldOf(faults=2, threshold=1, workflow=RESTING),
)
"""In which agents cannot be asked, steps go to others, or rest."""

PARALLEL_CANCELLED = WorldOf(acts=1, operator=("cancel",), workflow=PARALLEL)
PLAIN_ENDED = WorldOf(
    faults=1, acts=1, operator=("skip", "cancel"), threshold=1, workflow=PLAIN, alone=True
)

ANYTHING = ("FLT-1", "FLT-2", "FLT-3", "FLT-4", "FLT-6", "FLT-7", "FLT-8")

UNATTENDED: Mapping[WorldOf, tuple[str, ...]] = {
    UNDISTURBED: (),
    GIVEN_UP: ANYTHING,
    TWO_STEPS: ANYTHING,
    TRIED_AGAIN: (*ANYTHING, "OPR-2"),
    CIRCUIT: ANYTHING,
    RESTED: (*ANYTHING, "OPR-2"),
    UNANSWERED: ("FLT-5", "FLT-7", "FLT-11"),
    CLOCKS_DIFFER: (*ANYTHING, "FLT-9"),
    CLOCKS_DIFFER_BACK: (*ANYTHING, "FLT-9"),
    UPGRADED: (*ANYTHING, "FLT-12"),
    PROVIDER_ADDED: (),
    RETIRED: ("FLT-12",),
    GONE: (),
    RETIRED_WHILE_IT_RUNS: (),
    NOT_BUILT: ("OPR-2",),
    ONE_SLOT: ANYTHING,
    ONE_SLOT_PER_AGENT: ANYTHING,
    RECALLED: ANYTHING,
    URGENT_FIRST: (),
    UNCLAIMABLE: ANYTHING,
    ARRIVES: ("SCH-11",),
    TWO_AT_ONCE: ("SCH-1",),
    ONE_INSTANCE_BREAKS: ("AGT-8",),
    ELSEWHERE: ("AGT-3",),
    KILLED: ("SUP-3",),
    NOT_BEGUN: (),
    SILENT_RESTS: (),
    NOT_NEEDED: ("SCH-14",),
    LATER: ("SCH-15", "OPR-2"),
    WITHOUT: ("SCH-13",),
    WAITS_ALONE: ("ANS-2",),
    ANSWERED: ("ANS-3",),
    REFUSED_EARLY: ("ANS-3",),
    REFUSED_UNNEEDED: (),
    AWAITED_BESIDE: (),
    CALLED_BACK: ("ANS-8",),
    LATER_BESIDE: (),
    PIVOT_BESIDE: (),
    HANGS: ("SCH-16",),
    replace(UNDONE_LATE, alone=True): ("SCH-17", "OPR-2"),
    STARTS_LATE: (),
    ALERTED_LATE: ("ALR-6", "OPR-2"),
}
"""The worlds of `make test` in which an operator does little or nothing, with the statements that each is about."""

OPERATED: Mapping[WorldOf, tuple[str, ...]] = {
    CANCELLED: (),
    HURRIED: ("OPR-8",),
    HURRIED_AGAIN: ("SUB-3",),
    SKIPPED: ANYTHING,
    HELD: ("OPR-7",),
    replace(UNDO_FAILS, only=("rejects", "is away")): ("FLT-10", "FLT-11", "OPR-2"),
    TAKEN_BACK: (),
    replace(PIVOT, only=("rejects", "too late")): ("UND-6", "OPR-2"),
    ANSWER_CANCELLED: ("ANS-4",),
    CANNOT_BE_JUDGED: (),
    FOR_A_TIME: ("SUB-9",),
}
"""Those in which what an operator does, and when, is the point."""

LARGE: Mapping[WorldOf, tuple[str, ...]] = {
    UNDONE_LATE: ("SCH-17", "OPR-2"),
    SILENT: ("SUP-9", "SUP-10"),
    AWAITED_LATE: (),
    DATED_LATE: (),
    STOPPED_LATE: ("OPR-2",),
    THREE_STEPS: (*ANYTHING, "OPR-2"),
    REROUTED: ANYTHING,
    REFUSED_BESIDE: ("OPR-2",),
    PROCESS_PER_JOB: ANYTHING,
    RECALLED_APART: ANYTHING,
    RECALLED_BESIDE: ANYTHING,
    RECALLED_CANCELLED: ("OPR-2",),
    RESTS_IN_ANOTHER: (),
    REMINDED: (),
    RESTS_CANCELLED: (),
    HELD_BACK: (),
    SILENT_OPTIONAL: (),
    SILENT_CANCELLED: (),
    SETTLES_DONE: ("UND-2",),
    STARTS_BESIDE: ("SCH-10",),
    JUDGED_ONCE: (),
    ONE_SLOT_FOR_TWO: (),
    RESTS_BESIDE: ("OPR-2",),
    UNDO_FAILS: (*ANYTHING, "FLT-10", "FLT-11", "OPR-2"),
    FORGOTTEN: ("AGT-12",),
    FORGOTTEN_LATER: (),
    TAKEN_OUT: (),
    TURNED_AWAY: (),
    RESTORED: ("OPR-11",),
    RESTORED_LATER: (),
    RESTORED_ELSEWHERE: (),
    RESTORED_CANCELLED: (),
    replace(RESTORED, workflow=ONE, faults=1): (),
    replace(RESTORED, workflow=NO_WAY_BACK, threshold=1, faults=1, only=("rejects", "is lost")): (),
    replace(RESTORED, workflow=WAITS_ONCE, outside=("answer", "refuse")): (),
    replace(RESTORED, workflow=ONE, accepts=True): (),
    SETTLES: ("UND-2",),
    SETTLES_TWICE: (),
    ONE_SLOT_CANCELLED: (),
    NEVER_POLLS: ANYTHING,
    NOTIFIED: (),
    PARALLEL_CANCELLED: ("OPR-2",),
    PLAIN_ENDED: (*ANYTHING, "FLT-11", "OPR-2"),
    REFUSED_FOR_GOOD: ("OPR-3",),
    replace(REFUSED_FOR_GOOD, only=(), faults=1): (*ANYTHING, "OPR-2"),
    replace(WITHOUT, only=(*WITHOUT.only, "too fast")): ("SCH-13",),
    replace(PIVOT, only=()): ("UND-6", "OPR-2"),
    ANSWER_HELD: ("OPR-7",),
    ANSWER_ERASED: ("ANS-5",),
    FOR_A_TIME_ANSWERED: (),
    replace(ANSWER_CANCELLED, workflow=WAITS_BESIDE): (),
    replace(WAITS_FOR_TWO, outside=("answer", "refuse")): (),
    replace(REMINDED, outside=("answer",), only=("lost", "too late")): (),
    WorldOf(faults=1, threshold=1, workflow=WAIT_AFTER_BOTH, alone=True): (),
    WITHOUT_AND_A_REST: (),
    replace(CANNOT_BE_JUDGED, faults=1, threshold=1): ("OPR-2",),
    replace(PIVOT_BESIDE, acts=1, operator=ALL_ACTS): (),
    replace(PIVOT_BESIDE, acts=2, operator=("settle", "cancel", "resubmit")): ("OPR-12",),
    replace(JUDGED_UPGRADED, only=()): (),
    replace(CALLED_BACK, faults=1, only=("too late", "delivered twice", "is lost")): ("ANS-8",),
    replace(CALLED_BACK, threshold=1, acts=1, operator=("cancel",)): (),
    replace(CALLED_BACK, threshold=1, workflow=NO_WAY_BACK_BESIDE): (),
    replace(
        CALLED_BACK, threshold=1, workflow=EXTERNAL_EVENT, remembers=True, acts=1, operator=ALL_ACTS
    ): (),
    replace(
        CALLED_BACK,
        forgets=True,
        workflow=PLAIN,
        acts=1,
        operator=("resubmit", "retry-with-new-key"),
    ): (),
    CALLED_BACK_IN_TIME: ("AGT-11",),
    replace(CALLED_BACK_IN_TIME, workflow=PAIR): (),
    replace(CALLED_BACK_IN_TIME, acts=1, operator=("cancel",)): (),
    POLLED_AGAIN: (),
    replace(HANGS, acts=1, operator=("cancel",)): (),
    LATE_PAST_PIVOT: (),
    HELD_LATE: (),
    replace(UNDONE_LATE, alone=True, clocks=(("supervisor-1", HALF), ("scheduler-1", -HALF))): (
        "SCH-17",
    ),
    replace(UNDONE_LATE, alone=True, clocks=(("supervisor-1", -HALF), ("scheduler-1", HALF))): (
        "SCH-17",
    ),
    replace(UNDONE_LATE, faults=0, acts=2, operator=("hold", "release", "cancel")): (),
    replace(AWAITED_LATE, faults=1, only=("lost", "too late", "rejects")): (),
    replace(RESTORED, workflow=LATE_UNDO): (),
}
"""The worlds of `make soak`."""

LARGEST: Mapping[WorldOf, tuple[str, ...]] = {
    replace(ACCEPTED, only=()): (*ANYTHING, "AGT-11", "OPR-2"),
    replace(ANSWERED, faults=1): ("ANS-3",),
    REFUSED_FIRST: ("ANS-3",),
    replace(HELD, only=(), workflow=PAIR, threshold=1): ("OPR-7",),
    replace(HELD_BACK, acts=3, operator=("hold", "cancel", "release"), answered=False): (),
    RESUBMITTED: ("SCH-12",),
    replace(WITHDRAWN, only=()): ("ANS-4",),
    replace(CALLED_BACK, threshold=1, workflow=WAITS_BESIDE, outside=("answer",)): (),
    replace(AWAITED_BESIDE, only=(), outside=("answer",)): (),
    replace(STOPPED_LATE, only=()): (),
}
"""Those that take longest, a quarter of a minute and more by themselves: for the nightly soak."""

HAPPENS: Mapping[str, tuple[str, ...]] = {
    "SUB-3": ("the submission is delivered twice",),
    "OPR-12": ("commits “settled”", "commits “step-settled”"),
    "OPR-7": (
        "operator begins to hold",
        "operator begins to release",
        "commits “held”",
        "commits “released”",
    ),
    "OPR-8": ("operator begins to expedite", "commits “expedited”", "commits “recovered”"),
    "FLT-1": (
        "the service stumbles",
        "the service rejects the order",
        "the service does its work, but its answer is lost",
        "the service has not answered in time",
        "the service has not answered in time, though it did its work",
    ),
    "FLT-2": (
        "agent-1 crashes before: call",
        "agent-1 crashes before: send",
        "agent-1: sends the reply, and crashes before its message is settled",
    ),
    "FLT-3": (
        "submission: sends the wake: the bus is away",
        "scheduler-1 crashes before: commit",
        "scheduler-1 crashes before: send",
        "the wake is lost",
    ),
    "FLT-4": ("too fast for what is going on", "begins to sweep"),
    "FLT-5": (
        "supervisor-1 crashes before: commit",
        "supervisor-1: commits “failed”: another writer was first",
        "supervisor-2: commits “failed”: another writer was first",
    ),
    "FLT-6": (
        "the reply is lost",
        "the reply is delivered twice",
        "is held up, and delivered after its time",
    ),
    "FLT-7": ("the store is away", "the answer is lost", "no answer, it may arrive later"),
    "FLT-8": (
        "sends the request: the bus is away",
        "commits “recovered”",
        "sends the request, and crashes before its message is settled",
    ),
    "FLT-9": ("supervisor-1: commits “recovered”", "which the agent hears too late"),
    "FLT-10": (
        "commits “undo-incomplete”",
        "commits “resubmitted”",
        "commits “undone”",
        "publishes the alert",
    ),
    "FLT-11": ("publishes the alert: Event Grid is away",),
    "FLT-12": (
        "scheduler-2 takes the wake",
        "scheduler-2 takes the reply",
        "scheduler-1: commits “processed”",
    ),
    "SUP-9": ("commits “failed”", "commits “processed”", "is started again"),
    "SUP-10": ("records that payment is silent", "is started again"),
    "SCH-1": (
        "scheduler-1: goes from the last to the first",
        "supervisor-1: goes from the last to the first",
    ),
    "SCH-10": ("commits “not-attempted”", "commits “step-started”"),
    "SCH-11": ("another order is submitted", "the request is lost"),
    "AGT-3": (
        "the request is lost",
        "the circuit of payment opens",
        "agent-3: the service does its work",
    ),
    "OPR-3": (
        "the service repeats its refusal",
        "commits “resubmitted”",
        "commits “undone”",
        "commits “processed”",
    ),
    "AGT-12": (
        "commits “retried-with-new-key”",
        "commits “skipped”",
        "commits “resubmitted”",
        "commits “undo-incomplete”",
        "commits “undone”",
    ),
    "AGT-11": (
        "the service accepts it, to do it later",
        "the service accepts it, and does it",
        "commits “undone”",
        "commits “processed”",
    ),
    "SCH-13": ("commits “processed”", "commits “undone”", "the service rejects the order"),
    "SCH-14": ("commits “processed”", "commits “undone”"),
    "SCH-15": ("commits “waits”", "time passes to 09:15:00", "commits “processed”"),
    "ANS-2": ("commits “recovered”", "commits “undo-requested”", "commits “undone”"),
    "ANS-3": (
        "outside begins to answer: w",
        "outside: commits “step-answered”",
        "commits “processed”",
    ),
    "ANS-4": ("outside begins to answer: w", "commits “undone”", "commits “processed”"),
    "ANS-8": (
        "answers over its link",
        "refuses over its link",
        "service: commits “step-answered”",
        "commits “recovered”",
    ),
    "ANS-5": ("commits “erased”", "commits “step-answered”"),
    "SCH-12": ("commits “failed”", "commits “resubmitted”", "commits “undone”"),
    "SCH-16": (
        "reports that 2 orders have timed out",
        "reports that 3 orders have timed out",
        "commits “recovered”",
        "commits “undo-incomplete”",
    ),
    "SCH-17": (
        "commits “due-soon”",
        "commits “undo-requested”",
        "commits “undone”",
    ),
    "ALR-6": ("commits “due-soon”", "commits “deadline-passed”", "publishes the alert"),
    "SUB-9": ("time passes to 09:15:00", "commits “held”", "commits “cancelled”"),
    "UND-6": ("commits “undone”", "commits “failed”", "commits “cancelled”"),
    "OPR-11": ("the store is lost, and restored from the copy", "commits “processed”"),
    "AGT-8": ("agent-2, which is broken, takes the request", "commits “requeued”"),
    "SUP-3": (
        "the call kills the process",
        "says what it begins: the table is away",
        "commits “undo-incomplete”",
    ),
    "UND-2": (
        "the service has not answered in time",
        "the call of a takes effect late",
        "commits “undone”",
    ),
}
"""What has to happen somewhere in a world that is said to be about a documented failure, or about a statement."""

TESTED = (*UNATTENDED, *OPERATED, *LARGE, *LARGEST)

EXPLORED = (
    *TESTED,
    *CIRCUITS,
    replace(URGENT_FIRST, faults=1, only=()),
    replace(RESTS_IN_ANOTHER, processes=PROCESS_PER_FUNCTION),
    replace(RECALLED_APART, faults=2),
    replace(RECALLED_BESIDE, workflow=PAIR),
    replace(NOTIFIED, faults=2),
    replace(NOTIFIED, either_way=True),
    replace(ELSEWHERE, only=()),
    replace(
        STARTS_BESIDE, faults=2, only=("circuit of payment opens", "reply is lost"), answered=True
    ),
    replace(ARRIVES, only=()),
    replace(TWO_AT_ONCE, faults=1, only=()),
    replace(NEVER_POLLS, beside=ONE, only=("is lost",)),
    replace(SETTLES_TWICE, only=()),
    replace(SETTLES_DONE, only=(), threshold=1),
    WorldOf(faults=1, believes=True),
    WorldOf(faults=2, workflow=PAIR, alone=True, believes=True),
    WorldOf(faults=2, threshold=1),
    WorldOf(faults=2, only=("too late", "rejects"), workflow=BESIDE, threshold=1, alone=True),
    WorldOf(faults=2, workflow=BROKEN, alone=True),
    WorldOf(faults=2, threshold=1, workflow=ONE),
    WorldOf(faults=1, acts=1, operator=("cancel",), workflow=PLAIN, alone=True),
    WorldOf(faults=1, workflow=ONE, others=(("scheduler-2", NEWER),), alone=True),
    WorldOf(faults=2),
    WorldOf(faults=1, threshold=1, workflow=PARALLEL),
    WorldOf(faults=1, threshold=2, workflow=IN_SEQUENCE),
    WorldOf(faults=1, threshold=1, acts=1, workflow=PARALLEL_ERROR),
    WorldOf(faults=2, threshold=1, workflow=PAIR, alone=True),
    WorldOf(faults=2, acts=1, threshold=1, alone=True),
    WorldOf(faults=1, acts=2, operator=ALL_ACTS, threshold=1, alone=True),
    replace(PARALLEL_CANCELLED, faults=1, only=("is lost", "rejects"), alone=True),
    replace(PARALLEL_CANCELLED, faults=1, only=("crashes",), alone=True),
    WorldOf(faults=2, acts=2, operator=("skip",), threshold=1, workflow=PAIR, alone=True),
)
