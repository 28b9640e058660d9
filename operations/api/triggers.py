"""Binds the operators' API, retention, and the queues of messages that failed too often.

All routes except the health check begin with /api/operator.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import azure.functions as func

from engine.decisions.operator_actions import ACTIONS, RUNS, AnyAction
from engine.domain.causes import Cause, Code
from engine.domain.messages import DEAD_LETTERS
from engine.http.openapi import Route
from engine.runtime.functions import (
    Functions,
    on_bus,
    on_storage_queue,
    retry_while_unavailable,
    skip_overlapping_runs,
)
from engine.storage.copies import COPY_ID
from engine.storage.poison import PoisonStore
from engine.words.catalogue import text
from operations.api.agents import AgentPauseService
from operations.api.alerts import AlertService
from operations.api.bulk import BulkService
from operations.api.channels import ChannelService
from operations.api.copies import CopyService
from operations.api.external_events import ExternalEventService, external_event_routes
from operations.api.health import HealthService
from operations.api.live import LiveService
from operations.api.overview import OverviewService
from operations.api.poison import PoisonService, source_of
from operations.api.requests import OperatorRequest, act_request
from operations.api.retention import RetentionService
from operations.api.runs import Ran, RunService
from operations.api.service import OperatorService
from operations.api.views import Acted

EVERY_HOUR = "0 17 * * * *"

ORDER = "api/operator/orders/{orderId}"
AGENT = "api/operator/agents/{name}"
RESTORE = "api/operator/restore/{copy}"
COPY = {"copy": COPY_ID.pattern}
POISON = "api/operator/poison/{queue}/{messageId}"


@dataclass(frozen=True, kw_only=True, slots=True)
class OperatorServices:
    """All services for operators."""

    orders: OperatorService
    external_events: ExternalEventService
    bulk: BulkService
    agents: AgentPauseService
    alerts: AlertService
    channels: ChannelService
    poison: PoisonService
    overview: OverviewService
    live: LiveService
    retention: RetentionService
    health: HealthService
    runs: RunService
    copies: CopyService


def operator_routes(services: OperatorServices) -> Sequence[Route]:
    """Return the operators' routes.

    Each is an Azure function and a part of the OpenAPI description.
    """
    orders, overview, retention = services.orders, services.overview, services.retention
    agents, alerts, poison = services.agents, services.alerts, services.poison
    return [
        Route("health_report", "GET", "api/health", services.health.report, open=True),
        Route("operator_vocabulary", "GET", "api/operator/vocabulary", orders.vocabulary),
        Route("operator_overview", "GET", "api/operator/overview", overview.look),
        Route("operator_live", "GET", "api/operator/live", services.live.look),
        Route("operator_follow", "POST", "api/operator/follow", overview.follow),
        Route("operator_figures", "GET", "api/operator/figures", overview.last_hour),
        Route("operator_orders", "GET", "api/operator/orders", orders.list),
        Route("operator_audit", "GET", "api/operator/audit", orders.audit),
        Route("operator_search", "GET", "api/operator/search", orders.search),
        Route("operator_order", "GET", ORDER, orders.inspect),
        Route("operator_explain", "GET", f"{ORDER}/explain", orders.explain),
        *(_acting(action, orders) for action in ACTIONS),
        *external_event_routes(services.external_events),
        Route("operator_reveal", "POST", f"{ORDER}/reveal", orders.reveal),
        Route("operator_erase", "POST", f"{ORDER}/erase", retention.erase),
        Route("operator_bulk", "POST", "api/operator/bulk", services.bulk.run),
        Route("operator_find_customer", "POST", "api/operator/customers/find", retention.find),
        Route("operator_agent_pause", "POST", f"{AGENT}/pause", agents.pause),
        Route("operator_agent_resume", "POST", f"{AGENT}/resume", agents.resume),
        Route("operator_alerts", "GET", "api/operator/alerts", alerts.list),
        Route("operator_alert_causes", "GET", "api/operator/alerts/causes", alerts.causes),
        Route(
            "operator_alerts_acknowledge",
            "POST",
            "api/operator/alerts/acknowledge",
            alerts.acknowledge,
        ),
        Route("operator_channels", "GET", "api/operator/channels", services.channels.list),
        Route("operator_poison", "GET", "api/operator/poison", poison.list),
        Route("operator_poison_redrive", "POST", f"{POISON}/redrive", poison.redrive),
        Route("operator_poison_drop", "POST", f"{POISON}/drop", poison.drop),
        *(_running(name, services.runs) for name in RUNS),
        Route("operator_export", "POST", "api/operator/export", services.copies.export),
        Route("operator_restore", "POST", RESTORE, services.copies.restore, patterns=COPY),
        Route("operator_restore_end", "POST", f"{RESTORE}/end", services.copies.end, patterns=COPY),
    ]


def _acting(action: AnyAction, orders: OperatorService) -> Route:
    async def act(order_id: str, request: OperatorRequest) -> Acted:
        return await orders.act(action, order_id, request)

    act.__annotations__["request"] = act_request(action)
    act.__doc__ = text(f"action.{action.name}.effect")
    return Route(_function(action.name), "POST", f"{ORDER}/{action.name}", act)


def _function(name: str) -> str:
    # Names of settings contain the function's name, so it has no hyphens.
    return f"operator_{name.replace('-', '_')}"


def _running(name: str, runs: RunService) -> Route:
    async def run(request: OperatorRequest) -> Ran:
        return await runs.run(name, request)

    run.__doc__ = text(f"run.{name}")
    return Route(_function(f"run-{name}"), "POST", f"api/operator/run/{name}", run)


def retention_functions(retention: RetentionService) -> func.Blueprint:
    """Make the function that removes old records."""
    triggers = Functions()

    @triggers.timer_trigger(arg_name="timer", schedule=EVERY_HOUR, use_monitor=False)
    async def operator_retention(timer: func.TimerRequest) -> None:
        await skip_overlapping_runs("operator_retention", retention.sweep)

    return triggers


def poison_functions(
    poison: PoisonStore, storage_queues: Iterable[str], bus_queues: Iterable[str]
) -> func.Blueprint:
    """Make the functions that keep messages as poison after the platform's last delivery."""
    triggers = Functions()
    for queue in storage_queues:
        _bind_poison_queue(triggers, queue, poison)
    _bind_dead_letters(triggers, bus_queues, poison)
    return triggers


def _bind_poison_queue(triggers: Functions, queue: str, poison: PoisonStore) -> None:
    name = f"given_up_{queue.replace('-', '_')}"

    @triggers.function_name(name)
    @triggers.queue_trigger(
        arg_name="message", queue_name=f"{queue}-poison", connection="StateStorage"
    )
    async def keep(message: func.QueueMessage) -> None:
        kept = partial(
            poison.put, queue, message.get_body(), given_up(""), on_storage_queue(message)
        )
        await retry_while_unavailable(name, kept)


def given_up(detail: str) -> Cause:
    """Return the reason for a message that the platform delivered too often."""
    return Cause(Code.FAILED_TOO_OFTEN, {"detail": detail})


def _reason(properties: Mapping[str, object]) -> Cause:
    """Return why the bus dead-lettered a message. Azure gives it only as application properties."""
    texts = [properties.get(name) for name in ("DeadLetterReason", "DeadLetterErrorDescription")]
    return given_up(", ".join(str(text) for text in texts if text))


def _bind_dead_letters(triggers: Functions, queues: Iterable[str], poison: PoisonStore) -> None:
    @triggers.service_bus_queue_trigger(
        arg_name="message", queue_name=DEAD_LETTERS, connection="ServiceBus"
    )
    async def given_up_dead_letters(message: func.ServiceBusMessage) -> None:
        kept = partial(
            poison.put,
            source_of(message.dead_letter_source, queues),
            message.get_body(),
            _reason(message.application_properties or {}),
            on_bus(message),
            message.correlation_id,
        )
        await retry_while_unavailable("given_up_dead_letters", kept)
