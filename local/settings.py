"""The app's settings on the embedded stack: short times, so that a person can watch a recovery."""

from collections.abc import Mapping, Sequence

from core.business import Agent
from local.ports import HOST, Ports

AZURITE_ACCOUNT = "devstoreaccount1"
AZURITE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


def storage_connection_string(ports: Ports) -> str:
    """Return how to reach Azurite."""
    services = {"Blob": ports.blob_port, "Queue": ports.queue_port, "Table": ports.table_port}
    endpoints = "".join(
        f"{name}Endpoint=http://{HOST}:{port}/{AZURITE_ACCOUNT};" for name, port in services.items()
    )
    return f"DefaultEndpointsProtocol=http;AccountName={AZURITE_ACCOUNT};AccountKey={AZURITE_KEY};{endpoints}"


def service_bus_connection_string(ports: Ports) -> str:
    """Return how to reach the local broker, in the form that the emulator's users know."""
    return (
        f"Endpoint=sb://localhost:{ports.amqp_port};SharedAccessKeyName=RootManageSharedAccessKey;"
        "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;"
    )


HOST_SETTINGS = {"LOCAL_QUEUE_LOCK_SECONDS": "30"}
"""What takes minutes in Azure, and would seem to be stuck to a person who watches."""


def app_settings(
    ports: Ports, operator_key: str, event_grid_key: str, agents: Sequence[Agent]
) -> dict[str, str]:
    """Return the environment of a functions host, where the app also plays the services of these agents."""
    storage = storage_connection_string(ports)
    return {
        "StateStorage": storage,
        "AzureWebJobsStorage": storage,
        "ServiceBus": service_bus_connection_string(ports),
        "EVENT_GRID_ENDPOINT": f"http://{HOST}:{ports.eventgrid_port}/api/events",
        "EVENT_GRID_KEY": event_grid_key,
        "SIMULATOR_ENABLED": "true",
        **simulated(agents, f"http://{HOST}:{ports.http_port}"),
        "STEP_TIMEOUT_SECONDS": "5",
        "FAILURE_THRESHOLD": "3",
        "CLOCK_TOLERANCE_SECONDS": "1",
        "LEASE_SECONDS": "15",
        "BUCKETS": "8",
        "REMOTE_CALL_TIMEOUT_SECONDS": "2",
        "AGENT_MARGIN_SECONDS": "0.5",
        "CIRCUIT_OPEN_SECONDS": "5",
        "COOLDOWN_SECONDS": "30",
        "UNKNOWN_NAME_TRIES": "3",
        "SUPERVISOR_SCHEDULE": "*/2 * * * * *",
        "SCHEDULER_POLL_SCHEDULE": "*/2 * * * * *",
        "OUTBOX_SCHEDULE": "*/2 * * * * *",
        "WATCH_SCHEDULE": "*/5 * * * * *",
        "LONGEST_PENDING_SECONDS": "120",
        "LONGEST_WITHOUT_SWEEP_SECONDS": "60",
        "OPERATOR_KEY": operator_key,
    }


def simulated(
    agents: Sequence[Agent], app: str, *, with_optional: bool = False
) -> Mapping[str, str]:
    """Return the settings of agents whose services are simulated by the app at this address."""
    return {
        agent.address: f"{app}/simulator/{agent.name}"
        for agent in agents
        if agent.address and (with_optional or not agent.optional)
    }
