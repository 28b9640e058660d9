"""A stand-in for Event Grid: takes CloudEvents as the topic does, and delivers them as the subscription does."""

import base64
import hmac
import json
from typing import Any

import click
from aiohttp import web
from azure.core.exceptions import AzureError
from azure.storage.queue.aio import QueueClient

from local.ports import HOST

REQUIRED = ("specversion", "id", "source", "type")


def application(key: str, storage: str, queue_name: str) -> web.Application:
    """Return the web application; `key` is what publishers have to send."""
    queue = QueueClient.from_connection_string(storage, queue_name, retry_total=1)

    async def publish(request: web.Request) -> web.Response:
        if not hmac.compare_digest(request.headers.get("aeg-sas-key", "").encode(), key.encode()):
            return _refuse(401, "the header aeg-sas-key is missing or wrong")
        try:
            events = _events(await request.read())
        except ValueError as fault:
            return _refuse(400, str(fault))
        try:
            for event in events:
                await queue.send_message(base64.b64encode(json.dumps(event).encode()).decode())
        except AzureError:
            return _refuse(503, "the storage queue is away; send the events again")
        return web.json_response({})

    async def health(_: web.Request) -> web.Response:
        return web.json_response({"status": "healthy"})

    async def close(_: web.Application) -> None:
        await queue.close()

    app = web.Application(client_max_size=1024 * 1024)
    app.add_routes([web.post("/api/events", publish), web.get("/health", health)])
    app.on_cleanup.append(close)
    return app


def _events(body: bytes) -> list[dict[str, Any]]:
    """Read one CloudEvent or an array of them; raises ValueError that says what is wrong."""
    try:
        content = json.loads(body)
    except ValueError:
        raise ValueError("the body is no JSON") from None
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
@click.option("--key", envvar="EVENT_GRID_KEY", required=True, help="What publishers send as aeg-sas-key.")
@click.option("--storage", envvar="StateStorage", required=True, help="Connection string of the storage account.")
@click.option("--queue", default="operator-alerts", show_default=True, help="Where the events are delivered.")
def main(port: int, key: str, storage: str, queue: str) -> None:
    """Serve until SIGTERM."""
    web.run_app(application(key, storage, queue), host=HOST, port=port, print=None, access_log=None)


if __name__ == "__main__":
    main()
