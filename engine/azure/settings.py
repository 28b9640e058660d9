"""The settings: one frozen object, read once from the environment. All faults are in one error."""

import os
import re
import secrets
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    BeforeValidator,
    Field,
    IPvAnyNetwork,
    SecretStr,
    SkipValidation,
    ValidationError,
)
from pydantic_settings import NoDecode, SettingsConfigDict

from engine.azure.agent_settings import addresses_of, faults_of, scopes_of, values_of
from engine.azure.channels.settings import EXPECTED as EXPECTED_OF_CHANNELS
from engine.azure.channels.settings import ChannelSettings, channel_faults
from engine.azure.schedules import schedule_faults, span_faults
from engine.declarations.business import AgentDefinition
from engine.declarations.faults import Fault, FaultCode, StartUpError
from engine.declarations.workflow import LONGEST_TIMEOUT, LONGEST_WAIT, MOST_TRIES
from engine.domain.messages import DEAD_LETTERS, MAX_RETRY_AFTER_SECONDS, OPERATORS, bus_queues
from engine.urls import URL
from engine.words.catalogue import ENGLISH, languages
from engine.words.faults import text_of

Url = Annotated[str, Field(pattern=f"^{URL.pattern}$")]
StorageUri = Annotated[str, Field(pattern=r"^https://\S+$")]
Seconds = Annotated[float, Field(gt=0, le=LONGEST_WAIT.total_seconds())]
StepSeconds = Annotated[float, Field(gt=0, le=LONGEST_TIMEOUT.total_seconds())]
"""A time of up to the longest time-out of an attempt."""
PauseSeconds = Annotated[float, Field(gt=0, le=MAX_RETRY_AFTER_SECONDS)]
"""A pause that fits into an agent's reply."""

PUBLIC = r"^https?://[^\s/@?#]+(/[^\s@?#]*)?$"
ON_THIS_MACHINE = re.compile(r"http://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?(/|$)")
"""Addresses at which no other machine can listen."""

EXPECTED = {
    "StateStorage__tableServiceUri": "an https:// address",
    "StateStorage__queueServiceUri": "an https:// address",
    "StateStorage__blobServiceUri": "an https:// address",
    "ServiceBus__fullyQualifiedNamespace": "a host name such as orders.servicebus.windows.net",
    "EVENT_GRID_ENDPOINT": "the topic's address, https:// (http:// on this machine)",
    "CALLS_IN_FLIGHT": 'JSON such as {"<agent>": 50}',
    "REPLY_TO_PREFIX": "a prefix of queue names",
    "PUBLIC_URL": "the app's own address, such as https://orders.example.com",
    "LOG_LINK": "an address with {orderId} in it, https://…",
    "RUNBOOK_URL": "the address of docs/operations/runbooks.md, https://…, without a #",
    "TRUSTED_PROXIES": "addresses and networks with commas, such as 203.0.113.7, 10.0.0.0/8",
    "SUPERVISOR_SCHEDULE": "an NCRONTAB schedule for sweeps, such as */15 * * * * *",
    "SCHEDULER_POLL_SCHEDULE": "an NCRONTAB schedule for the poll, such as */30 * * * * *",
    "OUTBOX_SCHEDULE": "an NCRONTAB schedule for the outbox, such as */30 * * * * *",
    "STALL_DETECTOR_SCHEDULE": "an NCRONTAB schedule for the stall detector, such as 0 * * * * *",
    "NOTIFY_SCHEDULE": "an NCRONTAB schedule for messages about alerts, such as 0 * * * * *",
    **EXPECTED_OF_CHANNELS,
}


def _listed(text: Any) -> Any:
    """Split a list at its commas."""
    if not isinstance(text, str):
        return text
    return [part.strip() for part in text.split(",") if part.strip()]


SCHEDULES = tuple(name for name in EXPECTED if name.endswith("_SCHEDULE"))
"""The settings with the schedule of a timer."""


class SettingsError(StartUpError):
    """The settings cannot be used. `faults` lists all of their faults."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(sorted(faults, key=text_of))


def default_instance_id() -> str:
    """Return a unique name for this process, which shows the host that it runs on."""
    host = os.environ.get("WEBSITE_INSTANCE_ID") or socket.gethostname()
    short = re.sub(r"[^A-Za-z0-9-]", "", host)[:12]
    return f"{short}-{os.getpid()}-{secrets.token_hex(3)}"


class Settings(ChannelSettings):
    """The settings of a deployment. Names of environment variables are case-sensitive."""

    model_config = SettingsConfigDict(
        frozen=True,
        case_sensitive=True,
        env_ignore_empty=True,
        extra="ignore",
        validate_by_name=True,
    )

    state_storage: SecretStr | None = Field(None, alias="StateStorage")
    """The storage account's connection string. It replaces the three addresses and the identity."""
    table_service_uri: StorageUri | None = Field(None, alias="StateStorage__tableServiceUri")
    """The address of the storage account's tables."""
    queue_service_uri: StorageUri | None = Field(None, alias="StateStorage__queueServiceUri")
    """The address of the storage account's queues."""
    blob_service_uri: StorageUri | None = Field(None, alias="StateStorage__blobServiceUri")
    """The address of the storage account's blobs."""
    storage_client_id: str | None = Field(None, alias="StateStorage__clientId")
    """The client id of a user-assigned managed identity for storage.

    With this identity the app also gets tokens for the services of agents, and sends mail.
    """
    service_bus: SecretStr | None = Field(None, alias="ServiceBus")
    """The connection string of the namespace. It replaces the host name and the identity."""
    service_bus_namespace: Annotated[str, Field(pattern=r"^[A-Za-z0-9.-]+$")] | None = Field(
        None, alias="ServiceBus__fullyQualifiedNamespace"
    )
    """The host name of the namespace, such as orders.servicebus.windows.net."""
    service_bus_client_id: str | None = Field(None, alias="ServiceBus__clientId")
    """The client id of a user-assigned managed identity for Service Bus."""
    event_grid_endpoint: Url = Field(alias="EVENT_GRID_ENDPOINT")
    """The address of the Event Grid topic."""
    event_grid_key: SecretStr | None = Field(None, alias="EVENT_GRID_KEY")
    """The key of the topic. Without a key, the app uses its managed identity."""
    event_grid_client_id: str | None = Field(None, alias="EVENT_GRID__clientId")
    """The client id of a user-assigned managed identity for Event Grid."""
    addresses: Mapping[str, str] = Field(default_factory=dict)
    """The address of each agent's service, from the setting that the agent declares."""
    scopes: Mapping[str, str] = Field(default_factory=dict)
    """The token scope of each agent whose service needs one, such as `api://<app id>/.default`."""
    values: Mapping[str, SecretStr] = Field(default_factory=dict)
    """The settings by which the agents show who calls, by the names that they declare."""
    declared: SkipValidation[Mapping[str, AgentDefinition]] = Field(default_factory=dict)
    """The agents as the business declares them, by name."""
    calls_in_flight: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default_factory=dict, alias="CALLS_IN_FLIGHT"
    )
    """How many concurrent calls the service of each agent takes, such as `{"my-agent": 50}`.

    For any other agent, the `calls_in_flight` of its declaration applies.
    """
    max_concurrent_calls: int = Field(100, alias="MAX_CONCURRENT_CALLS", ge=1)
    """The most concurrent calls of one agent in one process, even if the service takes more."""
    circuit_orders: int = Field(10, alias="CIRCUIT_ORDERS", ge=1, le=1000)
    """The circuit of an agent opens when calls for this many orders fail, without a success in
    between (AGT-8)."""
    circuit_open_seconds: PauseSeconds = Field(30, alias="CIRCUIT_OPEN_SECONDS")
    """How long the circuit stays open before a half-open probe.

    The time grows with each probe that fails, to at most ten times this value.
    """
    longest_retry_after_seconds: PauseSeconds = Field(600, alias="LONGEST_RETRY_AFTER_SECONDS")
    """The longest pause that a service can request. A longer `Retry-After` is shortened to it."""
    cooldown_seconds: Seconds = Field(600, alias="COOLDOWN_SECONDS")
    """How long a cooldown lasts, unless the step has its own `cooldown`."""
    max_retry_pause_seconds: float = Field(
        300,
        alias="MAX_RETRY_PAUSE_SECONDS",
        ge=0,
        le=LONGEST_WAIT.total_seconds(),
    )
    """The longest pause before a retry, unless the step has its own `max_retry_pause`.

    The first retry has no pause. Before further retries, the longest possible pause doubles each
    time. 0 means no pauses (SUP-3).
    """
    simulator_enabled: bool = Field(default=False, alias="SIMULATOR_ENABLED")
    """Whether the app also simulates the remote services. Never set this to true in production."""
    operator_sign_in: bool = Field(default=False, alias="OPERATOR_SIGN_IN")
    """Whether operators sign in with App Service authentication.

    If false, the app ignores the headers in which the platform names the user (OPR-10).
    """
    operator_role: str = Field("", alias="OPERATOR_ROLE")
    """The app role that a signed-in user needs to be an operator.

    If it is empty, everybody who signs in is an operator.
    """
    step_timeout_seconds: StepSeconds = Field(60, alias="STEP_TIMEOUT_SECONDS")
    """How long one attempt at a step may take, unless the step has its own `timeout`."""
    failure_threshold: int = Field(3, alias="FAILURE_THRESHOLD", ge=1, le=MOST_TRIES)
    """A step fails or cools down when its failures reach this number (SUP-3).

    A step with its own `threshold` ignores this setting.
    """
    max_unbegun_attempts: int = Field(12, alias="MAX_UNBEGUN_ATTEMPTS", ge=1, le=MOST_TRIES)
    """A step fails or cools down after this many requests in a row that no agent began (SUP-9).

    The pauses between the requests grow (SCH-16). With a timeout of 60 seconds, twelve requests
    take at least 16 minutes.
    """
    clock_tolerance_seconds: float = Field(2, alias="CLOCK_TOLERANCE_SECONDS", ge=0, le=60)
    """The largest expected difference between the clocks of two machines.

    A reply counts until this time after the complete-by time, and the supervisor waits as long.
    """
    lease_seconds: int = Field(30, alias="LEASE_SECONDS", ge=15, le=60)
    """How long the lease of the supervisor that sweeps lasts if it is not renewed (SUP-5)."""
    buckets: int = Field(8, alias="BUCKETS", ge=1, le=100)
    """The number of buckets for new orders. You can raise it at any time, but never lower it."""
    remote_call_timeout_seconds: StepSeconds = Field(10, alias="REMOTE_CALL_TIMEOUT_SECONDS")
    """How long an agent waits for the answer to one call of its service."""
    reply_margin_seconds: float = Field(1, alias="REPLY_MARGIN_SECONDS", ge=0, allow_inf_nan=False)
    """How long before the complete-by time an agent stops its calls (AGT-4).

    So its reply arrives in time, even if the clocks of two machines differ.
    """
    slowdown_file: Path | None = Field(None, alias="LOCAL_SLOWDOWN_FILE")
    """The file to which `make run` writes how slow the machine is. Never set this on Azure."""
    retention_days: float = Field(0, alias="RETENTION_DAYS", ge=0, le=10_000)
    """How many days ended orders, alerts, poison messages and idempotency keys are kept.

    0 keeps them for ever. An order that waits for an operator is always kept.
    """
    reply_to_prefix: str = Field(
        "status-", alias="REPLY_TO_PREFIX", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
    )
    """The prefix of the queues to which the app may send notifications (SUB-5).

    A submission whose `replyTo` has another prefix is rejected.
    """
    unknown_name_max_deliveries: int = Field(24, alias="UNKNOWN_NAME_MAX_DELIVERIES", ge=1, le=90)
    """After this many deliveries, a submission to an unknown workflow or bucket is kept as poison.

    Until then, a host with a newer version may receive the submission (FLT-12). The pause between
    two deliveries is the `visibilityTimeout` in `host.json`, so 24 deliveries take two minutes.
    That is longer than two versions run side by side in an upgrade. The number must be less than
    the `maxDequeueCount` in `host.json`. Otherwise the platform rejects the submission first, and
    the reason is lost.
    """
    notice_tries: int = Field(8, alias="NOTICE_TRIES", ge=1, le=100)
    """How many times a notification is sent to a queue that refuses it, with growing pauses.

    Then the notification is dropped, and an alert is raised.
    """
    mixed_version_seconds: Seconds = Field(86_400, alias="MIXED_VERSION_SECONDS")
    """How long a host leaves orders and messages of a newer version to newer hosts (FLT-12)."""
    max_silence_seconds: Seconds = Field(3600, alias="MAX_SILENCE_SECONDS")
    """A step fails or cools down when its order has waited this long for silent agents (SUP-9)."""
    pending_alert_seconds: Seconds = Field(900, alias="PENDING_ALERT_SECONDS")
    """An alert is raised if an order is claimable, or overdue, for longer than this (SUP-7).

    The same time applies to a submission in the queue and to a silent agent.
    """
    sweep_alert_seconds: Seconds = Field(300, alias="SWEEP_ALERT_SECONDS")
    """An alert is raised if the supervisor has not swept for longer than this (SUP-7)."""
    alert_operations_per_second: float = Field(
        50, alias="ALERT_OPERATIONS_PER_SECOND", ge=5, le=1000
    )
    """The limit of table operations in each process for alerts and notifications."""
    log_link: str = Field("", alias="LOG_LINK", pattern=r"^(https?://\S*\{orderId\}\S*)?$")
    """The address at which operators read the log of an order. It contains `{orderId}`.

    If it is empty, the console shows no link.
    """
    runbook_url: str = Field("", alias="RUNBOOK_URL", pattern=r"^(https?://[^\s#]+)?$")
    """The address at which operators read `docs/operations/runbooks.md`.

    If it is empty, alerts have no link to a runbook.
    """
    language: str = Field(ENGLISH, alias="APP_LANGUAGE")
    """The language of texts for people: the name of a catalogue in `engine/words`, such as `en`.

    `pseudo` is English with accents, for tests of a translation.
    """
    public_url: Annotated[str, Field(pattern=PUBLIC)] | None = Field(None, alias="PUBLIC_URL")
    """The address at which others reach the app. Callback URLs begin with it (ANS-6).

    If a workflow waits for external events, or an agent has `calls_back`, the app does not start
    without this setting.
    """
    public_calls_per_minute: int = Field(300, alias="PUBLIC_CALLS_PER_MINUTE", ge=0, le=100_000)
    """How many public calls a minute each process accepts from one address. 0 means no limit."""
    trusted_proxies: Annotated[tuple[IPvAnyNetwork, ...], NoDecode, BeforeValidator(_listed)] = (
        Field((), alias="TRUSTED_PROXIES")
    )
    """The proxies in front of Azure's front end: addresses and networks, separated by commas.

    The app believes the address of a caller in `X-Forwarded-For` only if one of these proxies, or
    Azure's front end, added it.
    """
    instance_id: str = Field(default_factory=default_instance_id)
    """The value of `LockedBy` while this process handles an order."""
    supervisor_schedule: str = Field(alias="SUPERVISOR_SCHEDULE")
    """When the supervisor sweeps, such as `*/15 * * * * *` for every 15 seconds."""
    scheduler_poll_schedule: str = Field(alias="SCHEDULER_POLL_SCHEDULE")
    """When the scheduler polls for orders whose wake-up was lost."""
    outbox_schedule: str = Field(alias="OUTBOX_SCHEDULE")
    """When the relay sends alerts and notifications from the outbox."""
    stall_detector_schedule: str = Field(alias="STALL_DETECTOR_SCHEDULE")
    """When the stall detector looks for work that stands still."""
    notify_schedule: str = Field(alias="NOTIFY_SCHEDULE")
    """When digests of new alerts are sent to people."""

    @property
    def channels(self) -> ChannelSettings:
        return self

    @property
    def agents(self) -> Sequence[str]:
        """The names of the deployed agents: those with an address, and those that need none."""
        without = [name for name, agent in self.declared.items() if not agent.address]
        return [*self.addresses, *without]

    def value(self, name: str) -> str:
        """Return a setting of an agent, which may be secret. Empty if it is not set."""
        return self.values[name].get_secret_value() if name in self.values else ""

    @classmethod
    def read(cls, agents: Sequence[AgentDefinition]) -> Self:
        """Read the environment, including the agents' settings.

        Raises `SettingsError` with all faults.
        """
        faults = [*_connection_faults(os.environ), *faults_of(agents, os.environ)]
        faults += [*_schedule_faults(os.environ), *span_faults(os.environ)]
        try:
            settings = cls(
                addresses=addresses_of(agents, os.environ),
                scopes=scopes_of(agents, os.environ),
                values=values_of(agents, os.environ),
                declared={agent.name: agent for agent in agents},
            )
        except ValidationError as error:
            raise SettingsError([*faults, *_field_faults(error)]) from None
        faults += _cross_faults(settings)
        if faults:
            raise SettingsError(faults)
        return settings


def _missing(name: str) -> Fault:
    return Fault(FaultCode.SETTING_MISSING, name, expected=EXPECTED[name])


def _field_faults(error: ValidationError) -> Iterator[Fault]:
    for found in error.errors(include_url=False, include_input=False):
        name, *inner = map(str, found["loc"])
        message = ": ".join([".".join(inner), found["msg"]]) if inner else found["msg"]
        if found["type"] == "missing" and not inner:
            yield _missing(name)
        elif name in EXPECTED:
            expected = EXPECTED[name]
            yield Fault(FaultCode.SETTING_MALFORMED, name, message=message, expected=expected)
        else:
            yield Fault(FaultCode.SETTING_INVALID, name, message=message)


def _connection_faults(environ: Mapping[str, str]) -> Iterator[Fault]:
    uris = tuple(f"StateStorage__{service}ServiceUri" for service in ("table", "queue", "blob"))
    if not environ.get("StateStorage"):
        unset = [uri for uri in uris if not environ.get(uri)]
        if len(unset) == len(uris):
            yield Fault(FaultCode.CONNECTION_MISSING, "StateStorage", alternatives=uris)
        else:
            yield from map(_missing, unset)
    namespace = "ServiceBus__fullyQualifiedNamespace"
    if not environ.get("ServiceBus") and not environ.get(namespace):
        yield Fault(FaultCode.CONNECTION_MISSING, "ServiceBus", alternatives=(namespace,))


def _schedule_faults(environ: Mapping[str, str]) -> Iterator[Fault]:
    for name in SCHEDULES:
        if text := environ.get(name):
            yield from schedule_faults(name, text)


def _cross_faults(settings: Settings) -> Iterator[Fault]:
    if settings.event_grid_endpoint.startswith("http://") and not settings.event_grid_key:
        yield Fault(FaultCode.TOPIC_KEY_MISSING, "EVENT_GRID_KEY")
    if _is_readable_on_its_way(settings.event_grid_endpoint):
        yield Fault(FaultCode.NOT_HTTPS, "EVENT_GRID_ENDPOINT")
    names = settings.agents
    for name in settings.calls_in_flight.keys() - names:
        known = tuple(names)
        yield Fault(FaultCode.SETTING_UNKNOWN_AGENT, "CALLS_IN_FLIGHT", agent=name, agents=known)
    if _is_readable_on_its_way(settings.public_url or ""):
        yield Fault(FaultCode.NOT_HTTPS, "PUBLIC_URL")
    prefix = settings.reply_to_prefix.lower()  # Service Bus ignores case
    own_names = (*bus_queues(names), DEAD_LETTERS, OPERATORS)
    if taken := tuple(name for name in own_names if name.startswith(prefix)):
        yield Fault(FaultCode.PREFIX_TAKEN, "REPLY_TO_PREFIX", queues=taken)
    if settings.reply_margin_seconds >= settings.step_timeout_seconds:
        limit = "STEP_TIMEOUT_SECONDS"
        yield Fault(FaultCode.MARGIN_TOO_LONG, "REPLY_MARGIN_SECONDS", limit=limit)
    if settings.language not in languages():
        yield Fault(
            FaultCode.LANGUAGE_UNKNOWN,
            "APP_LANGUAGE",
            language=settings.language,
            languages=tuple(languages()),
        )
    yield from channel_faults(settings)


def _is_readable_on_its_way(address: str) -> bool:
    """Whether others between here and the address could read what is sent there."""
    return address.startswith("http://") and not ON_THIS_MACHINE.match(address)
