"""Makes the stores, roles and public API of one process, as attributes of `Engine`."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from functools import cached_property
from itertools import chain

from agents.bulkhead import Bulkhead
from agents.circuit_breaker import CircuitBreaker
from agents.health import HealthReporter
from agents.service import AgentService
from engine.azure import Adapters
from engine.azure.clock import order_ids, order_time
from engine.azure.settings import EXPECTED, Settings, SettingsError
from engine.declarations.business import AgentDefinition, Application, offers_of
from engine.declarations.faults import Fault, FaultCode
from engine.declarations.workflow import StepDefaults
from engine.domain.keys import buckets
from engine.domain.messages import bus_queues
from engine.domain.work_index import WorkItemKind, checked_kinds
from engine.features.external_events.callback_urls import CallbackUrls
from engine.http.call_limits import CallLimits
from engine.http.external_events import CallbackService
from engine.http.public_api.service import CustomerService
from engine.runtime.external_events import ExternalEventInbox
from engine.runtime.unread import UnreadableMessageHandler
from engine.storage.agent_health import AgentHealthLog
from engine.storage.clock_guard import ClockGuard
from engine.storage.external_events import WrongTries
from engine.storage.figures import FiguresLog, Tally
from engine.storage.orders import OrderStore
from engine.storage.poison import PoisonStore
from engine.storage.submission_keys import SubmissionKeys
from engine.storage.sweeps import SweepLog
from engine.storage.unit_of_work import UnitOfWork
from scheduler.admission.adaptive import AdaptiveLimit
from scheduler.admission.admission import Admission
from scheduler.admission.policy import AdmissionPolicy, Capacity
from scheduler.rules import SchedulerRules
from scheduler.service import SchedulerService
from scheduler.triggers import Inbox
from submission.rules import Terms
from submission.service import QUEUE as SUBMISSIONS
from submission.service import SubmissionService
from supervisor.rules import SupervisorRules
from supervisor.service import SupervisorService

ADAPTIVE = AdaptiveLimit()

REQUESTS_PER_CALL = 2
"""How many open requests an agent may have for each concurrent call that its service takes."""


def build_engine(
    settings: Settings,
    business: Application,
    adapters: Adapters,
    admission_policy: AdmissionPolicy = ADAPTIVE,
) -> "Engine":
    """Make the engine of a business.

    Raises `DeclarationError` for a business that cannot work, for example if no agent offers a
    step's capability. Raises `SettingsError` if callback URLs are needed and no public address is
    configured.
    """
    engine = Engine(settings, business, adapters, admission_policy)
    _check_callback_urls(settings, business)
    business.check(
        engine.agents,
        engine.step_defaults,
        reply_margin=timedelta(seconds=settings.reply_margin_seconds),
    )
    return engine


def _check_callback_urls(settings: Settings, business: Application) -> None:
    """Raise `SettingsError` if callback URLs are needed and cannot be made."""
    workflows = (workflow.name for workflow in business.workflows.all if workflow.waits_for_events)
    waiting = chain(workflows, (agent.name for agent in business.agents if agent.calls_back))
    if settings.public_url is None and (name := next(waiting, None)):
        expected = EXPECTED["PUBLIC_URL"]
        fault = Fault(FaultCode.PUBLIC_URL_MISSING, "PUBLIC_URL", name=name, expected=expected)
        raise SettingsError([fault])


class Engine:
    """The stores and services that process orders.

    Each service is made when it is first used, and connects to nothing before that.
    """

    def __init__(
        self,
        settings: Settings,
        business: Application,
        adapters: Adapters,
        admission_policy: AdmissionPolicy = ADAPTIVE,
    ) -> None:
        self.settings, self.business, self.adapters = settings, business, adapters
        self.admission_policy = admission_policy
        table = adapters.table
        address = settings.public_url and settings.public_url.rstrip("/")
        self.store = OrderStore(table("orders"), buckets(settings.buckets), address)
        self.poison_store = PoisonStore(table("poison"))
        self.submission_keys = SubmissionKeys(table("submissionkeys"), adapters.clock)
        self.agent_health = AgentHealthLog(table("agents"))
        self.sweeps = SweepLog(table("agents"))
        self.figures = FiguresLog(table("agents"), adapters.new_id)
        self.submissions = adapters.queue(SUBMISSIONS)

    @cached_property
    def agents(self) -> Sequence[AgentDefinition]:
        """The agents of this deployment: those with an address, and those that need none."""
        addresses = self.settings.addresses
        return [
            agent for agent in self.business.agents if agent.name in addresses or not agent.address
        ]

    @cached_property
    def agent_names(self) -> Sequence[str]:
        return [agent.name for agent in self.agents]

    @cached_property
    def bus_queues(self) -> Sequence[str]:
        """The queues between scheduler and agents, and the queue of external events."""
        return bus_queues(self.agent_names, answers=self.business.waits_for_events)

    @cached_property
    def call_limits(self) -> CallLimits:
        """The limit of public calls for each caller."""
        return CallLimits(self.settings.public_calls_per_minute, self.settings.trusted_proxies)

    @cached_property
    def unit_of_work(self) -> UnitOfWork:
        """The only way to change an order."""
        parts = self.adapters
        tally = Tally(self.figures, parts.clock)
        return UnitOfWork(self.store, parts.bus, parts.clock, parts.new_id, tally.count)

    @cached_property
    def clock_guard(self) -> ClockGuard:
        """Checks whether the clock of this process can be trusted."""
        return ClockGuard(
            check=self.adapters.clock_check, store=self.store, instance=self.settings.instance_id
        )

    @cached_property
    def callback_urls(self) -> CallbackUrls | None:
        """Makes callback URLs. None if no public address is configured."""
        address = self.settings.public_url
        if address is None:
            return None
        return CallbackUrls(address=address.rstrip("/"), new_token=self.adapters.new_callback_token)

    @cached_property
    def submission(self) -> SubmissionService:
        return SubmissionService(
            unit_of_work=self.unit_of_work,
            poison=self.poison_store,
            instance=self.settings.instance_id,
            unknown_name_max_deliveries=self.settings.unknown_name_max_deliveries,
            queue=self.submissions,
            version_overlap=self.version_overlap,
            slowdown=self.adapters.slowdown,
            terms=Terms(
                workflows=self.business.workflows,
                default_workflow=self.business.default_workflow,
                payload=self.business.payload,
                reply_to_prefix=self.settings.reply_to_prefix,
                buckets=frozenset(self.store.buckets),
                defaults=self.step_defaults,
            ),
        )

    @cached_property
    def step_defaults(self) -> StepDefaults:
        """The values for steps that declare none."""
        settings = self.settings
        return StepDefaults(
            timeout=timedelta(seconds=settings.step_timeout_seconds),
            threshold=settings.failure_threshold,
            cooldown=timedelta(seconds=settings.cooldown_seconds),
            max_retry_pause=timedelta(seconds=settings.max_retry_pause_seconds),
        )

    @cached_property
    def scheduler_rules(self) -> SchedulerRules:
        """The scheduler's decisions. Operators use them to see what comes next."""
        return SchedulerRules(
            instance=self.settings.instance_id,
            workflows=self.business.workflows,
            payload=self.business.payload,
            providers={agent.name: agent.provider or agent.name for agent in self.agents},
            agents={agent.name: agent for agent in self.agents},
            callback_urls=self.callback_urls,
            clock_tolerance=self.clock_tolerance,
            version_overlap=self.version_overlap,
            max_silence=self.max_silence,
        )

    @cached_property
    def scheduler(self) -> SchedulerService:
        return SchedulerService(
            unit_of_work=self.unit_of_work,
            rules=self.scheduler_rules,
            admission=self.admission,
            agent_health=self.agent_health,
            clock_guard=self.clock_guard,
        )

    @cached_property
    def admission(self) -> Admission:
        """Chooses the orders that the scheduler may claim now."""
        return Admission(
            offers=offers_of(self.agents),
            capacity={agent.name: self._capacity(agent) for agent in self.agents},
            policy=self.admission_policy,
            max_silence=self.max_silence,
            clock=self.adapters.clock,
        )

    @cached_property
    def inbox(self) -> Inbox:
        """Handles the scheduler's messages from the bus."""
        parts = self.adapters
        return Inbox(service=self.scheduler, unread=self.unread, bus=parts.bus, clock=parts.clock)

    @cached_property
    def unread(self) -> UnreadableMessageHandler:
        """Handles messages from the bus that this app cannot read."""
        parts = self.adapters
        return UnreadableMessageHandler(
            poison=self.poison_store,
            bus=parts.bus,
            clock=parts.clock,
            version_overlap=self.version_overlap,
        )

    def agent(self, agent: AgentDefinition) -> AgentService:
        settings, clock = self.settings, self.adapters.clock
        circuit = CircuitBreaker(
            orders=settings.circuit_orders,
            open_for=timedelta(seconds=settings.circuit_open_seconds),
            clock=clock,
        )
        return AgentService(
            name=agent.name,
            remote=self.adapters.services[agent.name],
            bus=self.adapters.bus,
            clock=clock,
            sleep=asyncio.sleep,
            margin=timedelta(seconds=settings.reply_margin_seconds),
            usual_call_timeout=timedelta(seconds=settings.remote_call_timeout_seconds),
            slowdown=self.adapters.slowdown,
            circuit=circuit,
            bulkhead=Bulkhead(
                in_flight=min(self._calls_in_flight(agent), settings.max_concurrent_calls),
                clock=clock,
            ),
            health_reporter=HealthReporter(
                agent=agent.name,
                instance=settings.instance_id,
                circuit=circuit,
                agent_health=self.agent_health,
                clock=clock,
            ),
        )

    @cached_property
    def supervisor_rules(self) -> SupervisorRules:
        return SupervisorRules(
            instance=self.settings.instance_id,
            clock_tolerance=self.clock_tolerance,
            max_unbegun_attempts=self.settings.max_unbegun_attempts,
        )

    @cached_property
    def supervisor(self) -> SupervisorService:
        return SupervisorService(
            unit_of_work=self.unit_of_work,
            leadership=self.adapters.leadership,
            sweeps=self.sweeps,
            rules=self.supervisor_rules,
            agent_health=self.agent_health,
            clock_guard=self.clock_guard,
            checked=self.checked,
        )

    @property
    def checked(self) -> Sequence[WorkItemKind]:
        """The kinds of work items that sweeps check.

        Deadlines are included if a workflow declares one.
        """
        return checked_kinds(has_deadlines=self.business.workflows.have_deadlines)

    @cached_property
    def customers(self) -> CustomerService:
        return CustomerService(
            unit_of_work=self.unit_of_work,
            submissions=self.submissions,
            keys=self.submission_keys,
            payload=self.business.payload,
            clock=self.adapters.clock,
            new_order_id=order_ids(self.settings.buckets),
            placed_at=order_time,
        )

    @cached_property
    def callback_service(self) -> CallbackService:
        return CallbackService(
            unit_of_work=self.unit_of_work,
            workflows=self.business.workflows,
            remembering={agent.name for agent in self.agents if agent.remembers_refusals},
            wrong_tries=WrongTries(clock=self.adapters.clock),
        )

    @cached_property
    def external_event_inbox(self) -> ExternalEventInbox:
        """Takes external events from the queue."""
        return ExternalEventInbox(
            unit_of_work=self.unit_of_work,
            workflows=self.business.workflows,
            unread=self.unread,
            poison=self.poison_store,
            bus=self.adapters.bus,
            clock=self.adapters.clock,
        )

    @property
    def clock_tolerance(self) -> timedelta:
        """The largest expected difference between the clocks of two processes."""
        return timedelta(seconds=self.settings.clock_tolerance_seconds)

    @property
    def version_overlap(self) -> timedelta:
        """How long processes of two versions may run side by side."""
        return timedelta(seconds=self.settings.mixed_version_seconds)

    @property
    def max_silence(self) -> timedelta:
        """How long orders wait for silent agents before their steps fail."""
        return timedelta(seconds=self.settings.max_silence_seconds)

    def _capacity(self, agent: AgentDefinition) -> Capacity:
        """Return the limits of an agent's open requests, and the shortest time-out of its steps."""
        usual = timedelta(seconds=self.settings.step_timeout_seconds)
        steps = chain.from_iterable(workflow.steps for workflow in self.business.workflows.all)
        times = (step.timeout or usual for step in steps if step.capability == agent.offers)
        allowance = min(times, default=usual)
        most = REQUESTS_PER_CALL * self._calls_in_flight(agent)
        return Capacity(most=most, first=self.settings.circuit_orders, allowance=allowance)

    def _calls_in_flight(self, agent: AgentDefinition) -> int:
        """Return how many concurrent calls the agent's service takes."""
        return self.settings.calls_in_flight.get(agent.name, agent.calls_in_flight)
