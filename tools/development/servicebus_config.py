"""Config.json of the local broker and of Microsoft's Service Bus emulator, from the queues in `infra/`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.domain.messages import ANSWERS, DEAD_LETTERS
from functions_alone.broker_config import configuration

ROOT = Path(__file__).parents[2]
AGENTS_FILE = "infra/agents.json"


def agents_file() -> dict[str, Any]:
    """Return what `make declared` wrote about the agents of the deployed application."""
    content: dict[str, Any] = json.loads((ROOT / AGENTS_FILE).read_text())
    return content


def queues() -> dict[str, Any]:
    """Return `infra/queues.json`, with the queues of the agents."""
    content: dict[str, Any] = json.loads((ROOT / "infra/queues.json").read_text())
    content["serviceBusQueues"] += agents_file()["queues"]
    return content


EMULATOR_DELIVERIES = 10
"""The largest `maxDeliveryCount` of Microsoft's emulator. Service Bus and the local broker accept 2,000."""


def emulator_config() -> dict[str, Any]:
    every = queues()["serviceBusQueues"]
    return configuration(_forwarding(queue) | _few_deliveries(queue) for queue in every)


def _few_deliveries(queue: Mapping[str, Any]) -> dict[str, Any]:
    most = queue.get("maxDeliveryCount", EMULATOR_DELIVERIES)
    return {"maxDeliveryCount": min(most, EMULATOR_DELIVERIES)}


def config(more_queues: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, Any]:
    """Return the local broker's configuration, with more queues by name if given."""
    every = {queue["name"]: queue for queue in queues()["serviceBusQueues"]}
    for name, given in (more_queues or {}).items():
        every.setdefault(name, {"name": name, **given})
    return configuration(map(_forwarding, every.values()))


def _forwarding(queue: Mapping[str, Any]) -> dict[str, Any]:
    """Return the queue with its dead letters forwarded to the queue that the app reads."""
    forwarded = {"forwardDeadLetteredMessagesTo": DEAD_LETTERS} if _is_own(queue["name"]) else {}
    return forwarded | dict(queue)


def _is_own(name: str) -> bool:
    """Whether the app receives from the queue, and so keeps its dead letters as poison."""
    return name == ANSWERS or name.endswith(("-requests", "-responses"))
