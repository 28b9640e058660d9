"""Conversion of decorated functions into typed records: the function and its trigger."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import azure.functions as func

from functions_alone.faults import LocalCode, StackFault
from functions_alone.host.errors import HostError
from functions_alone.host.settings import AppSettings

ANONYMOUS, FUNCTION = "ANONYMOUS", "FUNCTION"
"""Levels of HTTP triggers: without a key, and with a function's key. All others need the master key."""


@dataclass(frozen=True, kw_only=True)
class HttpTrigger:
    """A route. If it has no methods, it takes all of them."""

    route: str
    methods: frozenset[str]
    level: str


@dataclass(frozen=True, kw_only=True)
class StorageQueueTrigger:
    """A Storage Queue and the connection string of its account. `binary` passes messages as bytes."""

    queue: str
    connection: str
    binary: bool = False


@dataclass(frozen=True, kw_only=True)
class ServiceBusTrigger:
    """A Service Bus queue. `many` passes a list of messages, `binary` passes messages as bytes."""

    queue: str
    connection: str
    many: bool
    binary: bool = False


@dataclass(frozen=True, kw_only=True)
class TimerTrigger:
    """A schedule in UTC, as NCRONTAB with seconds or as a time span, and the place of its lock."""

    schedule: str
    run_on_startup: bool
    connection: str


Trigger = HttpTrigger | StorageQueueTrigger | ServiceBusTrigger | TimerTrigger


RETURNED = "$return"
"""The name of the output that gets the function's return value."""


@dataclass(frozen=True, kw_only=True)
class Output:
    """A queue to which a function sends. `type` is that of its binding: `queue` or `serviceBus`."""

    name: str
    type: str
    queue: str
    connection: str


@dataclass(frozen=True, kw_only=True)
class AppFunction:
    """One function of the app, as the host knows it."""

    name: str
    trigger: Trigger
    outputs: tuple[Output, ...] = ()


@dataclass(frozen=True, kw_only=True)
class IndexedFunction(AppFunction):
    """A function as the worker calls it. `decode` is Azure's converter from trigger data to the argument."""

    handler: Callable[..., Any]
    argument: str
    takes_context: bool
    decode: Callable[..., Any]


class Decorated(Protocol):
    """The methods of `azure.functions`' own record of a function that are used here."""

    def get_function_name(self) -> str | None: ...
    def get_user_function(self) -> Callable[..., Any]: ...
    def get_bindings_dict(self) -> dict[str, Any]: ...
    def get_settings_dict(self, name: str, /) -> dict[str, Any] | None: ...


Binding = Mapping[str, Any]


def index_functions(
    decorated: Iterable[Decorated], settings: AppSettings, only: frozenset[str] | None
) -> list[IndexedFunction]:
    """Return the functions to run.

    Raises `HostError`, which names for each function the features that this host lacks.
    """
    by_name = {str(function.get_function_name()): function for function in decorated}
    unknown = sorted((only or frozenset()) - by_name.keys())
    if unknown:
        known = {"functions": ", ".join(sorted(by_name))}
        raise HostError(
            *(StackFault(LocalCode.FUNCTION_UNKNOWN, f"function {name}", known) for name in unknown)
        )
    chosen = only if only is not None else by_name.keys()
    names = [name for name in by_name if name in chosen and not settings.is_disabled(name)]
    functions, faults = [], list[StackFault]()
    for name in names:
        try:
            functions.append(_index_one(name, by_name[name], settings))
        except HostError as error:
            faults += error.faults
    if faults:
        raise HostError(*faults)
    settings.require_complete()
    return functions


INSTEAD = {
    "serviceBus": "send with ServiceBusClient of azure-servicebus in the function",
    "table": "read and write with TableClient of azure-data-tables in the function",
    "blob": "read and write with BlobClient of azure-storage-blob in the function",
    "blobTrigger": "have the writer of the blob send a message to a queue",
    "eventGrid": "publish with EventGridPublisherClient of azure-eventgrid in the function",
    "eventGridTrigger": "have Event Grid deliver to a Storage Queue",
    "topics": "have the subscription forward to a queue",
    "policies": "catch the error and retry in the function; a failed message is delivered again",
}
"""Replacements for features that this host lacks. For all others, use Azure Functions Core Tools."""


def _lacks(name: str, kind: str, what: str) -> StackFault:
    alternative = INSTEAD.get(what, "run the app with Azure Functions Core Tools")
    facts = {"feature": f"{kind} {what}", "alternative": alternative}
    return StackFault(LocalCode.FEATURE_UNSUPPORTED, f"function {name}", facts)


def _index_one(name: str, decorated: Decorated, settings: AppSettings) -> IndexedFunction:
    if decorated.get_settings_dict("retry_policy"):
        raise HostError(_lacks(name, "retry", "policies"))
    bindings: list[Binding] = decorated.get_bindings_dict()["bindings"]
    triggers = [b for b in bindings if str(b["type"]).endswith("Trigger")]
    further = [b for b in bindings if b not in triggers and b["type"] != "http"]
    others = [str(b["type"]) for b in further if not _is_output(b)]
    if others:
        raise HostError(*(_lacks(name, "binding", other) for other in others))
    trigger_type = str(triggers[0]["type"])
    reader = _READERS.get(trigger_type)
    if reader is None:
        raise HostError(_lacks(name, "trigger", trigger_type))
    handler = decorated.get_user_function()
    return IndexedFunction(
        name=name,
        handler=handler,
        argument=str(triggers[0]["name"]),
        takes_context="context" in inspect.signature(handler).parameters,
        decode=func.get_binding_registry().get(trigger_type).decode,
        trigger=reader(name, triggers[0], settings),
        outputs=tuple(_output(binding, settings) for binding in further),
    )


def _is_output(binding: Binding) -> bool:
    return binding["type"] in ("queue", "serviceBus") and bool(binding.get("queueName"))


def _output(binding: Binding, settings: AppSettings) -> Output:
    return Output(
        name=str(binding["name"]),
        type=str(binding["type"]),
        queue=settings.substitute(binding["queueName"]),
        connection=settings.connection(binding.get("connection") or "AzureWebJobsStorage"),
    )


def _http(name: str, binding: Binding, _settings: AppSettings) -> HttpTrigger:
    return HttpTrigger(
        # Azure takes an empty route for none and falls back to the function's name.
        route=binding.get("route") or name,
        methods=frozenset(str(method).upper() for method in binding.get("methods") or ()),
        level=str(binding.get("authLevel") or FUNCTION).upper(),
    )


def _storage_queue(_name: str, binding: Binding, settings: AppSettings) -> StorageQueueTrigger:
    return StorageQueueTrigger(
        queue=settings.substitute(binding["queueName"]),
        connection=settings.connection(binding.get("connection") or "AzureWebJobsStorage"),
        binary=_is_binary(binding),
    )


def _service_bus(name: str, binding: Binding, settings: AppSettings) -> ServiceBusTrigger:
    if not binding.get("queueName"):
        raise HostError(_lacks(name, "Service Bus", "topics"))
    if binding.get("isSessionsEnabled"):
        raise HostError(_lacks(name, "Service Bus", "sessions"))
    if binding.get("autoCompleteMessages", True) is False:
        raise HostError(StackFault(LocalCode.MESSAGES_NOT_COMPLETED, f"function {name}"))
    return ServiceBusTrigger(
        queue=settings.substitute(binding["queueName"]),
        connection=settings.connection(binding["connection"]),
        many=str(binding.get("cardinality") or "one").lower() == "many",
        binary=_is_binary(binding),
    )


def _is_binary(binding: Binding) -> bool:
    return bool(binding.get("dataType") == func.DataType.BINARY)


def _timer(name: str, binding: Binding, settings: AppSettings) -> TimerTrigger:
    if binding.get("useMonitor") is not False:
        raise HostError(StackFault(LocalCode.TIMER_MONITORED, f"function {name}"))
    return TimerTrigger(
        schedule=settings.substitute(binding["schedule"]),
        run_on_startup=bool(binding.get("runOnStartup")),
        connection=settings.connection("AzureWebJobsStorage"),
    )


_READERS: Mapping[str, Callable[[str, Binding, AppSettings], Trigger]] = {
    "httpTrigger": _http,
    "queueTrigger": _storage_queue,
    "serviceBusTrigger": _service_bus,
    "timerTrigger": _timer,
}
