"""A Service Bus queue from outside."""

import json
from urllib.request import urlopen

from azure.servicebus import ServiceBusMessage, ServiceBusSender

from functions_alone.stack import Stack


class BusQueue:
    """Sends, and tells what the broker says about the queue."""

    def __init__(self, services: Stack, sender: ServiceBusSender) -> None:
        self.name = sender.entity_name
        self._sender = sender
        self._health_url = f"http://127.0.0.1:{services.ports.broker_health_port}/health"
        self._dead_before = self.counts()["deadLettered"]

    def send(self, *bodies, **more):
        self.send_together([ServiceBusMessage(body, **more) for body in bodies])

    def send_together(self, messages):
        self._sender.send_messages(messages)

    def counts(self):
        """Such as {"active": 0, "locked": 1, …}."""
        with urlopen(self._health_url) as answer:  # noqa: S310 - it is HTTP
            return json.load(answer)["queues"][self.name]

    def under_way(self):
        """How many messages are not settled yet."""
        counts = self.counts()
        return counts["active"] + counts["locked"]

    def dead(self):
        """How many messages were dead-lettered in this test."""
        return self.counts()["deadLettered"] - self._dead_before
