"""Runs every function of an app through `azure-functions-runtime`, the library that runs functions in Azure.

A program of its own, for an environment that has nothing but what is deployed and that library: it gets the app's
folder, and prints as JSON what became of each function.
"""

import asyncio
import json
import sys
from types import SimpleNamespace
from typing import Any

import azure_functions_runtime as runtime


class Data(SimpleNamespace):
    """A value as the host sends it: one field that says its type."""

    def WhichOneof(self, _: str) -> str | None:  # noqa: N802 - the name that protobuf gives it
        return next(iter(vars(self)), None)


class Parameter(SimpleNamespace):
    """The value of an argument."""

    def WhichOneof(self, _: str) -> str:  # noqa: N802 - the name that protobuf gives it
        return "data"


class Kind(type):
    """A kind of message; what is asked of it itself is a constant of an enumeration, which stands for itself."""

    def __getattr__(cls, name: str) -> Any:
        return DIRECTIONS.get(name, name)


DIRECTIONS = {"in": 0, "out": 1, "inout": 2}
"""Of bindings, as protobuf numbers them."""


class Message(SimpleNamespace, metaclass=Kind):
    """Keeps what it is given."""


class Protos:
    """What the host and the worker say to each other."""

    def __getattr__(self, name: str) -> type[Message]:
        return Message


METADATA = {
    "MessageId": "an-id", "SequenceNumber": 1, "DeliveryCount": 1, "LockToken": "a-token", "UserProperties": {},
    "EnqueuedTimeUtc": "2026-01-31T08:15:00Z", "ExpiresAtUtc": "2026-01-31T09:15:00Z", "CorrelationId": "no-request",
}  # fmt: skip


def trigger_of(binding: dict[str, Any]) -> tuple[Data, dict[str, Data]]:
    """What starts a function, and what is told about it."""
    match binding:
        case {"type": "httpTrigger", "route": route}:
            methods = binding.get("methods") or ["GET"]
            params = {part.strip("{}"): "none" for part in route.split("/") if part.startswith("{")}
            http = SimpleNamespace(
                method=str(methods[0]), url=f"http://host/{route}", headers={}, params=params, query={},
                body=Data(bytes=b"{}"),
            )  # fmt: skip
            return Data(http=http), {}
        case {"type": "queueTrigger"}:
            return Data(string="unreadable"), {
                "Id": Data(string="an-id"),
                "DequeueCount": Data(json="1"),
            }
        case {"type": "serviceBusTrigger", "cardinality": many} if str(many).lower() == "many":
            arrays = {
                f"{name}Array": Data(json=json.dumps([value])) for name, value in METADATA.items()
            }
            arrays["UserPropertiesArray"] = Data(json="[{}]")
            return Data(collection_bytes=SimpleNamespace(bytes=[b"unreadable"])), arrays
        case {"type": "serviceBusTrigger"}:
            return Data(bytes=b"unreadable"), {
                name: Data(json=json.dumps(value)) for name, value in METADATA.items()
            }
    return Data(json=json.dumps({"Schedule": {"AdjustForDST": True}, "IsPastDue": False})), {}


async def invoke(function: Any) -> str:
    """Call a function once; return nothing, or what it raised."""
    binding = json.loads(next(raw for raw in function.raw_bindings if "Trigger" in raw))
    data, metadata = trigger_of(binding)
    request = SimpleNamespace(
        invocation_id=f"call-of-{function.name}", function_id=function.function_id,
        trace_context=SimpleNamespace(trace_parent="", trace_state="", attributes={}),
        retry_context=SimpleNamespace(retry_count=0, max_retry_count=0, exception=None),
        input_data=[Parameter(name=binding["name"], data=data)], trigger_metadata=metadata,
    )  # fmt: skip
    answer = await runtime.invocation_request(
        SimpleNamespace(request=SimpleNamespace(invocation_request=request))
    )
    if answer.result.status != "Success":
        return str(answer.result.exception.message)
    status = answer.return_value.http.status_code if binding["type"] == "httpTrigger" else "200"
    return "" if int(status) < 500 else f"it answered {status}"


async def invoke_ready(function: Any) -> str:
    """Call a function until nothing that it needs is still opening connections."""
    for _ in range(MAX_TRIES):
        if (result := await invoke(function)) != "it answered 503":
            break
    return result


MAX_TRIES = 10
"""The health check, which alone answers 503 here, waits two seconds each time."""


async def main(folder: str) -> None:
    """Index the app, then run each function."""
    sys.path.insert(0, folder)
    init = SimpleNamespace(function_app_directory=folder, capabilities={})
    started = await runtime.worker_init_request(
        SimpleNamespace(
            request=SimpleNamespace(worker_init_request=init),
            properties={"host": "127.0.0.1", "protos": Protos()},
        )
    )
    if started.result.status != "Success":
        sys.exit(started.result.exception.message)
    functions = (await runtime.functions_metadata_request(None)).function_metadata_results
    print(json.dumps({function.name: await invoke_ready(function) for function in functions}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
