"""Binds the timers of the alerts, and the queue of alerts from Event Grid."""

from collections.abc import Callable, Sequence
from functools import partial

import azure.functions as func

from engine.decisions.transitions import OperatorEvent
from engine.domain.causes import Cause, Code
from engine.domain.errors import InvalidError
from engine.features.external_events.notifications import NEWS
from engine.runtime.functions import (
    Functions,
    on_storage_queue,
    retry_while_unavailable,
    skip_overlapping_runs,
)
from engine.storage.alert_log import AlertLog
from engine.storage.poison import Arrival, PoisonStore
from operations.alerts.notify import Notifier
from operations.alerts.relay import Relay
from operations.alerts.rules import QUEUE, read
from operations.alerts.stall_detector import StallDetector


def alert_functions(
    alert_log: AlertLog,
    poison: PoisonStore,
    relay: Relay,
    stall_detector: StallDetector,
    channels_of: Callable[[OperatorEvent], Sequence[str]],
) -> func.Blueprint:
    """Make the functions that relay the outbox, record alerts, and detect stalls.

    `channels_of` returns the channels to people that report an event.
    """
    triggers = Functions()

    @triggers.timer_trigger(arg_name="timer", schedule="%OUTBOX_SCHEDULE%", use_monitor=False)
    async def alerts_relay(timer: func.TimerRequest) -> None:
        await skip_overlapping_runs("alerts_relay", relay.relay)

    @triggers.queue_trigger(arg_name="message", queue_name=QUEUE, connection="StateStorage")
    async def alerts_record(message: func.QueueMessage) -> None:
        recording = partial(record, message.get_body(), on_storage_queue(message))
        await retry_while_unavailable("alerts_record", recording)

    async def record(body: bytes, arrival: Arrival) -> None:
        try:
            alert = read(body)
        except InvalidError as fault:
            why = Cause(Code.MESSAGE_INVALID, {"faults": fault.as_facts()})
            await poison.put(QUEUE, body, why, arrival)
        else:
            if alert.type not in NEWS:  # they are for others who subscribe
                await alert_log.record(alert, channels_of(alert))

    @triggers.timer_trigger(
        arg_name="timer", schedule="%STALL_DETECTOR_SCHEDULE%", use_monitor=False
    )
    async def alerts_stalls(timer: func.TimerRequest) -> None:
        await skip_overlapping_runs("alerts_stalls", stall_detector.check)

    return triggers


def notification_functions(notifier: Notifier) -> func.Blueprint:
    """Make the function that sends alerts to people."""
    triggers = Functions()

    @triggers.timer_trigger(arg_name="timer", schedule="%NOTIFY_SCHEDULE%", use_monitor=False)
    async def alerts_notify(timer: func.TimerRequest) -> None:
        await skip_overlapping_runs("alerts_notify", notifier.send)

    return triggers
