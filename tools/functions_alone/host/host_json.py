"""The parts of host.json that this host obeys or that Azure's host checks.

Everything else in the file is ignored. Azure's host does not start with a value outside these ranges.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from functions_alone.faults import LocalCode, StackFault
from functions_alone.host.errors import HostError

SHORTEST_LEASE_SECONDS = 15
"""The shortest lease that Blob Storage gives."""

_TIME_SPAN = re.compile(
    r"(?:([0-9]{1,6})\.)?([01]?[0-9]|2[0-3]):([0-5]?[0-9]):([0-5]?[0-9](?:\.[0-9]{1,7})?)"
)


def seconds_of(text: object) -> float:
    """Convert a .NET TimeSpan `[d.]hh:mm:ss[.fff]` to seconds. Raises ValueError for any other text.

    .NET reads more forms, some of them with a surprising result: `24:00:00` is 24 days.
    """
    match = _TIME_SPAN.fullmatch(str(text))
    if match is None:
        raise ValueError(f"not a time span from 00:00:00 to 23:59:59, or d.hh:mm:ss: {text}")
    days, hours, minutes, seconds = match.groups(default="0")
    return int(days) * 86400 + int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def _timeout_of(text: object) -> float | None:
    return None if text in ("-1", -1) else seconds_of(text)


TimeSpan = Annotated[float, BeforeValidator(seconds_of)]
Timeout = Annotated[Annotated[float, Field(ge=1)] | None, BeforeValidator(_timeout_of)]
"""Seconds, or None for no limit."""
AnyCase = BeforeValidator(lambda word: str(word).lower())


class _Section(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, frozen=True, extra="ignore")


class HttpOptions(_Section):
    """The section `extensions.http`."""

    route_prefix: str = "api"


class QueueOptions(_Section):
    """The section `extensions.queues`: times in seconds, with the defaults of extension bundle 4."""

    batch_size: int = Field(default=16, ge=1, le=32)
    new_batch_threshold: int | None = Field(default=None, ge=0)
    max_dequeue_count: int = Field(default=5, ge=1)
    visibility_timeout: TimeSpan = 0.0
    max_polling_interval: TimeSpan = Field(default=60.0, ge=0.1)
    message_encoding: Annotated[Literal["base64", "none"], AnyCase] = "base64"

    @property
    def threshold(self) -> int:
        """The number of running calls at which more messages are fetched."""
        return (
            self.batch_size // 2 if self.new_batch_threshold is None else self.new_batch_threshold
        )


class ClientRetryOptions(_Section):
    """The section `extensions.serviceBus.clientRetryOptions`, in seconds. This host does not obey it."""

    mode: Annotated[Literal["fixed", "exponential"], AnyCase] = "exponential"
    max_retries: int = Field(default=3, ge=0, le=100)
    delay: TimeSpan = Field(default=0.8, ge=0.001, le=300)
    max_delay: TimeSpan = 60.0
    try_timeout: TimeSpan = Field(default=60.0, le=3600)


class ServiceBusOptions(_Section):
    """The section `extensions.serviceBus`, with times in seconds."""

    prefetch_count: int = Field(default=0, ge=0)
    max_concurrent_calls: int = Field(default=16, ge=1)
    max_message_batch_size: int = Field(default=1000, ge=1)
    min_message_batch_size: int = Field(default=1, ge=1)
    max_batch_wait_time: TimeSpan = Field(default=30.0, le=150)
    max_auto_lock_renewal_duration: TimeSpan = 300.0
    client_retry_options: ClientRetryOptions = ClientRetryOptions()

    @field_validator("min_message_batch_size")
    @classmethod
    def _not_above_the_most(cls, least: int, info: ValidationInfo) -> int:
        if least > info.data.get("max_message_batch_size", least):
            raise ValueError("is more than maxMessageBatchSize")
        return least


class Extensions(_Section):
    """The section `extensions`."""

    http: HttpOptions = HttpOptions()
    queues: QueueOptions = QueueOptions()
    service_bus: ServiceBusOptions = ServiceBusOptions()


class SingletonOptions(_Section):
    """The section `singleton`, with times in seconds."""

    listener_lock_period: TimeSpan = Field(default=60.0, ge=SHORTEST_LEASE_SECONDS, le=60)
    """The time after which a timer's lock expires if it is not renewed."""
    listener_lock_recovery_polling_interval: TimeSpan = Field(
        default=60.0, ge=SHORTEST_LEASE_SECONDS
    )


class HostJson(_Section):
    """The whole host.json."""

    version: Literal["2.0"]
    function_timeout: Timeout = 1800.0
    singleton: SingletonOptions = SingletonOptions()
    extensions: Extensions = Extensions()


HOST_JSON = "LOCAL_HOST_JSON"
OVERRIDE = "AzureFunctionsJobHost__"
"""Prefix of settings that replace values of the file, as in Azure. The path follows, joined by `__`."""


def read_host_json(folder: Path, settings: Mapping[str, str]) -> HostJson:
    """Read `host.json`, with the values that app settings replace.

    If the app's folder has no such file, the setting `LOCAL_HOST_JSON` holds its path. Raises `HostError` if the file
    is absent or wrong.
    """
    path = folder / "host.json"
    if not path.exists() and HOST_JSON in settings:
        path = Path(settings[HOST_JSON])
    try:
        content = json.loads(path.read_bytes())
        for name, value in settings.items():
            if name.startswith(OVERRIDE):
                _replace(content, name.removeprefix(OVERRIDE).split("__"), value)
        return HostJson.model_validate(content)
    except OSError as error:
        raise HostError(_unreadable(path, error.strerror)) from error
    except ValidationError as error:
        raise HostError(*(_invalid(path, detail) for detail in error.errors())) from error
    except ValueError as error:
        raise HostError(_unreadable(path, error)) from error


def _unreadable(path: Path, reason: object) -> StackFault:
    return StackFault(LocalCode.HOST_JSON_UNREADABLE, str(path), {"reason": str(reason)})


def _invalid(path: Path, error: ErrorDetails) -> StackFault:
    place = ".".join(map(str, error["loc"])) or "the whole"
    facts = {"file": str(path), "reason": error["msg"]}
    return StackFault(LocalCode.HOST_JSON_INVALID, place, facts)


def _replace(content: dict[str, Any], path: Sequence[str], value: str) -> None:
    *sections, last = path
    for section in sections:
        content = content.setdefault(section, {})
        if not isinstance(content, dict):
            name = f"{OVERRIDE}{'__'.join(path)}"
            raise HostError(StackFault(LocalCode.HOST_JSON_OVERRIDE, name, {"section": section}))
    content[last] = value
