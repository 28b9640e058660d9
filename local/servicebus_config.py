"""The local broker's Config.json, in the format of Microsoft's Service Bus emulator, from `infra/queues.json`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent

DEFAULTS = {
    "LockDuration": "PT1M",
    "DefaultMessageTimeToLive": "PT1H",
    "DeadLetteringOnMessageExpiration": False,
    "RequiresDuplicateDetection": False,
    "DuplicateDetectionHistoryTimeWindow": "PT5M",
    "MaxDeliveryCount": 10,
    "RequiresSession": False,
    "ForwardTo": "",
    "ForwardDeadLetteredMessagesTo": "",
}


def queues() -> dict[str, Any]:
    """Return `infra/queues.json`."""
    content: dict[str, Any] = json.loads((ROOT / "infra/queues.json").read_text())
    return content


def config(more_queues: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, Any]:
    """Return the emulator's configuration, perhaps with more queues, by name with their properties."""
    every = {queue["name"]: queue for queue in queues()["serviceBusQueues"]}
    for name, given in (more_queues or {}).items():
        every.setdefault(name, {"name": name, **given})
    return {
        "UserConfig": {
            "Namespaces": [
                {
                    "Name": "sbemulatorns",
                    "Queues": [_queue(queue) for queue in every.values()],
                    "Topics": [],
                }
            ],
            "Logging": {"Type": "File"},
        }
    }


def _queue(queue: dict[str, Any]) -> dict[str, Any]:
    given = {name[0].upper() + name[1:]: value for name, value in queue.items() if name != "name"}
    return {"Name": queue["name"], "Properties": DEFAULTS | given}
