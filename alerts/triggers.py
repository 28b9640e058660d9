"""Binds the outbox relay to its timer, and the alert log to the queue that Event Grid fills."""

import azure.functions as func

from alerts.service import QUEUE, AlertService


def blueprint(service: AlertService) -> func.Blueprint:
    """Return the functions that send alerts and record them."""
    triggers = func.Blueprint()

    @triggers.timer_trigger(arg_name="timer", schedule="%OUTBOX_SCHEDULE%", use_monitor=False)
    async def alerts_relay(timer: func.TimerRequest) -> None:
        await service.relay()

    @triggers.queue_trigger(arg_name="message", queue_name=QUEUE, connection="StateStorage")
    async def alerts_record(message: func.QueueMessage) -> None:
        await service.record(message.get_body())

    return triggers
