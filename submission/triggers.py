"""Binds submission to its Storage Queue (SUB-1)."""

import azure.functions as func

from edge.outages import through_outages
from submission.service import QUEUE, SubmissionService


def blueprint(service: SubmissionService) -> func.Blueprint:
    """Return the function that takes order messages off the queue."""
    triggers = func.Blueprint()

    @triggers.queue_trigger(arg_name="message", queue_name=QUEUE, connection="StateStorage")
    async def submission_record(message: func.QueueMessage) -> None:
        body = message.get_body()
        await through_outages(lambda: service.record(body))

    return triggers
