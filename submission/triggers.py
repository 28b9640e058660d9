"""Binds submission to its Storage Queue (SUB-1)."""

from datetime import UTC, datetime

import azure.functions as func

from entrypoints.functions import Functions, through_outages
from submission.service import QUEUE, SubmissionService


def blueprint(service: SubmissionService) -> func.Blueprint:
    """Return the function that takes order messages off the queue."""
    triggers = Functions()

    @triggers.queue_trigger(arg_name="message", queue_name=QUEUE, connection="StateStorage")
    async def submission_record(message: func.QueueMessage) -> None:
        body, arrived, delivery = message.get_body(), _arrived(message), message.dequeue_count or 1
        await through_outages("submission_record", lambda: service.record(body, arrived, delivery))

    return triggers


def _arrived(message: func.QueueMessage) -> datetime | None:
    """Return when the message was put on the queue, which every delivery of it tells alike, in UTC."""
    time = message.insertion_time
    return time and time.replace(tzinfo=UTC)
