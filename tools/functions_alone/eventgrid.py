"""A stand-in for Event Grid: it takes CloudEvents like a topic, and delivers them like a subscription."""

import base64
import hmac
import json
from typing import Any

import click
from aiohttp import web
from azure.core.exceptions import AzureError
from azure.storage.queue.aio import QueueClient

from functions_alone.ports import HOST
from functions_alone.proxies import bypass_proxies
from functions_alone.site import PATIENCE_SECONDS

REQUIRED = ("specversion", "id", "source", "type")
CONTENT_TYPES = ("application/cloudevents+json", "application/cloudevents-batch+json")
MAX_MESSAGE_BYTES = 64 * 1024
"""The size limit of a message in a Storage Queue. Base64 makes an event a third larger."""


class TopicEndpoint:
    """The topic's end point and its subscription. Publishers must send `key`."""

    def __init__(self, key: str, queue: QueueClient) -> None:
        self._key = key.encode()
        self._queue = queue

    async def publish(self, request: web.Request) -> web.Response:
        """Answer 200 only when every event is in the queue. After 503 the publisher tries again."""
        if not hmac.compare_digest(request.headers.get("aeg-sas-key", "").encode(), self._key):
            return _refuse(401, "the header aeg-sas-key is missing or wrong")
        try:
            messages = [
                _message(event) for event in _events(request.content_type, await request.read())
            ]
        except ValueError as fault:
            return _refuse(400, str(fault))
        if any(len(message) > MAX_MESSAGE_BYTES for message in messages):
            return _refuse(
                413, "an event is larger than the 48 KiB that fit into a message of a Storage Queue"
            )
        return await self._deliver(messages)

    async def _deliver(self, messages: list[str]) -> web.Response:
        try:
            for message in messages:
                await self._queue.send_message(message)
        except AzureError:
            return _refuse(503, "the storage queue is away; send the events again")
        return web.json_response({})


def application(key: str, storage: str, queue_name: str) -> web.Application:
    """Return the web application.

    It does not try again by itself, because the publisher does and must not wait for long.
    """
    queue = QueueClient.from_connection_string(
        storage,
        queue_name,
        connection_timeout=PATIENCE_SECONDS,
        read_timeout=PATIENCE_SECONDS,
        retry_total=0,
    )

    async def health(_: web.Request) -> web.Response:
        return web.json_response({"status": "healthy"})

    async def close(_: web.Application) -> None:
        await queue.close()

    app = web.Application(client_max_size=1024 * 1024)
    app.add_routes(
        [web.post("/api/events", TopicEndpoint(key, queue).publish), web.get("/health", health)]
    )
    app.on_cleanup.append(close)
    return app


def _message(event: dict[str, Any]) -> str:
    return base64.b64encode(json.dumps(event).encode()).decode()


def _events(content_type: str, body: bytes) -> list[dict[str, Any]]:
    """Read one CloudEvent or an array of them. Raises ValueError that says what is wrong."""
    if content_type not in CONTENT_TYPES:
        raise ValueError(f"the content type is {content_type}, not {' or '.join(CONTENT_TYPES)}")
    try:
        content = json.loads(body)
    except ValueError:
        raise ValueError("the body is not JSON") from None
    events = content if isinstance(content, list) else [content]
    for place, event in enumerate(events):
        missing = [name for name in REQUIRED if not isinstance(event, dict) or not event.get(name)]
        if missing:
            raise ValueError(f"event {place} lacks {', '.join(missing)}")
    return events


def _refuse(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"code": str(status), "message": message}}, status=status)


@click.command(help=__doc__)
@click.option("--port", type=int, required=True)
@click.option("--queue", required=True, help="The Storage Queue to which events are delivered.")
@click.option("--key", envvar="TOPIC_KEY", required=True, help="What publishers send.")
@click.option(
    "--storage",
    envvar="TOPIC_STORAGE",
    required=True,
    help="Connection string of the storage account.",
)
def main(port: int, queue: str, key: str, storage: str) -> None:
    """Serve until SIGTERM."""
    bypass_proxies()
    app = application(key, storage, queue)
    web.run_app(app, host=HOST, port=port, print=None, access_log=None)


if __name__ == "__main__":
    main()
