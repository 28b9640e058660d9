"""What is explored: the app of a business, who runs it, and what its services are like."""

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
"""The wish of a customer to cancel the order, by the endpoint of its workflow."""

PAUSE_AGENT = "pause-agent"
"""What operators do who pause an agent."""

ERASE = "erase"
"""The wish of operators to forget who the customer is."""

RESTORE = "restore"
"""What operators do when the store is lost: they restore it from an earlier copy."""

SAYS = (ANSWER, OTHERWISE, REFUSE) = ("answer", "answer-otherwise", "refuse")
"""What somebody outside says to a step: an answer, another one, or that there is none."""

CALLS_BACK = (CALL_BACK, CALL_BACK_REFUSAL) = ("call-back", "call-back-refusal")
"""What a service says over the link of a call: its answer, or that it refuses."""

SCHEDULERS = ("wake", "reply", "poll")
"""What schedulers do."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Deployment:
    """One deployment of a business, which stays as it is; what changes is a `World`."""

    business: Application
    settings: Settings
    """Those of each instance, but for its name."""
    slots: Mapping[str, tuple[str, ...]]
    """By kind of job who may do it; each does one thing at a time, side by side with the others."""
    requests: Mapping[str, str]
    """By kind of job the agent that it asks."""
    alike: Sequence[tuple[str, str]] = ()
    """Pairs of instances that differ in nothing but their names."""
    known: Mapping[str, Workflows] = field(default_factory=dict)
    """By instance of another version of the app what it knows instead (FLT-12)."""
    lacks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By instance of the version before the agents that it does not have yet (FLT-12)."""
    clocks: Mapping[str, timedelta] = field(default_factory=dict)
    """By instance how much its clock is ahead of the true time (FLT-9)."""
    answers: Mapping[str, Answer] = field(default_factory=dict)
    """By step what its service answers, if that is not just a text for each field that is kept."""
    callbacks: frozenset[str] = frozenset()
    """The agents whose services may answer 202 without a time, and then over the link (ANS-8)."""
    answered: bool = True
    """Whether agents live to tell how a call went; if not, each call kills its process."""
    has_just_spoken: bool = False
    """Whether agents spoke a moment ago, so that they do not say at once what they begin."""
    most_attempts: int = 1_000
    """How often a step may be tried."""
    believing: bool = False
    """Whether what a scheduler's process believes outlives an event, instead of beginning anew."""
    remembering: bool = False
    """Whether the orders that a process has written outlive an event in its memory."""
    behind_gateway: bool = False
    """Whether a gateway before the services may turn calls away, and agents report each fault."""
    hangs: bool = False
    """Whether no service answers in time, and agents report each time-out, alone or with others."""
    either_way: bool = False
    """Whether what is done side by side is done from the last to the first as well."""
    following: "Deployment | None" = None
    """The next version of the app, which may take the place of this one at any moment."""
    gone: Mapping[str, str] = field(default_factory=dict)
    """By their names the providers of agents that the version before had."""
    records_silence: bool = False
    """Whether supervisors record silent agents: where every agent takes requests, none follows."""

    @property
    def workflows(self) -> Workflows:
        """What the app knows."""
        return self.business.workflows

    @cached_property
    def agents(self) -> Mapping[str, AgentDefinition]:
        """The agents by their names."""
        return {agent.name: agent for agent in self.business.agents}

    @cached_property
    def called_back(self) -> bool:
        """Whether any service may answer over the link of its call."""
        return any(map(self.calls_back, self.business.agents))

    @cached_property
    def offers(self) -> Mapping[str, Sequence[str]]:
        """By capability the agents that offer it."""
        return offers_of(self.business.agents)

    @cached_property
    def providers(self) -> Mapping[str, str]:
        """By agent the provider that knows its idempotency keys, also of agents that are gone."""
        here = {agent.name: agent.provider or agent.name for agent in self.business.agents}
        return {**self.gone, **here}

    @cached_property
    def has_strangers(self) -> bool:
        """Whether agents of one capability lead to several providers."""
        several = any(len(self._providers_of(names)) > 1 for names in self.offers.values())
        return several or bool(self.gone)

    def _providers_of(self, agents: Iterable[str]) -> set[str]:
        return {self.providers[agent] for agent in agents}

    @cached_property
    def queues(self) -> Mapping[str, str]:
        """By kind of job the queue of its messages; where there are several, one of them."""
        requested = {kind: requests_queue(agent) for kind, agent in self.requests.items()}
        replies = [responses_queue(agent) for agent in self.agents]
        fixed = {"submission": "order-submissions", "wake": SCHEDULER_REQUESTS}
        return fixed | requested | {"reply": replies[0]}

    @cached_property
    def kinds(self) -> Mapping[str, str]:
        """By queue the kind of job that its messages start."""
        replies = {responses_queue(agent): "reply" for agent in self.agents}
        return {queue: kind for kind, queue in self.queues.items()} | replies

    @cached_property
    def instances(self) -> Mapping[str, tuple[str, ...]]:
        """The instances of each agent."""
        return {agent: self.slots[kind] for kind, agent in self.requests.items()}

    @cached_property
    def schedulers(self) -> int:
        """How many schedulers look for themselves."""
        return len({slot for kind in SCHEDULERS for slot in self.slots[kind]})

    @cached_property
    def tolerance(self) -> timedelta:
        """By how much clocks may differ."""
        return timedelta(seconds=self.settings.clock_tolerance_seconds)

    @cached_property
    def version_overlap(self) -> timedelta:
        """How long what this version does not know is left to a newer one (FLT-12)."""
        return timedelta(seconds=self.settings.mixed_version_seconds)

    @cached_property
    def max_silence(self) -> timedelta:
        """How long orders wait for silent agents (SUP-9)."""
        return timedelta(seconds=self.settings.max_silence_seconds)

    @cached_property
    def margin(self) -> timedelta:
        """What agents keep free before the complete-by time."""
        return timedelta(seconds=self.settings.reply_margin_seconds)

    def calls_back(self, agent: AgentDefinition) -> bool:
        """Whether the agent's service may answer over the link of its call."""
        return agent.calls_back or agent.name in self.callbacks

    def endpoint_of(self, workflow: str) -> EndpointDefinition | None:
        """Return the endpoint of a workflow; None if it has none."""
        return next(
            (endpoint for endpoint in self.business.endpoints if endpoint.workflow == workflow),
            None,
        )

    def agent_of_kind(self, kind: str) -> AgentDefinition:
        """Return the agent that jobs of this kind ask."""
        return self.agents[self.requests[kind]]

    def answer_of(self, step: str) -> Answer:
        """Return the answer to this step: of its service, or of somebody outside."""
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
        """Return what the first agent that can do the step says of the answer."""
        able = (agent for agent in self.agents.values() if agent.offers == definition.capability)
        declared = next((agent.answers.get(definition.operation, {}) for agent in able), {})
        return {**filled(declared, "r")}

    def clock_of(self, slot: str, now: datetime) -> datetime:
        """Return what the clock of this instance shows."""
        return now + self.clocks.get(slot, timedelta())

    def known_to(self, slot: str) -> Workflows:
        """Return the workflows that this instance knows."""
        return self.known.get(slot, self.workflows)

    def has_agent(self, slot: str, name: str) -> bool:
        """Whether the app of this instance has the agent, and listens to its queues."""
        return name not in self.lacks.get(slot, ())

    def business_of(self, slot: str) -> Application:
        """Return the business as this instance knows it."""
        if slot not in self._businesses:
            agents = [agent for agent in self.business.agents if self.has_agent(slot, agent.name)]
            workflows = self.known_to(slot)
            self._businesses[slot] = replace(self.business, workflows=workflows, agents=agents)
        return self._businesses[slot]

    def settings_of(self, slot: str) -> Settings:
        """Return what this instance is set to do."""
        if slot not in self._settings:
            self._settings[slot] = self.settings.model_copy(update={"instance_id": slot})
        return self._settings[slot]

    @cached_property
    def _businesses(self) -> dict[str, Application]:
        return {}

    @cached_property
    def _settings(self) -> dict[str, Settings]:
        return {}
