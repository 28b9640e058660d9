"""The roles that take an order and bring it to its end: shop, submission, scheduler, agents, supervisor."""

import asyncio
import random
from collections.abc import Iterator
from datetime import timedelta

import azure.functions as func

import agents.triggers
import scheduler.triggers
import shop.triggers
import simulator.triggers
import submission.triggers
import supervisor.triggers
from adapters.clock import order_ids, order_time
from agents.circuit import Circuit
from agents.gauge import Gauge
from agents.limits import CallLimits
from agents.service import AgentService
from composition.base import Base
from core.keys import buckets
from scheduler.admission import Admission
from scheduler.inbox import Inbox
from scheduler.service import SchedulerService
from shop.service import ShopService
from simulator.service import Simulator
from submission.rules import Terms
from submission.service import SubmissionService
from supervisor.service import SupervisorService

CALLS_IN_FLIGHT = 100
"""Of one agent instance, unless a setting says otherwise."""


def blueprints(base: Base) -> Iterator[func.Blueprint]:
    """Return the functions of these roles; raises ValueError if a workflow needs what no agent offers."""
    base.business.workflows.check(base.offers)
    poison = base.parts.poison
    yield shop.triggers.blueprint(_shop(base))
    yield submission.triggers.blueprint(_submission(base))
    yield scheduler.triggers.blueprint(_inbox(base), base.agents)
    for name in base.agents:
        yield agents.triggers.blueprint(_agent(base, name), poison)
    yield supervisor.triggers.blueprint(_supervisor(base))
    if base.settings.simulator_enabled:
        yield simulator.triggers.blueprint(_simulator(base))


def _shop(base: Base) -> ShopService:
    return ShopService(
        store=base.parts.store,
        submissions=base.parts.submissions,
        keys=base.parts.keys,
        new_order_id=order_ids(base.settings.buckets),
        placed_at=order_time,
    )


def _submission(base: Base) -> SubmissionService:
    settings = base.settings
    return SubmissionService(
        transitions=base.transitions,
        store=base.parts.store,
        poison=base.parts.poison,
        clock=base.parts.clock,
        instance=settings.instance_id,
        unknown_name_tries=settings.unknown_name_tries,
        terms=Terms(
            workflows=base.business.workflows,
            payload=base.business.payload,
            reply_to_prefix=settings.reply_to_prefix,
            buckets=frozenset(buckets(settings.buckets)),
            allowance=timedelta(seconds=settings.allowance_seconds),
            threshold=settings.failure_threshold,
            rest=timedelta(seconds=settings.rest_seconds),
        ),
    )


def _scheduler(base: Base) -> SchedulerService:
    return SchedulerService(
        transitions=base.transitions,
        store=base.parts.store,
        clock=base.parts.clock,
        buckets=base.settings.buckets,
        rules=base.scheduler_rules,
        admission=Admission(offers=base.offers, clock=base.parts.clock, most=base.settings.most_open_requests),
        measures=base.parts.measures,
    )


def _inbox(base: Base) -> Inbox:
    parts = base.parts
    return Inbox(service=_scheduler(base), poison=parts.poison, bus=parts.bus, clock=parts.clock)


def _agent(base: Base, name: str) -> AgentService:
    settings, parts = base.settings, base.parts
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
            in_flight=settings.calls_in_flight.get(name, CALLS_IN_FLIGHT),
            clock=parts.clock,
        ),
        gauge=Gauge(
            agent=name,
            instance=settings.instance_id,
            circuit=circuit,
            measures=parts.measures,
            clock=parts.clock,
        ),
    )


def _supervisor(base: Base) -> SupervisorService:
    return SupervisorService(
        transitions=base.transitions,
        store=base.parts.store,
        leadership=base.parts.leadership,
        sweeps=base.parts.sweeps,
        clock=base.parts.clock,
        buckets=base.settings.buckets,
        rules=base.supervisor_rules,
    )


def _simulator(base: Base) -> Simulator:
    return Simulator(ledger=base.parts.ledger, clock=base.parts.clock, sleep=asyncio.sleep, chance=random.random)
