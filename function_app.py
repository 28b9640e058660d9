"""Composition root: settings -> adapters -> services -> functions. The only place that knows all parts."""

import asyncio
import random
from datetime import timedelta
from functools import partial

import azure.functions as func

import agents.triggers
import alerts.service
import alerts.triggers
import operators.triggers
import scheduler.triggers
import shop.triggers
import simulator.triggers
import submission.service
import submission.triggers
import supervisor.triggers
import workflows
from adapters.azure import connect
from adapters.clock import order_ids, order_time
from adapters.settings import Settings
from agents.circuit import Circuit
from agents.gauge import Gauge
from agents.limits import CallLimits
from agents.service import AgentService
from alerts.notices import NoticeService
from alerts.service import AlertService
from alerts.watch import Watch
from core.keys import buckets
from core.messages import SCHEDULER_REQUESTS, requests_queue, responses_queue
from core.transitions import Transitions
from edge.logs import show_fields
from operators.alerts import AlertDesk
from operators.bulk import BulkService
from operators.explain import ActingRules
from operators.health import HealthService
from operators.overview import OverviewService
from operators.poison import PoisonService
from operators.retention import RetentionService
from operators.service import OperatorService
from operators.triggers import OperatorServices
from scheduler.places import Places
from scheduler.rules import SchedulerRules
from scheduler.service import WAKE_UP_TIME, SchedulerService
from shop.service import ShopService
from simulator.service import Simulator
from submission.rules import Terms
from submission.service import SubmissionService
from supervisor.rules import SupervisorRules
from supervisor.service import SupervisorService
from workflows.catalogue import BY_SKU

CALLS_IN_FLIGHT = 100
"""Of one agent instance, unless a setting says otherwise."""

show_fields()
settings = Settings.read()
parts = connect(settings)
transitions = Transitions(parts.store, parts.bus, parts.clock, parts.new_id)
tolerance = timedelta(seconds=settings.clock_tolerance_seconds)

shop_service = ShopService(
    store=parts.store,
    submissions=parts.submissions,
    keys=parts.keys,
    new_order_id=order_ids(settings.buckets),
    placed_at=order_time,
)
submission_service = SubmissionService(
    transitions=transitions,
    store=parts.store,
    poison=parts.poison,
    clock=parts.clock,
    instance=settings.instance_id,
    terms=Terms(
        workflows=workflows.ALL,
        skus=frozenset(BY_SKU),
        reply_to_prefix=settings.reply_to_prefix,
        buckets=frozenset(buckets(settings.buckets)),
        allowance=timedelta(seconds=settings.allowance_seconds),
        threshold=settings.failure_threshold,
        rest=timedelta(seconds=settings.rest_seconds),
    ),
)
offers: dict[str, list[str]] = {}
for offer in settings.agents():
    offers.setdefault(offer.offers, []).append(offer.name)
scheduler_service = SchedulerService(
    transitions=transitions,
    store=parts.store,
    clock=parts.clock,
    buckets=settings.buckets,
    rules=SchedulerRules(instance=settings.instance_id, workflows=workflows.ALL, clock_tolerance=tolerance),
    places=Places(offers=offers, clock=parts.clock, most=settings.most_open_requests),
    measures=parts.measures,
)


def agent_service(name: str) -> AgentService:
    """Return the agent of this name, with a circuit and limits of its own."""
    circuit = Circuit(
        orders=settings.circuit_orders,
        open_for=timedelta(seconds=settings.circuit_open_seconds),
        clock=parts.clock,
    )
    return AgentService(
        name=name,
        remote=parts.services[name],
        bus=parts.bus,
        clock=parts.clock,
        sleep=asyncio.sleep,
        margin=timedelta(seconds=settings.agent_margin_seconds),
        call_timeout=timedelta(seconds=settings.remote_call_timeout_seconds),
        circuit=circuit,
        limits=CallLimits(
            agent=name,
            in_flight=settings.calls_in_flight.get(name, CALLS_IN_FLIGHT),
            per_second=settings.calls_per_second.get(name),
            rates=parts.rates,
            clock=parts.clock,
            sleep=asyncio.sleep,
        ),
        gauge=Gauge(
            agent=name,
            instance=settings.instance_id,
            circuit=circuit,
            measures=parts.measures,
            clock=parts.clock,
        ),
    )


agent_services = [agent_service(offer.name) for offer in settings.agents()]
workflows.ALL.check(offers)
supervisor_service = SupervisorService(
    transitions=transitions,
    store=parts.store,
    leadership=parts.leadership,
    sweeps=parts.sweeps,
    clock=parts.clock,
    buckets=settings.buckets,
    rules=SupervisorRules(instance=settings.instance_id, clock_tolerance=tolerance),
)
alert_service = AlertService(
    store=parts.store,
    publisher=parts.events,
    alert_log=parts.alerts,
    poison=parts.poison,
    buckets=settings.buckets,
)
notice_service = NoticeService(
    store=parts.store,
    bus=parts.bus,
    clock=parts.clock,
    buckets=settings.buckets,
    most_tries=settings.notice_tries,
)
watch = Watch(
    store=parts.store,
    sweeps=parts.sweeps,
    clock=parts.clock,
    buckets=settings.buckets,
    longest_pending=timedelta(seconds=settings.longest_pending_seconds),
    longest_without_sweep=timedelta(seconds=settings.longest_without_sweep_seconds),
)
operator_service = OperatorService(
    transitions=transitions,
    store=parts.store,
    archive=parts.archive,
    clock=parts.clock,
    workflows=workflows.ALL,
    acting=ActingRules(
        claim=partial(
            scheduler_service.rules.claim, route=lambda capability: next(iter(offers.get(capability, [])), None)
        ),
        recover=supervisor_service.rules.recover,
        poll_delay=WAKE_UP_TIME,
        clock_tolerance=tolerance,
    ),
    buckets=settings.buckets,
)
bulk_service = BulkService(
    transitions=transitions,
    store=parts.store,
    clock=parts.clock,
    workflows=workflows.ALL,
    clock_tolerance=tolerance,
    buckets=settings.buckets,
)
alert_desk = AlertDesk(alert_log=parts.alerts, clock=parts.clock)
sent_to = (
    SCHEDULER_REQUESTS,
    *(queue(agent.name) for agent in agent_services for queue in (requests_queue, responses_queue)),
)
poison_service = PoisonService(
    poison=parts.poison,
    bus=parts.bus,
    storage_queues={submission.service.QUEUE: parts.submissions, alerts.service.QUEUE: parts.alert_queue},
    bus_queues=sent_to,
)
overview_service = OverviewService(
    store=parts.store,
    measures=parts.measures,
    sweeps=parts.sweeps,
    poison=poison_service,
    clock=parts.clock,
    buckets=settings.buckets,
)
retention_service = RetentionService(
    transitions=transitions,
    archive=parts.archive,
    alert_log=parts.alerts,
    clock=parts.clock,
    keep=timedelta(days=settings.retention_days) if settings.retention_days else None,
    buckets=settings.buckets,
)
health_service = HealthService(
    checks={
        "stateStore": operator_service.probe,
        "submissionQueue": parts.submissions.probe,
        "serviceBus": partial(parts.bus.probe, sent_to),
    }
)

app = func.FunctionApp()
for blueprint in (
    shop.triggers.blueprint(shop_service),
    submission.triggers.blueprint(submission_service),
    scheduler.triggers.blueprint(scheduler_service, parts.poison, agents=[agent.name for agent in agent_services]),
    *(agents.triggers.blueprint(agent, parts.poison) for agent in agent_services),
    supervisor.triggers.blueprint(supervisor_service),
    alerts.triggers.blueprint(alert_service, notice_service, watch),
    operators.triggers.blueprint(
        OperatorServices(
            orders=operator_service,
            bulk=bulk_service,
            alerts=alert_desk,
            poison=poison_service,
            overview=overview_service,
            retention=retention_service,
            health=health_service,
        )
    ),
):
    app.register_functions(blueprint)
if settings.simulator_enabled:
    remote_services = Simulator(ledger=parts.ledger, clock=parts.clock, sleep=asyncio.sleep, chance=random.random)
    app.register_functions(simulator.triggers.blueprint(remote_services))
