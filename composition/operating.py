"""The roles that tell people what happens, and let them act: alerts, notices, the watch, the operators' tools."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import partial

import azure.functions as func

import alerts.service
import alerts.triggers
import operators.triggers
import submission.service
import workflows
from alerts.notices import NoticeService
from alerts.service import AlertService
from alerts.versions import Versions
from alerts.watch import Watch
from composition.base import Base
from core.ports import TextQueue
from operators.alerts import AlertDesk
from operators.bulk import BulkService
from operators.explain import ActingRules
from operators.health import HealthService
from operators.overview import OverviewService
from operators.poison import PoisonService
from operators.retention import RetentionService
from operators.service import OperatorService
from operators.triggers import OperatorServices
from scheduler.rules import LONGEST_UPGRADE
from scheduler.service import FRESH, WAKE_UP_TIME


def blueprints(base: Base) -> Iterator[func.Blueprint]:
    """Return the functions of these roles."""
    yield alerts.triggers.blueprint(_alerts(base), _notices(base), _watch(base), _versions(base))
    yield operators.triggers.blueprint(_operators(base))
    yield operators.triggers.relay(base.parts.poison, _storage_queues(base), base.bus_queues)


def _alerts(base: Base) -> AlertService:
    return AlertService(
        store=base.parts.store,
        publisher=base.parts.events,
        alert_log=base.parts.alerts,
        poison=base.parts.poison,
        buckets=base.settings.buckets,
    )


def _notices(base: Base) -> NoticeService:
    return NoticeService(
        store=base.parts.store,
        bus=base.parts.bus,
        clock=base.parts.clock,
        buckets=base.settings.buckets,
        most_tries=base.settings.notice_tries,
    )


def _watch(base: Base) -> Watch:
    return Watch(
        store=base.parts.store,
        sweeps=base.parts.sweeps,
        clock=base.parts.clock,
        buckets=base.settings.buckets,
        longest_pending=timedelta(seconds=base.settings.longest_pending_seconds),
        longest_without_sweep=timedelta(seconds=base.settings.longest_without_sweep_seconds),
    )


def _versions(base: Base) -> Versions:
    parts = base.parts
    return Versions(workflows=workflows.ALL, known=parts.known_workflows, store=parts.store, clock=parts.clock)


def _operators(base: Base) -> OperatorServices:
    orders, poison = _orders(base), _poison(base)
    return OperatorServices(
        orders=orders,
        bulk=_bulk(base),
        alerts=AlertDesk(alert_log=base.parts.alerts, clock=base.parts.clock),
        poison=poison,
        overview=_overview(base, poison),
        retention=_retention(base),
        health=_health(base, orders),
    )


def _orders(base: Base) -> OperatorService:
    return OperatorService(
        transitions=base.transitions,
        store=base.parts.store,
        archive=base.parts.archive,
        clock=base.parts.clock,
        workflows=workflows.ALL,
        acting=ActingRules(
            claim=base.scheduler_rules.claim,
            recover=base.supervisor_rules.recover,
            poll_delay=WAKE_UP_TIME,
            clock_tolerance=base.tolerance,
            offers=base.offers,
            fresh=FRESH,
            longest_upgrade=LONGEST_UPGRADE,
        ),
        measures=base.parts.measures,
        buckets=base.settings.buckets,
    )


def _bulk(base: Base) -> BulkService:
    return BulkService(
        transitions=base.transitions,
        store=base.parts.store,
        clock=base.parts.clock,
        workflows=workflows.ALL,
        clock_tolerance=base.tolerance,
        buckets=base.settings.buckets,
    )


def _poison(base: Base) -> PoisonService:
    parts = base.parts
    return PoisonService(
        poison=parts.poison,
        bus=parts.bus,
        storage_queues=_storage_queues(base),
        bus_queues=base.bus_queues,
        clock=parts.clock,
    )


def _storage_queues(base: Base) -> Mapping[str, TextQueue]:
    return {submission.service.QUEUE: base.parts.submissions, alerts.service.QUEUE: base.parts.alert_queue}


def _overview(base: Base, poison: PoisonService) -> OverviewService:
    return OverviewService(
        store=base.parts.store,
        measures=base.parts.measures,
        sweeps=base.parts.sweeps,
        poison=poison,
        clock=base.parts.clock,
        buckets=base.settings.buckets,
    )


def _retention(base: Base) -> RetentionService:
    days = base.settings.retention_days
    return RetentionService(
        transitions=base.transitions,
        archive=base.parts.archive,
        alert_log=base.parts.alerts,
        poison=_poison(base),
        submission_keys=base.parts.keys,
        clock=base.parts.clock,
        keep=timedelta(days=days) if days else None,
        buckets=base.settings.buckets,
    )


def _health(base: Base, orders: OperatorService) -> HealthService:
    return HealthService(
        checks={
            "stateStore": orders.probe,
            "submissionQueue": base.parts.submissions.probe,
            "serviceBus": partial(base.parts.bus.probe, base.bus_queues),
        }
    )
