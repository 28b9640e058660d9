"""Makes the services of the app, as attributes of `App`, from settings, business and adapters."""

import asyncio
import random
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import cached_property, partial
from itertools import chain
from uuid import uuid4

import azure.functions as func

import agents.triggers
import engine.pages.triggers
import engine.public_api.triggers
import operations.alerts.rules
import operations.alerts.triggers
import operations.api.triggers
import operations.console.triggers
import scheduler.triggers
import submission.service
import submission.triggers
import supervisor.triggers
from agents.bulkhead import Bulkhead
from agents.circuit_breaker import CircuitBreaker
from agents.health import HealthReporter
from agents.service import AgentService
from engine.alerts.conditions import ConditionStatus
from engine.azure import Adapters
from engine.azure.clock import order_ids, order_time
from engine.azure.settings import EXPECTED, Settings, SettingsError
from engine.decisions.changes import Event
from engine.declarations.business import Agent, Business, offers_of
from engine.declarations.faults import Fault, FaultCode
from engine.domain.callback_urls import Links
from engine.domain.keys import buckets
from engine.domain.messages import bus_queues
from engine.http.openapi import Route
from engine.http.sign_in import SignIn
from engine.pages.triggers import BusinessPage, Pages
from engine.public_api.inbox import AnswerInbox
from engine.public_api.links import LinkService, WrongTries
from engine.public_api.service import CustomerService
from engine.runtime import api
from engine.runtime.unread import UnreadableMessageHandler
from engine.storage.agent_health import AgentHealthLog
from engine.storage.alert_log import PARTITION as OF_ALERTS
from engine.storage.alert_log import AlertLog
from engine.storage.archive import Archive
from engine.storage.clock_guard import ClockGuard
from engine.storage.conditions import PARTITION as OF_CONDITIONS
from engine.storage.conditions import ConditionLog
from engine.storage.copies import Copies
from engine.storage.figures import FiguresLog, Tally
from engine.storage.notifications import PARTITION as OF_CHANNELS
from engine.storage.notifications import Notifications
from engine.storage.orders import OrderStore
from engine.storage.poison import PoisonStore
from engine.storage.submission_keys import PARTITIONS as OF_KEYS
from engine.storage.submission_keys import SubmissionKeys
from engine.storage.sweeps import SweepLog
from engine.storage.transitions import Transitions
from operations.alerts.channel_rules import channels_of
from operations.alerts.digests import Places, needs_action
from operations.alerts.notify import Notifier
from operations.alerts.relay import Relay
from operations.alerts.watch import Watch
from operations.api.agents import AgentPauseService
from operations.api.alerts import AlertService
from operations.api.answers import AnswerService
from operations.api.bulk import BulkService
from operations.api.channels import ChannelService
from operations.api.copies import CopyService
from operations.api.explain import ActingRules
from operations.api.health import HealthService
from operations.api.live import LiveService
from operations.api.overview import OverviewService
from operations.api.owed import OutboxReader
from operations.api.poison import PoisonService
from operations.api.retention import RetentionService
from operations.api.runs import RunService
from operations.api.service import OperatorService
from operations.api.triggers import OperatorServices
from operations.api.vocabulary import OutsideLinks, runbook_of
from samples.simulator.ledger import Ledger
from samples.simulator.rules import simulated
from samples.simulator.samples import sample_order, simulated_agents
from samples.simulator.service import SampleService, Simulator
from samples.simulator.triggers import blueprint as simulator_blueprint
from scheduler.admission import Admission, Capacity
from scheduler.rules import SchedulerRules
from scheduler.service import WAKE_UP_TIME, SchedulerService
from scheduler.triggers import Inbox
from submission.rules import Terms
from submission.service import SubmissionService
from supervisor.rules import SupervisorRules
from supervisor.service import SupervisorService

FOR_EACH_CALL = 2
"""Open requests that an agent may have for each call that its service takes at a time."""


class App:
    """The stores and services of one process.

    Each service is made at its first use, and does no I/O before.
    """

    def __init__(self, settings: Settings, business: Business, adapters: Adapters) -> None:
        self.settings, self.business, self.adapters = settings, business, adapters
        table = adapters.table
        address = settings.public_url and settings.public_url.rstrip("/")
        self.store = OrderStore(table("orders"), buckets(settings.buckets), address)
        self.archive = Archive(self.store, table("agents"))
        self.poison_store = PoisonStore(table("poison"))
        quiet = adapters.background_table or table
        self.background_store = self.store.over(quiet("orders"))
        self.alert_log = AlertLog(table("alerts"))
        self.incoming_alerts = AlertLog(quiet("alerts"))
        self.conditions = ConditionLog(quiet("alerts"))
        self.notifications = Notifications(quiet("alerts"))
        self.submission_keys = SubmissionKeys(table("submissionkeys"), adapters.clock)
        self.agent_health = AgentHealthLog(table("agents"))
        self.sweeps = SweepLog(table("agents"))
        self.figures = FiguresLog(table("agents"), adapters.new_id)
        queues = (submission.service.QUEUE, operations.alerts.rules.QUEUE)
        self.storage_queues = {name: adapters.queue(name) for name in queues}

    @cached_property
    def agents(self) -> Sequence[Agent]:
        """The agents of this deployment: those with an address, and those that need none."""
        addresses = self.settings.addresses
        return [
            agent for agent in self.business.agents if agent.name in addresses or not agent.address
        ]

    @cached_property
    def bus_queues(self) -> Sequence[str]:
        """The queues between scheduler and agents, and that of answers."""
        agents = [agent.name for agent in self.agents]
        return bus_queues(agents, answers=self.business.waits_for_answers)

    @cached_property
    def transitions(self) -> Transitions:
        """The one way to change an order."""
        parts = self.adapters
        tally = Tally(self.figures, parts.clock)
        return Transitions(self.store, parts.bus, parts.clock, parts.new_id, tally.count)

    @cached_property
    def clock_guard(self) -> ClockGuard:
        """Checks whether this process may use its clock."""
        return ClockGuard(
            check=self.adapters.clock_check, store=self.store, instance=self.settings.instance_id
        )

    @cached_property
    def links(self) -> Links | None:
        """Makes the links by which steps are answered from outside; None without an address."""
        address = self.settings.public_url
        if address is None:
            return None
        return Links(address=address.rstrip("/"), new_right=self.adapters.new_right)

    # The way of an order

    @cached_property
    def submission(self) -> SubmissionService:
        """Records submitted orders."""
        return SubmissionService(
            transitions=self.transitions,
            poison=self.poison_store,
            instance=self.settings.instance_id,
            unknown_name_max_deliveries=self.settings.unknown_name_max_deliveries,
            queue=self.storage_queues[submission.service.QUEUE],
            version_overlap=self._version_overlap,
            slowdown=self.adapters.slowdown,
            terms=Terms(
                workflows=self.business.workflows,
                default_workflow=self.business.default_workflow,
                payload=self.business.payload,
                reply_to_prefix=self.settings.reply_to_prefix,
                buckets=frozenset(self.store.buckets),
                timeout=timedelta(seconds=self.settings.step_timeout_seconds),
                threshold=self.settings.failure_threshold,
                cooldown=timedelta(seconds=self.settings.cooldown_seconds),
            ),
        )

    @cached_property
    def scheduler_rules(self) -> SchedulerRules:
        """The scheduler's decisions, by which operators also see what comes next."""
        return SchedulerRules(
            instance=self.settings.instance_id,
            workflows=self.business.workflows,
            payload=self.business.payload,
            providers={agent.name: agent.provider or agent.name for agent in self.agents},
            agents={agent.name: agent for agent in self.agents},
            links=self.links,
            clock_tolerance=self._tolerance,
            version_overlap=self._version_overlap,
        )

    @cached_property
    def scheduler(self) -> SchedulerService:
        """Claims orders and drives their steps."""
        return SchedulerService(
            transitions=self.transitions,
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
            version_overlap=self._version_overlap,
        )

    def agent(self, agent: Agent) -> AgentService:
        """Make the agent of one remote service."""
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
        """The supervisor's decisions."""
        return SupervisorRules(instance=self.settings.instance_id, clock_tolerance=self._tolerance)

    @cached_property
    def supervisor(self) -> SupervisorService:
        """Finds the steps that timed out."""
        return SupervisorService(
            transitions=self.transitions,
            leadership=self.adapters.leadership,
            sweeps=self.sweeps,
            rules=self.supervisor_rules,
            agent_health=self.agent_health,
            clock_guard=self.clock_guard,
        )

    # Alerts and notices

    @cached_property
    def relay(self) -> Relay:
        """Sends the rows of the outbox: alerts, and notices to submitters."""
        return Relay(
            store=self.background_store,
            publisher=self.adapters.events,
            bus=self.adapters.bus,
            clock=self.adapters.clock,
            max_tries=self.settings.notice_tries,
        )

    @cached_property
    def watch(self) -> Watch:
        """Raises alerts for standstill."""
        return Watch(
            store=self.background_store,
            conditions=self.conditions,
            sweeps=self.sweeps,
            submissions=self.storage_queues[submission.service.QUEUE],
            agent_health=self.agent_health,
            offers=offers_of(self.agents),
            clock=self.adapters.clock,
            pending_alert_after=timedelta(seconds=self.settings.pending_alert_seconds),
            sweep_alert_after=timedelta(seconds=self.settings.sweep_alert_seconds),
        )

    @cached_property
    def notifier(self) -> Notifier:
        """Sends alerts to people."""
        settings = self.settings
        runbook = runbook_of(settings.runbook_url) if settings.runbook_url else {}
        return Notifier(
            channels=[*self.adapters.channels.values()],
            notifications=self.notifications,
            clock=self.adapters.clock,
            new_id=lambda: str(uuid4()),
            interval=timedelta(seconds=settings.alert_interval_seconds),
            places=Places(app=(settings.public_url or "").rstrip("/"), runbook=runbook),
        )

    def channels_of(self, event: Event) -> Sequence[str]:
        """Return the channels that report an event: an end goes where the beginning went."""
        is_end = event.data.get("status") == ConditionStatus.RESOLVED
        return channels_of(
            self.settings.alert_rules,
            self.adapters.channels,
            event,
            needs_action=is_end or needs_action(event),
        )

    # The customers' and the operators' services

    @property
    def sign_in(self) -> SignIn | None:
        """The operators' sign-in, if the platform has one for this app."""
        settings = self.settings
        return SignIn(role=settings.operator_role) if settings.operator_sign_in else None

    @cached_property
    def customers(self) -> CustomerService:
        """Takes orders over HTTP, and shows customers how far they are."""
        return CustomerService(
            transitions=self.transitions,
            submissions=self.storage_queues[submission.service.QUEUE],
            keys=self.submission_keys,
            payload=self.business.payload,
            clock=self.adapters.clock,
            new_order_id=order_ids(self.settings.buckets),
            placed_at=order_time,
        )

    @cached_property
    def link_service(self) -> LinkService:
        """Takes answers over links."""
        return LinkService(
            transitions=self.transitions,
            workflows=self.business.workflows,
            remembering={agent.name for agent in self.agents if agent.remembers_refusals},
            wrong_tries=WrongTries(clock=self.adapters.clock),
        )

    @cached_property
    def answer_inbox(self) -> AnswerInbox:
        """Takes answers off the queue."""
        return AnswerInbox(
            transitions=self.transitions,
            workflows=self.business.workflows,
            unread=self.unread,
            poison=self.poison_store,
            bus=self.adapters.bus,
            clock=self.adapters.clock,
        )

    @cached_property
    def operators(self) -> OperatorServices:
        """All services for operators."""
        clock, days = self.adapters.clock, self.settings.retention_days
        owed = OutboxReader(store=self.store, clock=clock)
        retention = RetentionService(
            transitions=self.transitions,
            archive=self.archive,
            alert_log=self.alert_log,
            figures=self.figures,
            agent_health=self.agent_health,
            poison=self.poison,
            submission_keys=self.submission_keys,
            clock=clock,
            clock_guard=self.clock_guard,
            payload=self.business.payload,
            keep=timedelta(days=days) if days else None,
        )
        return OperatorServices(
            orders=self.orders,
            answers=AnswerService(
                transitions=self.transitions,
                workflows=self.business.workflows,
                payload=self.business.payload,
                links=self.links,
            ),
            bulk=BulkService(
                transitions=self.transitions,
                store=self.store,
                workflows=self.business.workflows,
                clock=clock,
                clock_tolerance=self._tolerance,
            ),
            agents=AgentPauseService(
                agents=[agent.name for agent in self.agents],
                agent_health=self.agent_health,
                clock=clock,
            ),
            alerts=AlertService(
                alert_log=self.alert_log,
                owed=owed,
                clock=clock,
            ),
            channels=ChannelService(
                channels=[*self.adapters.channels],
                notifications=Notifications(self.adapters.table("alerts")),
            ),
            poison=self.poison,
            overview=OverviewService(
                owed=owed,
                agents=[agent.name for agent in self.agents],
                agent_health=self.agent_health,
                sweeps=self.sweeps,
                poison=self.poison,
                figures=self.figures,
                queues=self.storage_queues,
                clock=clock,
            ),
            live=LiveService(
                owed=owed,
                agents=[agent.name for agent in self.agents],
                agent_health=self.agent_health,
                sweeps=self.sweeps,
                submissions=self.storage_queues[submission.service.QUEUE],
                clock=clock,
            ),
            retention=retention,
            copies=CopyService(
                copies=self.copies,
                transitions=self.transitions,
                agents=self.agents,
                clock_tolerance=self._tolerance,
                clock=clock,
            ),
            runs=RunService(
                work={
                    "sweep": self.supervisor.sweep,
                    "poll": self.scheduler.poll,
                    "relay": self.relay.relay,
                    "watch": self.watch.look,
                    "notify": self.notifier.send,
                    "retention": retention.sweep,
                }
            ),
            health=HealthService(
                checks={
                    "stateStore": self.orders.probe,
                    "submissionQueue": self.storage_queues[submission.service.QUEUE].waiting,
                    "serviceBus": partial(self.adapters.bus.probe, self.bus_queues),
                }
            ),
        )

    @cached_property
    def copies(self) -> Copies:
        """Copies of all rows that have to survive."""
        partitions = {
            "orders": self.store.buckets,
            "submissionkeys": OF_KEYS,
            "alerts": [OF_ALERTS, OF_CHANNELS, OF_CONDITIONS],
            "poison": [*self.storage_queues, *self.bus_queues],
        }
        tables = {name: self.adapters.table(name) for name in (*partitions, "agents")}
        return Copies(tables, partitions, self.adapters.clock)

    @cached_property
    def orders(self) -> OperatorService:
        """Shows, explains and changes single orders."""
        return OperatorService(
            transitions=self.transitions,
            store=self.store,
            archive=self.archive,
            clock=self.adapters.clock,
            payload=self.business.payload,
            workflows=self.business.workflows,
            acting=ActingRules(
                claim=self.scheduler_rules.claim,
                recover=self.supervisor_rules.recover,
                poll_delay=WAKE_UP_TIME,
                clock_tolerance=self._tolerance,
                offers=offers_of(self.agents),
                version_overlap=self._version_overlap,
            ),
            agent_health=self.agent_health,
            find=self.customers.find,
            links=OutsideLinks(log=self.settings.log_link, runbook=self.settings.runbook_url),
        )

    @cached_property
    def poison(self) -> PoisonService:
        """Shows poison messages, and puts them back or drops them."""
        parts = self.adapters
        return PoisonService(
            poison=self.poison_store,
            bus=parts.bus,
            storage_queues=self.storage_queues,
            bus_queues=self.bus_queues,
        )

    def _capacity(self, agent: Agent) -> Capacity:
        """Return the limits of an agent's open requests, and the shortest time of its steps."""
        usual = timedelta(seconds=self.settings.step_timeout_seconds)
        steps = chain.from_iterable(workflow.steps for workflow in self.business.workflows.all)
        times = (step.timeout or usual for step in steps if step.capability == agent.offers)
        allowance = min(times, default=usual)
        most = FOR_EACH_CALL * self._calls_in_flight(agent)
        return Capacity(most=most, first=self.settings.circuit_orders, allowance=allowance)

    def _calls_in_flight(self, agent: Agent) -> int:
        """Return how many calls the agent's service takes at a time, from all instances."""
        return self.settings.calls_in_flight.get(agent.name, agent.calls_in_flight)

    @property
    def _tolerance(self) -> timedelta:
        return timedelta(seconds=self.settings.clock_tolerance_seconds)

    @property
    def _version_overlap(self) -> timedelta:
        return timedelta(seconds=self.settings.mixed_version_seconds)


def bootstrap(settings: Settings, business: Business, adapters: Adapters) -> App:
    """Return the app; raises `DeclarationError` for a business that cannot work.

    An example is a step that no agent offers. Raises `SettingsError` if links are needed, and
    the app's public address is not configured.
    """
    app = App(settings, business, adapters)
    _check_links(settings, business)
    business.check(
        app.agents,
        timeout=timedelta(seconds=settings.step_timeout_seconds),
        threshold=settings.failure_threshold,
        cooldown=timedelta(seconds=settings.cooldown_seconds),
    )
    return app


def _check_links(settings: Settings, business: Business) -> None:
    """Raise `SettingsError` if answers come over links, and no link to them can be made."""
    workflows = (workflow.name for workflow in business.workflows.all if workflow.waits_for_answers)
    waiting = chain(workflows, (agent.name for agent in business.agents if agent.calls_back))
    if settings.public_url is None and (name := next(waiting, None)):
        expected = EXPECTED["PUBLIC_URL"]
        fault = Fault(FaultCode.PUBLIC_URL_MISSING, "PUBLIC_URL", name=name, expected=expected)
        raise SettingsError([fault])


def functions(
    app: App, routes: Sequence[Route] = (), page: BusinessPage | None = None
) -> func.FunctionApp:
    """Return the functions of the app, with the routes and the page of the business."""
    functions = func.FunctionApp()
    endpoints = engine.public_api.triggers.routes(app.customers, app.business.endpoints)
    links = engine.public_api.triggers.link_routes(app.link_service) if app.links else []
    called = [*routes, *endpoints, *links, *operations.api.triggers.routes(app.operators)]
    calls = api.blueprint(called, app.sign_in)
    # Where services are simulated, visitors look around. Elsewhere they are customers.
    found = Pages.read([operations.console.triggers.STATIC], page)
    pages = engine.pages.triggers.blueprint(found, start=app.settings.simulator_enabled)
    console = operations.console.triggers.blueprint(found)
    for blueprint in (console, pages, calls, *_blueprints(app)):
        functions.register_functions(blueprint)
    return functions


def _blueprints(app: App) -> Iterator[func.Blueprint]:
    yield submission.triggers.blueprint(app.submission)
    yield scheduler.triggers.blueprint(app.inbox, [agent.name for agent in app.agents])
    for agent in app.agents:
        yield agents.triggers.blueprint(app.agent(agent), app.unread)
    if app.business.waits_for_answers:
        yield engine.public_api.triggers.answers_from_queue(app.answer_inbox)
    yield supervisor.triggers.blueprint(app.supervisor)
    yield operations.alerts.triggers.blueprint(
        app.incoming_alerts, app.poison_store, app.relay, app.watch, app.channels_of
    )
    yield operations.alerts.triggers.notifying(app.notifier)
    yield operations.api.triggers.blueprint(app.operators.retention)
    yield operations.api.triggers.given_up(app.poison_store, app.storage_queues, app.bus_queues)
    if app.settings.simulator_enabled:
        yield _simulator(app)


def _simulator(app: App) -> func.Blueprint:
    parts, called = app.adapters, simulated_agents(app.settings.addresses)
    services = Simulator(
        services=simulated(app.business),
        called=called,
        ledger=Ledger(parts.table("simulator")),
        clock=parts.clock,
        sleep=asyncio.sleep,
        chance=random.random,
    )
    samples = SampleService(
        simulator=services,
        order=sample_order(app.business, app.agents, called),
        submissions=app.storage_queues[submission.service.QUEUE],
        clock=parts.clock,
        new_order_id=order_ids(app.settings.buckets),
    )
    return simulator_blueprint(services, samples)
