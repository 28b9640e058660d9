"""Puts the app together: every service as an attribute of `App`, made from settings, business and adapters alone."""

import asyncio
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from typing import Any

import azure.functions as func

import agents.triggers
import alerts.service
import alerts.triggers
import operators.triggers
import scheduler.triggers
import simulator.triggers
import submission.service
import submission.triggers
import supervisor.triggers
import web.triggers
from adapters import Adapters
from adapters.settings import Settings
from agents.protection import Bulkhead, CircuitBreaker, HealthReporter
from agents.service import AgentService
from alerts.relay import Relay
from alerts.service import AlertService
from alerts.versions import Versions
from alerts.watch import Watch
from core.business import Agent, Business, offers_of
from core.keys import buckets
from core.messages import bus_queues
from core.ports import TextQueue
from operators.alerts import AlertDesk
from operators.bulk import BulkService
from operators.closing import Closing
from operators.explain import ActingRules
from operators.figures import FiguresService
from operators.health import HealthService
from operators.overview import OverviewService
from operators.owed import Owed
from operators.poison import PoisonService
from operators.retention import RetentionService
from operators.service import OperatorService
from operators.triggers import OperatorServices
from scheduler.admission import Admission
from scheduler.rules import LONGEST_UPGRADE, SchedulerRules
from scheduler.service import FRESH, WAKE_UP_TIME, SchedulerService
from scheduler.triggers import Inbox
from simulator.ledger import Ledger
from simulator.rules import simulated
from simulator.service import Simulator
from stores.figures import Tally
from stores.transitions import Transitions
from submission.rules import Terms
from submission.service import SubmissionService
from supervisor.rules import SupervisorRules
from supervisor.service import SupervisorService
from web.files import STATIC, Site


@dataclass(frozen=True)
class App:
    """The services of one process. Each is made when it is first asked for; none does I/O before it is used."""

    settings: Settings
    business: Business
    adapters: Adapters

    @cached_property
    def agents(self) -> Sequence[Agent]:
        """The agents that this deployment has: those whose address the settings give."""
        return [agent for agent in self.business.agents if agent.name in self.settings.addresses]

    @cached_property
    def bus_queues(self) -> Sequence[str]:
        """The queues by which scheduler and agents talk."""
        return bus_queues([agent.name for agent in self.agents])

    @cached_property
    def transitions(self) -> Transitions:
        """The one way to change an order."""
        parts = self.adapters
        transitions = Transitions(parts.store, parts.bus, parts.clock, parts.new_id)
        transitions.count = Tally(parts.figures, parts.clock).count
        return transitions

    # The way of an order

    @cached_property
    def submission(self) -> SubmissionService:
        """Records what was submitted."""
        return SubmissionService(
            transitions=self.transitions,
            poison=self.adapters.poison,
            instance=self.settings.instance_id,
            unknown_name_tries=self.settings.unknown_name_tries,
            terms=Terms(
                workflows=self.business.workflows,
                default_workflow=self.business.default_workflow,
                payload=self.business.payload,
                reply_to_prefix=self.settings.reply_to_prefix,
                buckets=frozenset(buckets(self.settings.buckets)),
                timeout=timedelta(seconds=self.settings.step_timeout_seconds),
                threshold=self.settings.failure_threshold,
                cooldown=timedelta(seconds=self.settings.cooldown_seconds),
            ),
        )

    @cached_property
    def scheduler_rules(self) -> SchedulerRules:
        """What the scheduler decides by; operators are told by them what comes next."""
        return SchedulerRules(
            instance=self.settings.instance_id,
            workflows=self.business.workflows,
            payload=self.business.payload,
            clock_tolerance=self._tolerance,
        )

    @cached_property
    def scheduler(self) -> SchedulerService:
        """Claims orders and drives them."""
        return SchedulerService(
            transitions=self.transitions,
            rules=self.scheduler_rules,
            admission=self.admission,
            agent_health=self.adapters.agent_health,
        )

    @cached_property
    def admission(self) -> Admission:
        """Whom the scheduler may claim now."""
        return Admission(offers=offers_of(self.agents), clock=self.adapters.clock, most=self.settings.max_open_requests)

    @cached_property
    def inbox(self) -> Inbox:
        """What reaches the scheduler over the bus."""
        parts = self.adapters
        return Inbox(service=self.scheduler, poison=parts.poison, bus=parts.bus, clock=parts.clock)

    def agent(self, agent: Agent) -> AgentService:
        """Make the agent of one remote service."""
        settings, clock = self.settings, self.adapters.clock
        circuit = CircuitBreaker(
            orders=settings.circuit_orders, open_for=timedelta(seconds=settings.circuit_open_seconds), clock=clock
        )
        return AgentService(
            name=agent.name,
            remote=self.adapters.services[agent.name],
            bus=self.adapters.bus,
            clock=clock,
            sleep=asyncio.sleep,
            margin=timedelta(seconds=settings.agent_margin_seconds),
            call_timeout=timedelta(seconds=settings.remote_call_timeout_seconds),
            circuit=circuit,
            bulkhead=Bulkhead(in_flight=settings.calls_in_flight.get(agent.name, agent.calls_in_flight), clock=clock),
            health_reporter=HealthReporter(
                agent=agent.name,
                instance=settings.instance_id,
                circuit=circuit,
                agent_health=self.adapters.agent_health,
                clock=clock,
            ),
        )

    @cached_property
    def supervisor_rules(self) -> SupervisorRules:
        """What the supervisor decides by."""
        return SupervisorRules(instance=self.settings.instance_id, clock_tolerance=self._tolerance)

    @cached_property
    def supervisor(self) -> SupervisorService:
        """Finds what timed out."""
        return SupervisorService(
            transitions=self.transitions,
            leadership=self.adapters.leadership,
            sweeps=self.adapters.sweeps,
            rules=self.supervisor_rules,
        )

    # What tells people

    @cached_property
    def alerts(self) -> AlertService:
        """Keeps the alerts that reach the operators."""
        return AlertService(alert_log=self.adapters.alerts, poison=self.adapters.poison)

    @cached_property
    def relay(self) -> Relay:
        """Sends what transitions left in the outbox: alerts, and notices to submitters."""
        return Relay(
            store=self.adapters.store,
            publisher=self.adapters.events,
            bus=self.adapters.bus,
            clock=self.adapters.clock,
            max_tries=self.settings.notice_tries,
        )

    @cached_property
    def watch(self) -> Watch:
        """Notices what stands still."""
        return Watch(
            store=self.adapters.store,
            sweeps=self.adapters.sweeps,
            clock=self.adapters.clock,
            longest_pending=timedelta(seconds=self.settings.longest_pending_seconds),
            longest_without_sweep=timedelta(seconds=self.settings.longest_without_sweep_seconds),
        )

    @cached_property
    def versions(self) -> Versions:
        """Notices that a workflow was changed without a new version."""
        parts = self.adapters
        return Versions(
            workflows=self.business.workflows, known=parts.known_workflows, store=parts.store, clock=parts.clock
        )

    # What operators have

    @cached_property
    def operators(self) -> OperatorServices:
        """All that operators can do and see."""
        return OperatorServices(
            orders=self.orders,
            bulk=self.bulk,
            alerts=self.alert_desk,
            poison=self.poison,
            overview=self.overview,
            figures=FiguresService(kept=self.adapters.figures, clock=self.adapters.clock),
            retention=self.retention,
            health=self.health,
        )

    @cached_property
    def alert_desk(self) -> AlertDesk:
        """The alerts, and which of them are over."""
        parts = self.adapters
        return AlertDesk(
            alert_log=parts.alerts,
            closing=Closing(owed=self.owed, sweeps=parts.sweeps),
            clock=parts.clock,
        )

    @cached_property
    def owed(self) -> Owed:
        """To which orders something is owed."""
        return Owed(store=self.adapters.store, clock=self.adapters.clock)

    @cached_property
    def orders(self) -> OperatorService:
        """Shows, explains and changes single orders."""
        return OperatorService(
            transitions=self.transitions,
            store=self.adapters.store,
            archive=self.adapters.archive,
            clock=self.adapters.clock,
            workflows=self.business.workflows,
            payload=self.business.payload,
            acting=ActingRules(
                claim=self.scheduler_rules.claim,
                recover=self.supervisor_rules.recover,
                poll_delay=WAKE_UP_TIME,
                clock_tolerance=self._tolerance,
                offers=offers_of(self.agents),
                fresh=FRESH,
                longest_upgrade=LONGEST_UPGRADE,
            ),
            agent_health=self.adapters.agent_health,
        )

    @cached_property
    def bulk(self) -> BulkService:
        """Changes many orders at once."""
        return BulkService(
            transitions=self.transitions,
            store=self.adapters.store,
            clock=self.adapters.clock,
            workflows=self.business.workflows,
            clock_tolerance=self._tolerance,
        )

    @cached_property
    def poison(self) -> PoisonService:
        """What nobody could read."""
        parts = self.adapters
        return PoisonService(
            poison=parts.poison,
            bus=parts.bus,
            storage_queues=self.storage_queues,
            bus_queues=self.bus_queues,
            clock=parts.clock,
        )

    @property
    def storage_queues(self) -> Mapping[str, TextQueue]:
        """The Storage Queues by their names."""
        return {submission.service.QUEUE: self.adapters.submissions, alerts.service.QUEUE: self.adapters.alert_queue}

    @cached_property
    def overview(self) -> OverviewService:
        """How the system is."""
        return OverviewService(
            owed=self.owed,
            agent_health=self.adapters.agent_health,
            sweeps=self.adapters.sweeps,
            poison=self.poison,
            queues=self.storage_queues,
            clock=self.adapters.clock,
        )

    @cached_property
    def retention(self) -> RetentionService:
        """Removes what is too old, and what is personal."""
        days = self.settings.retention_days
        return RetentionService(
            transitions=self.transitions,
            archive=self.adapters.archive,
            alert_log=self.adapters.alerts,
            figures=self.adapters.figures,
            poison=self.poison,
            submission_keys=self.adapters.keys,
            clock=self.adapters.clock,
            payload=self.business.payload,
            keep=timedelta(days=days) if days else None,
        )

    @cached_property
    def health(self) -> HealthService:
        """Whether all is there that the app cannot work without."""
        return HealthService(
            checks={
                "stateStore": self.orders.probe,
                "submissionQueue": self.adapters.submissions.waiting,
                "serviceBus": partial(self.adapters.bus.probe, self.bus_queues),
            }
        )

    @cached_property
    def pages(self) -> Site:
        """What browsers are given."""
        return Site.read(STATIC)

    @cached_property
    def simulator(self) -> Simulator:
        """The remote services, simulated."""
        return Simulator(
            services=simulated(self.business),
            ledger=Ledger(self.adapters.simulator),
            clock=self.adapters.clock,
            sleep=asyncio.sleep,
            chance=random.random,
        )

    @property
    def _tolerance(self) -> timedelta:
        return timedelta(seconds=self.settings.clock_tolerance_seconds)


def bootstrap(settings: Settings, business: Business, adapters: Adapters) -> App:
    """Return the app; raises `WorkflowError` if a workflow cannot be carried out, as when no agent offers a step."""
    app = App(settings, business, adapters)
    business.workflows.check(offers_of(app.agents), business.default_workflow)
    return app


def functions(app: App, *business: func.Blueprint, described: Mapping[str, Any] | None = None) -> func.FunctionApp:
    """Bind the app's services, and the functions of the business, to what starts them.

    `described` has the OpenAPI `paths` and `schemas` of the business's calls.
    """
    functions = func.FunctionApp()
    for blueprint in (*business, *_blueprints(app, described or {})):
        functions.register_functions(blueprint)
    return functions


def _blueprints(app: App, described: Mapping[str, Any]) -> Iterator[func.Blueprint]:
    yield submission.triggers.blueprint(app.submission)
    yield scheduler.triggers.blueprint(app.inbox, [agent.name for agent in app.agents])
    for agent in app.agents:
        yield agents.triggers.blueprint(app.agent(agent), app.adapters.poison)
    yield supervisor.triggers.blueprint(app.supervisor)
    yield alerts.triggers.blueprint(app.alerts, app.relay, app.watch, app.versions)
    yield operators.triggers.blueprint(app.operators, described)
    yield web.triggers.blueprint(app.pages)
    yield operators.triggers.relay(app.adapters.poison, app.storage_queues, app.bus_queues)
    if app.settings.simulator_enabled:
        yield simulator.triggers.blueprint(app.simulator)
