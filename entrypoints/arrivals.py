"""What the triggers say of a message's arrival, which every delivery of it tells alike."""

from datetime import UTC, datetime

import azure.functions as func

from core.poison import Arrival


def on_storage_queue(message: func.QueueMessage) -> Arrival:
    """Return when the message was put on its Storage Queue, and the id that it was given there."""
    return Arrival(at=_utc(message.insertion_time), number=message.id or "")


def on_bus(message: func.ServiceBusMessage) -> Arrival:
    """Return when the message was put on its Service Bus queue, and its number there (in a batch, ids have gaps)."""
    return Arrival(at=_utc(message.enqueued_time_utc), number=str(message.sequence_number))


def _utc(time: datetime | None) -> datetime:
    """Return the time, which the host gives in UTC, with or without saying so."""
    return time.replace(tzinfo=UTC) if time else datetime.now(UTC)
