"""Binds what sends alerts and notices, and the watch, to timers; the alert log to the queue that Event Grid fills."""

import azure.functions as func

from alerts.notices import NoticeService
from alerts.service import QUEUE, AlertService
from alerts.versions import Versions
from alerts.watch import Watch
from edge.arrivals import on_storage_queue
from edge.functions import Functions
from edge.outages import through_outages
from edge.timers import in_turn


def blueprint(service: AlertService, notices: NoticeService, watch: Watch, versions: Versions) -> func.Blueprint:
    """Return the functions that send alerts and notices, record alerts, and watch for what stands still."""
    triggers = Functions()

    @triggers.timer_trigger(arg_name="timer", schedule="%OUTBOX_SCHEDULE%", use_monitor=False)
    async def alerts_relay(timer: func.TimerRequest) -> None:
        async def relay() -> None:
            await service.relay()
            await versions.compare()  # here, because this timer is the first to come

        await in_turn("alerts_relay", relay)

    @triggers.queue_trigger(arg_name="message", queue_name=QUEUE, connection="StateStorage")
    async def alerts_record(message: func.QueueMessage) -> None:
        body, arrival = message.get_body(), on_storage_queue(message)
        await through_outages("alerts_record", lambda: service.record(body, arrival))

    @triggers.timer_trigger(arg_name="timer", schedule="%OUTBOX_SCHEDULE%", use_monitor=False)
    async def alerts_notices(timer: func.TimerRequest) -> None:
        await in_turn("alerts_notices", notices.relay)

    @triggers.timer_trigger(arg_name="timer", schedule="%WATCH_SCHEDULE%", use_monitor=False)
    async def alerts_watch(timer: func.TimerRequest) -> None:
        await in_turn("alerts_watch", watch.look)

    return triggers
