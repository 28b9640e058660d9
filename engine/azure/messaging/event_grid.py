"""Event Grid. Events are sent as CloudEvents 1.0 (ALR-1)."""

from collections.abc import Callable, Sequence
from typing import Any

from azure.core.messaging import CloudEvent
from azure.eventgrid.aio import EventGridPublisherClient

from engine.azure.failures import azure_errors
from engine.decisions.transitions import OperatorEvent
from engine.domain.errors import UnavailableError
from engine.time_limit import writing

SOURCE = "/order-processing"


class EventGrid:
    """`EventPublisher` on an Event Grid topic with the CloudEvents schema."""

    def __init__(self, client: Callable[[], EventGridPublisherClient]) -> None:
        self._client = client

    async def publish(self, events: Sequence[OperatorEvent]) -> None:
        # A 404 means that the topic is missing: the events are sound.
        with writing(), azure_errors("Event Grid", UnavailableError):
            await self._client().send([_cloud_event(event) for event in events])


def _cloud_event(event: OperatorEvent) -> CloudEvent[dict[str, Any]]:
    return CloudEvent(
        source=SOURCE,
        type=event.type,
        id=event.event_id,
        subject=event.subject,
        time=event.at,
        data=dict(event.data),
    )
