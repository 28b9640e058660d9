"""Binds what sends alerts and notices, and the watch, to timers; the alert log to the queue that Event Grid fills."""

import azure.functions as func

from alerts.notices import NoticeService
from alerts.service import QUEUE, AlertService
from alerts.versions import Versions
from alerts.watch import Watch
from edge.outages import next_time, through_outages


def blueprint(service: AlertService, notices: NoticeService, watch: Watch, versions: Versions) -> func.Blueprint:
    """Return the functions that send alerts and notices, record alerts, and watch for what stands still."""
    triggers = func.Blueprint()

    @triggers.timer_trigger(arg_name="timer", schedule="%OUTBOX_SCHEDULE%", use_monitor=False)
    async def alerts_relay(timer: func.TimerRequest) -> None:
        async with next_time("alerts_relay"):
            await service.relay()
            await versions.compare()  # here, because this timer is the first to come

    @triggers.queue_trigger(arg_name="message", queue_name=QUEUE, connection="StateStorage")
    async def alerts_record(message: func.QueueMessage) -> None:
        body = message.get_body()
        await through_outages("alerts_record", lambda: service.record(body))

    @triggers.timer_trigger(arg_name="timer", schedule="%OUTBOX_SCHEDULE%", use_monitor=False)
    async def alerts_notices(timer: func.TimerRequest) -> None:
        async with next_time("alerts_notices"):
            await notices.relay()

    @triggers.timer_trigger(arg_name="timer", schedule="%WATCH_SCHEDULE%", use_monitor=False)
    async def alerts_watch(timer: func.TimerRequest) -> None:
        async with next_time("alerts_watch"):
            await watch.look()

    return triggers
