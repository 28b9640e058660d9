"""The app's settings on the embedded stack. Short times let a person watch a recovery."""

from collections.abc import Mapping, Sequence

from engine.declarations.business import AgentDefinition
from functions_alone.connections import service_bus_connection_string, storage_connection_string
from functions_alone.ports import HOST, Ports

WATCHED = {"FAILURE_THRESHOLD": "25"}
"""Additional settings of `make run`.

While a service hangs, a reader has two minutes to repair it after the first failure.
"""
SLOWDOWN_FILE = "LOCAL_SLOWDOWN_FILE"
"""The setting with the file to which `make run` writes how slow the machine is."""
TIMES = {"STEP_TIMEOUT_SECONDS", "REMOTE_CALL_TIMEOUT_SECONDS"}
"""The settings that are longer on a slow machine."""


def app_settings(
    ports: Ports, operator_key: str, event_grid_key: str, agents: Sequence[AgentDefinition]
) -> dict[str, str]:
    """Return the environment of a functions host whose app also simulates the services of these agents."""
    storage = storage_connection_string(ports)
    return {
        "StateStorage": storage,
        "AzureWebJobsStorage": storage,
        "ServiceBus": service_bus_connection_string(ports),
        "EVENT_GRID_ENDPOINT": f"http://{HOST}:{ports.eventgrid_port}/api/events",
        "EVENT_GRID_KEY": event_grid_key,
        **_channels(ports),
        "SIMULATOR_ENABLED": "true",
        **simulated(agents, f"http://{HOST}:{ports.http_port}"),
        "STEP_TIMEOUT_SECONDS": "5",
        "FAILURE_THRESHOLD": "3",
        "CLOCK_TOLERANCE_SECONDS": "1",
        "LEASE_SECONDS": "15",
        "BUCKETS": "8",
        "REMOTE_CALL_TIMEOUT_SECONDS": "2",
        "REPLY_MARGIN_SECONDS": "0.5",
        "CIRCUIT_OPEN_SECONDS": "5",
        "COOLDOWN_SECONDS": "30",
        "MAX_RETRY_PAUSE_SECONDS": "2",
        "UNKNOWN_NAME_MAX_DELIVERIES": "3",
        "SUPERVISOR_SCHEDULE": "*/2 * * * * *",
        "SCHEDULER_POLL_SCHEDULE": "*/2 * * * * *",
        "OUTBOX_SCHEDULE": "*/2 * * * * *",
        "STALL_DETECTOR_SCHEDULE": "*/5 * * * * *",
        "NOTIFY_SCHEDULE": "*/5 * * * * *",
        "ALERT_INTERVAL_SECONDS": "60",
        "MAX_SILENCE_SECONDS": "600",
        "PENDING_ALERT_SECONDS": "120",
        "SWEEP_ALERT_SECONDS": "60",
        "PUBLIC_CALLS_PER_MINUTE": "0",
        "PUBLIC_URL": f"http://{HOST}:{ports.http_port}",
        "LOCAL_FUNCTION_KEY": operator_key,
    }


def _channels(ports: Ports) -> Mapping[str, str]:
    """Return the settings of the channels that have a stand-in."""
    webhooks = f"http://{HOST}:{ports.channels_port}/webhooks"
    return {
        "SMTP_URL": f"smtp://{HOST}:{ports.smtp_port}",
        "SMTP_SENDER": "orders@example.com",
        "ALERT_RECIPIENTS": "operators@example.com",
        "TEAMS_WEBHOOK_URL": f"{webhooks}/teams",
        "SLACK_WEBHOOK_URL": f"{webhooks}/slack",
    }


def simulated(
    agents: Sequence[AgentDefinition], app: str, *, with_optional: bool = False
) -> Mapping[str, str]:
    """Return the settings of agents whose services are simulated by the app at this address."""
    return {
        agent.address: simulated_address(app, agent.name)
        for agent in agents
        if agent.address and (with_optional or not agent.optional)
    }


def simulated_address(app: str, agent: str) -> str:
    return f"{app}/simulator/{agent}"
