"""From decorated functions to typed records: what is to be called, and what starts it."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import azure.functions as func

from local.host.errors import HostError
from local.host.settings import AppSettings

ANONYMOUS, FUNCTION = "ANONYMOUS", "FUNCTION"
"""Levels of HTTP triggers: what needs no key, and what needs that of a function. Others need the master key."""


@dataclass(frozen=True, kw_only=True)
class HttpTrigger:
    """A route; no methods means all of them."""

    route: str
    methods: frozenset[str]
    level: str


@dataclass(frozen=True, kw_only=True)
class StorageQueueTrigger:
    """A Storage Queue, with the connection string of its account."""

    queue: str
    connection: str


@dataclass(frozen=True, kw_only=True)
class ServiceBusTrigger:
    """A Service Bus queue; `many` calls the function with a list."""

    queue: str
    connection: str
    many: bool


@dataclass(frozen=True, kw_only=True)
class TimerTrigger:
    """A schedule in UTC: NCRONTAB with seconds, or a time span; and where the lock is under which it fires."""

    schedule: str
    run_on_startup: bool
    connection: str


Trigger = HttpTrigger | StorageQueueTrigger | ServiceBusTrigger | TimerTrigger


@dataclass(frozen=True, kw_only=True)
class Function:
    """One function of the app, as the host knows it."""

    name: str
    trigger: Trigger


@dataclass(frozen=True, kw_only=True)
class IndexedFunction(Function):
    """A function as the worker calls it; `decode` is Azure's converter from trigger data to the argument."""

    handler: Callable[..., Any]
    argument: str
    takes_context: bool
    decode: Callable[..., Any]


class Decorated(Protocol):
    """What is used of `azure.functions`' own record of a function."""

    def get_function_name(self) -> str | None: ...  # noqa: D102 - Azure's
    def get_user_function(self) -> Callable[..., Any]: ...  # noqa: D102 - Azure's
    def get_bindings_dict(self) -> dict[str, Any]: ...  # noqa: D102 - Azure's


Binding = Mapping[str, Any]


def index_functions(
    decorated: Iterable[Decorated], settings: AppSettings, only: frozenset[str] | None
) -> list[IndexedFunction]:
    """Return the functions to run; raises `HostError` naming all faults of a kind at once."""
    by_name = {str(each.get_function_name()): each for each in decorated}
    unknown = sorted((only or frozenset()) - by_name.keys())
    if unknown:
        raise HostError(
            f"no such function: {', '.join(unknown)} (there are: {', '.join(sorted(by_name))})"
        )
    chosen = only if only is not None else by_name.keys()
    names = [name for name in by_name if name in chosen and not settings.is_disabled(name)]
    functions = [_index_one(name, by_name[name], settings) for name in names]
    settings.require_complete()
    return functions


def _index_one(name: str, decorated: Decorated, settings: AppSettings) -> IndexedFunction:
    bindings: list[Binding] = decorated.get_bindings_dict()["bindings"]
    triggers = [b for b in bindings if str(b["type"]).endswith("Trigger")]
    others = [str(b["type"]) for b in bindings if b not in triggers and b["type"] != "http"]
    if others:
        raise HostError(f"function {name}: this host has no binding {', '.join(others)}")
    trigger_type = str(triggers[0]["type"])
    reader = _READERS.get(trigger_type)
    if reader is None:
        raise HostError(f"function {name}: this host has no trigger {trigger_type}")
    handler = decorated.get_user_function()
    return IndexedFunction(
        name=name,
        handler=handler,
        argument=str(triggers[0]["name"]),
        takes_context="context" in inspect.signature(handler).parameters,
        decode=func.get_binding_registry().get(trigger_type).decode,
        trigger=reader(name, triggers[0], settings),
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
    )


def _service_bus(name: str, binding: Binding, settings: AppSettings) -> ServiceBusTrigger:
    if not binding.get("queueName"):
        raise HostError(f"function {name}: this host has no Service Bus topics")
    if binding.get("isSessionsEnabled"):
        raise HostError(f"function {name}: this host has no Service Bus sessions")
    if binding.get("autoCompleteMessages", True) is False:
        raise HostError(f"function {name}: a Python function cannot settle messages itself")
    return ServiceBusTrigger(
        queue=settings.substitute(binding["queueName"]),
        connection=settings.connection(binding["connection"]),
        many=str(binding.get("cardinality") or "one").lower() == "many",
    )


def _timer(name: str, binding: Binding, settings: AppSettings) -> TimerTrigger:
    if binding.get("useMonitor") is not False:
        raise HostError(
            f"function {name}: this host keeps no past times of timers; it needs use_monitor=False"
        )
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
