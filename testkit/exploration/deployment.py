"""The subject of an exploration: the app of a business, its processes and its services."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property

from engine.azure.settings import Settings
from engine.declarations.business import AgentDefinition, Application, EndpointDefinition, offers_of
from engine.declarations.workflow import StepDefinition, Workflows
from engine.domain.messages import SCHEDULER_REQUESTS, requests_queue, responses_queue
from samples.simulator.rules import filled

Answer = Mapping[str, object]

LEASE = timedelta(seconds=4)
"""How long the supervisors' lease lasts."""

CUSTOMER_CANCEL = "customer-cancel"
"""The act of a customer who cancels the order at the endpoint of its workflow."""

PAUSE_AGENT = "pause-agent"
"""The act of operators who pause an agent."""

ERASE = "erase"
"""The act of operators who erase the customer's data."""

RESTORE = "restore"
"""The act of operators who restore a lost store from an earlier copy."""

SAYS = (ANSWER, OTHERWISE, REFUSE) = ("answer", "answer-otherwise", "refuse")
"""How a person answers a step: with an answer, with another answer, or with a refusal."""

CALLS_BACK = (CALL_BACK, CALL_BACK_REFUSAL) = ("call-back", "call-back-refusal")
"""How a service answers at a callback URL: with its answer or with a refusal."""

SCHEDULERS = ("wake", "reply", "poll")
"""The kinds of jobs of schedulers."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Deployment:
    """A deployment of a business, which never changes. Everything that changes is in `World`."""

    business: Application
    settings: Settings
    """The settings of each instance, except its name."""
    slots: Mapping[str, tuple[str, ...]]
    """The slots that may do a job, by kind of job.

    Each slot does one thing at a time, and all slots work concurrently.
    """
    requests: Mapping[str, str]
    """The agent of each kind of job that is a request."""
    alike: Sequence[tuple[str, str]] = ()
    """Pairs of instances that differ only in their names."""
    known: Mapping[str, Workflows] = field(default_factory=dict)
    """The workflows known to instances of another version of the app (FLT-12)."""
    lacks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The agents that instances of the previous version do not have yet (FLT-12)."""
    clocks: Mapping[str, timedelta] = field(default_factory=dict)
    """How far the clock of an instance is ahead of the true time (FLT-9)."""
    answers: Mapping[str, Answer] = field(default_factory=dict)
    """The answer of the service to each step. The default is a text for each recorded field."""
    callbacks: frozenset[str] = frozenset()
    """The agents whose services may answer 202 without a time, and then at the callback URL
    (ANS-8)."""
    answered: bool = True
    """Whether agents survive their calls. If not, each call kills its process."""
    has_just_spoken: bool = False
    """Whether agents have reported a moment ago, so that they do not report a new request
    immediately."""
    most_attempts: int = 1_000
    """How many attempts a step may have."""
    believing: bool = False
    """Whether the belief of a scheduler's process outlives an event, instead of starting empty."""
    remembering: bool = False
    """Whether a process remembers the orders that it has written beyond an event."""
    behind_gateway: bool = False
    """Whether a gateway before the services may reject calls, and agents report each fault."""
    hangs: bool = False
    """Whether no service answers in time, and agents report each time-out, alone or with others."""
    either_way: bool = False
    """Whether concurrent work is done in both orders, from the first to the last and in reverse."""
    following: "Deployment | None" = None
    """The next version of the app, which may replace this one at any moment."""
    gone: Mapping[str, str] = field(default_factory=dict)
    """The providers of agents that only the previous version had, by agent."""
    records_silence: bool = False
    """Whether supervisors record silent agents. If all agents take requests, records change
    nothing."""

    @property
    def workflows(self) -> Workflows:
        return self.business.workflows

    @cached_property
    def agents(self) -> Mapping[str, AgentDefinition]:
        return {agent.name: agent for agent in self.business.agents}

    @cached_property
    def called_back(self) -> bool:
        """Whether any service may answer at a callback URL."""
        return any(map(self.calls_back, self.business.agents))

    @cached_property
    def offers(self) -> Mapping[str, Sequence[str]]:
        """The agents that offer each capability."""
        return offers_of(self.business.agents)

    @cached_property
    def providers(self) -> Mapping[str, str]:
        """The provider that knows each agent's idempotency keys, including former agents."""
        here = {agent.name: agent.provider or agent.name for agent in self.business.agents}
        return {**self.gone, **here}

    @cached_property
    def has_strangers(self) -> bool:
        """Whether agents with the same capability lead to several providers."""
        several = any(len(self._providers_of(names)) > 1 for names in self.offers.values())
        return several or bool(self.gone)

    def _providers_of(self, agents: Iterable[str]) -> set[str]:
        return {self.providers[agent] for agent in agents}

    @cached_property
    def queues(self) -> Mapping[str, str]:
        """The queue of the messages for each kind of job. If there are several, one of them."""
        requested = {kind: requests_queue(agent) for kind, agent in self.requests.items()}
        replies = [responses_queue(agent) for agent in self.agents]
        fixed = {"submission": "order-submissions", "wake": SCHEDULER_REQUESTS}
        return fixed | requested | {"reply": replies[0]}

    @cached_property
    def kinds(self) -> Mapping[str, str]:
        """The kind of job that the messages of each queue start."""
        replies = {responses_queue(agent): "reply" for agent in self.agents}
        return {queue: kind for kind, queue in self.queues.items()} | replies

    @cached_property
    def instances(self) -> Mapping[str, tuple[str, ...]]:
        return {agent: self.slots[kind] for kind, agent in self.requests.items()}

    @cached_property
    def schedulers(self) -> int:
        """How many schedulers refresh independently."""
        return len({slot for kind in SCHEDULERS for slot in self.slots[kind]})

    @cached_property
    def tolerance(self) -> timedelta:
        """The largest difference between clocks."""
        return timedelta(seconds=self.settings.clock_tolerance_seconds)

    @cached_property
    def version_overlap(self) -> timedelta:
        """How long unknown names are left to a newer version (FLT-12)."""
        return timedelta(seconds=self.settings.mixed_version_seconds)

    @cached_property
    def max_silence(self) -> timedelta:
        """How long orders wait for silent agents (SUP-9)."""
        return timedelta(seconds=self.settings.max_silence_seconds)

    @cached_property
    def margin(self) -> timedelta:
        """The time that agents keep free before the complete-by time."""
        return timedelta(seconds=self.settings.reply_margin_seconds)

    def calls_back(self, agent: AgentDefinition) -> bool:
        """Whether the agent's service may answer at a callback URL."""
        return agent.calls_back or agent.name in self.callbacks

    def endpoint_of(self, workflow: str) -> EndpointDefinition | None:
        """Return the endpoint of a workflow, or None."""
        return next(
            (endpoint for endpoint in self.business.endpoints if endpoint.workflow == workflow),
            None,
        )

    def agent_of_kind(self, kind: str) -> AgentDefinition:
        """Return the agent to which jobs of this kind are requests."""
        return self.agents[self.requests[kind]]

    def answer_of(self, step: str) -> Answer:
        """Return the answer of the service, or of the person outside, to this step."""
        if step in self.answers:
            return self.answers[step]
        found = [workflow.definition(step) for workflow in self.workflows.all]
        definitions = [definition for definition in found if definition is not None]
        is_external = any(definition.is_external for definition in definitions)
        answer: dict[str, object] = {} if is_external else {"reference": "r"}
        for definition in definitions:
            answer |= {**dict.fromkeys(definition.result_fields, "r"), **self._example(definition)}
        return answer

    def _example(self, definition: StepDefinition) -> Answer:
        """Return the example answer that the first agent for the step declares."""
        able = (agent for agent in self.agents.values() if agent.offers == definition.capability)
        declared = next((agent.answers.get(definition.operation, {}) for agent in able), {})
        return {**filled(declared, "r")}

    def clock_of(self, slot: str, now: datetime) -> datetime:
        """Return the time on the clock of this instance."""
        return now + self.clocks.get(slot, timedelta())

    def known_to(self, slot: str) -> Workflows:
        """Return the workflows that this instance knows."""
        return self.known.get(slot, self.workflows)

    def has_agent(self, slot: str, name: str) -> bool:
        """Whether the app of this instance has the agent, and listens to its queues."""
        return name not in self.lacks.get(slot, ())

    def business_of(self, slot: str) -> Application:
        """Return the business in the version of this instance."""
        if slot not in self._businesses:
            agents = [agent for agent in self.business.agents if self.has_agent(slot, agent.name)]
            workflows = self.known_to(slot)
            self._businesses[slot] = replace(self.business, workflows=workflows, agents=agents)
        return self._businesses[slot]

    def settings_of(self, slot: str) -> Settings:
        if slot not in self._settings:
            self._settings[slot] = self.settings.model_copy(update={"instance_id": slot})
        return self._settings[slot]

    @cached_property
    def _businesses(self) -> dict[str, Application]:
        return {}

    @cached_property
    def _settings(self) -> dict[str, Settings]:
        return {}
