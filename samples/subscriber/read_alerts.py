"""Prints the events of the Event Grid topic from your own Storage Queue, each event once.

    python samples/subscriber/read_alerts.py --queue my-alerts [--once]

`QUEUE_ACCOUNT` is a connection string, or the address of the queue service, such as
`https://mystorage.queue.core.windows.net`. With an address, the program uses the signed-in
identity. `--seen` names the file that remembers the handled events.
"""

import argparse
import base64
import json
import os
import sqlite3
import sys
import time
from collections.abc import Mapping
from typing import Any

from azure.identity import DefaultAzureCredential
from azure.storage.queue import QueueClient, QueueMessage

PAUSE_SECONDS = 5
STALLED = "OrderProcessing.Stalled"

Event = Mapping[str, Any]


class HandledEvents:
    """The ids of handled events, in a file, so that a later run of the program knows them."""

    def __init__(self, path: str) -> None:
        self._file = sqlite3.connect(path, isolation_level=None)
        self._file.execute("CREATE TABLE IF NOT EXISTS seen (id TEXT PRIMARY KEY)")

    def __contains__(self, event_id: str) -> bool:
        found = self._file.execute("SELECT 1 FROM seen WHERE id = ?", [event_id])
        return found.fetchone() is not None

    def add(self, event_id: str) -> None:
        self._file.execute("INSERT OR IGNORE INTO seen VALUES (?)", [event_id])


def event_in(message: QueueMessage) -> Event:
    """Return the CloudEvent in a message. Raises `ValueError` if there is none."""
    event = json.loads(base64.b64decode(message.content, validate=True))
    if not isinstance(event, dict) or not {"id", "type", "data"} <= event.keys():
        raise ValueError("no CloudEvent")
    return event


def handle(event: Event) -> None:
    """Print the event's id, type, subject and reason, with tabs between them.

    Replace this by your own code.
    """
    data = event["data"]
    what = data.get("reason") or data.get("step") or ""
    if event["type"] == STALLED and "status" in data:  # that of a clock is no condition
        what = f"{data['status']}: {what} ({data['count']})"
    print(event["id"], event["type"], event.get("subject", ""), what, sep="\t", flush=True)


def take(queue: QueueClient, seen: HandledEvents) -> int:
    """Handle the available messages, and return their number.

    Event Grid delivers at least once, so an event may come again with the same id. A message is
    deleted only after its event was handled, so after a crash in between it comes again, too.
    """
    messages = list(queue.receive_messages(messages_per_page=32, max_messages=32))
    for message in messages:
        try:
            event = event_in(message)
        except ValueError as fault:
            print(f"message {message.id} is unreadable: {fault}", file=sys.stderr)
        else:
            if event["id"] not in seen:
                handle(event)
                seen.add(event["id"])
        queue.delete_message(message)
    return len(messages)


def connect(account: str, name: str) -> QueueClient:
    """Return the client of a queue, by connection string or as the signed-in identity."""
    if "=" in account:
        return QueueClient.from_connection_string(account, name)
    return QueueClient(account, name, credential=DefaultAzureCredential())


def main() -> None:
    """Read the queue for ever, or until it is empty (`--once`)."""
    arguments = argparse.ArgumentParser(description="Prints the alerts that a queue receives.")
    arguments.add_argument("--queue", required=True)
    arguments.add_argument("--seen", default="seen.db")
    arguments.add_argument("--once", action="store_true", help="end when the queue is empty")
    given = arguments.parse_args()
    seen = HandledEvents(given.seen)
    with connect(os.environ["QUEUE_ACCOUNT"], given.queue) as queue:
        while True:
            if take(queue, seen):
                continue
            if given.once:
                return
            time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    main()
