"""Binds submission to its Storage Queue (SUB-1)."""

# The pattern in an hour, 4 of 23: the queue of submissions

from functools import partial

import azure.functions as func

from engine.runtime.functions import Functions, on_storage_queue, retry_while_unavailable
from submission.service import QUEUE, SubmissionService


def submission_functions(service: SubmissionService) -> func.Blueprint:
    """Make the function that takes order messages from the queue."""
    triggers = Functions()

    @triggers.queue_trigger(arg_name="message", queue_name=QUEUE, connection="StateStorage")
    async def submission_record(message: func.QueueMessage) -> None:
        body, delivery = message.get_body(), message.dequeue_count or 1
        record = partial(service.record, body, on_storage_queue(message), delivery)
        await retry_while_unavailable("submission_record", record)

    return triggers
