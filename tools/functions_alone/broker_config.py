"""The configuration of the local broker, in the format of Microsoft's Service Bus emulator."""

from collections.abc import Iterable, Mapping
from typing import Any

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


def configuration(every: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the emulator's configuration with these queues."""
    return {
        "UserConfig": {
            "Namespaces": [
                {
                    "Name": "sbemulatorns",
                    "Queues": [_queue(queue) for queue in every],
                    "Topics": [],
                }
            ],
            "Logging": {"Type": "File"},
        }
    }


def _queue(queue: Mapping[str, Any]) -> dict[str, Any]:
    given = {name[0].upper() + name[1:]: value for name, value in queue.items() if name != "name"}
    return {"Name": queue["name"], "Properties": DEFAULTS | given}
