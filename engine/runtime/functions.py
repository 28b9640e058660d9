"""The entry of every function of the app, whatever its trigger.

While the store or the bus is unavailable, a function waits, and logs the outage once. A message
that is returned to its queue comes back immediately, so a short outage would use up its deliveries
and end it as poison. Therefore the function retries by itself, with back-off, for longer than a
dependency takes to restart.

Azure counts a timer's next time from the start of a run. A run that lasts longer than the interval
is followed by another one immediately, so slow work would continue without a pause.
"""

import asyncio
import functools
import logging
import math
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from inspect import iscoroutinefunction
from typing import Any, TypeVar

import azure.functions as func
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_delay,
    wait_exponential_jitter,
)

from engine.domain.errors import UnavailableError, WorkCancelledError
from engine.http.responses import answers
from engine.storage.poison import Arrival
from engine.time_limit import time_limit


def on_storage_queue(message: func.QueueMessage) -> Arrival:
    """Return when the message came to its Storage Queue, and its id there."""
    return Arrival(at=_utc(message.insertion_time), number=message.id or "")


def on_bus(message: func.ServiceBusMessage) -> Arrival:
    """Return when the message came to its Service Bus queue, and its sequence number there."""
    # Not the message's id: the host leaves gaps in the ids of a batch.
    return Arrival(at=_utc(message.enqueued_time_utc), number=str(message.sequence_number))


def _utc(time: datetime | None) -> datetime:
    """Return the time in UTC. The host's times are in UTC, with or without a zone."""
    return time.replace(tzinfo=UTC) if time else datetime.now(UTC)


log = logging.getLogger(__name__)

Handler = Callable[..., Awaitable[Any]]
T = TypeVar("T")

PATIENCE_SECONDS = 35.0
"""How long a function retries, in seconds.

It is less than `BATCH_SECONDS`, and so less than a message's lock lasts. So the message is returned
before another process receives it.
"""


def answering(handler: Handler) -> Handler:
    """Turn a `CancelledError` of the handler, alone or in a group, into a `WorkCancelledError`.

    Azure's worker sends no answer for a `CancelledError`. The function would seem to run until its
    time-out, which ends the process with all its other functions.
    """

    @functools.wraps(handler)
    async def answered(*args: Any, **arguments: Any) -> Any:
        try:
            return await handler(*args, **arguments)
        except (asyncio.CancelledError, BaseExceptionGroup) as error:
            if _is_cut_off(error):
                raise WorkCancelledError(f"{handler.__module__}.{handler.__name__}") from error
            raise

    return answered


FUNCTION_SECONDS = 100.0
"""The default time limit of a function."""
BATCH_SECONDS = 40.0
"""The time limit of a function that takes batches. Their locks last for a minute without renewal.
"""
AGENT_SECONDS = 275.0
"""The time limit of an agent, which itself ends at the complete-by time of its request."""


def limited(handler: Handler, seconds: float) -> Handler:
    """Make the handler fail with `OutOfTimeError` after this many seconds.

    Otherwise Azure would kill its process, and all other work in it would stop for minutes.
    """

    @functools.wraps(handler)
    async def in_time(*args: Any, **arguments: Any) -> Any:
        async with time_limit(seconds):
            return await handler(*args, **arguments)

    in_time.time_limit_seconds = seconds  # type: ignore[attr-defined]  # for a test
    return in_time


def _wrapping(
    wrap: Callable[[Handler], Handler], decorator: Callable[..., Any], **always: Any
) -> Callable[..., Callable[..., Any]]:
    """Return the decorator with these options. It wraps plain functions, but not built ones."""

    def decorate(
        *args: Any, limit_seconds: float = FUNCTION_SECONDS, **options: Any
    ) -> Callable[..., Any]:
        bind = decorator(*args, **options, **always)
        return lambda target: bind(
            wrap(limited(target, limit_seconds)) if iscoroutinefunction(target) else target
        )

    return decorate


class Functions(func.Blueprint):
    """A blueprint whose functions always answer. Over HTTP, errors become problem details.

    Messages come as bytes. Text would be changed on its way, a message that is not JSON would fail
    its whole batch, and fields in a body could replace the message's own metadata.
    """

    route = _wrapping(lambda target: answering(answers(target)), func.Blueprint.route)
    queue_trigger = _wrapping(
        answering, func.Blueprint.queue_trigger, data_type=func.DataType.BINARY
    )
    service_bus_queue_trigger = _wrapping(
        answering, func.Blueprint.service_bus_queue_trigger, data_type=func.DataType.BINARY
    )
    timer_trigger = _wrapping(answering, func.Blueprint.timer_trigger)

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # it has no annotations


def _is_cut_off(error: BaseException) -> bool:
    """Whether work inside the function was cancelled, but not the function itself by its caller."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        return False
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(asyncio.CancelledError) is not None
    return True


LASTS_SECONDS = 180.0
"""After this time an outage is logged as an error, and again after each interval of this length."""

_away: dict[str, float] = {}
"""When the next log line is due for each function in an outage.

Each function has its own entry, because its dependency may be unavailable while others are not.
"""


def _seen(function: str, error: BaseException | None) -> None:
    """Record a failure. It is logged if it is the first one, or if the outage lasts."""
    now = time.monotonic()
    if function not in _away:
        log.warning("outage.began", extra={"function": function, "why": str(error)})
    elif now >= _away[function]:
        log.error("outage.lasts", extra={"function": function, "why": str(error)})
    else:
        return
    _away[function] = now + LASTS_SECONDS


def _over(function: str) -> None:
    """Record that the function worked."""
    if _away.pop(function, None) is not None:
        log.warning("outage.ended", extra={"function": function})


async def retry_while_unavailable(function: str, work: Callable[[], Awaitable[T]]) -> T:
    """Do the work of a function, with retries while a dependency is unavailable.

    Raises `UnavailableError` after `PATIENCE_SECONDS`.
    """

    def before_sleep(state: RetryCallState) -> None:
        _seen(function, state.outcome.exception() if state.outcome else None)

    retrying = AsyncRetrying(
        retry=retry_if_exception(_is_outage),
        wait=wait_exponential_jitter(multiplier=0.2, max=3, jitter=0.5),
        stop=stop_after_delay(PATIENCE_SECONDS),
        before_sleep=before_sleep,
        reraise=True,
    )
    async for attempt in retrying:
        with attempt:
            result = await work()
    _over(function)
    return result


def _is_outage(error: BaseException) -> bool:
    """Whether all errors are unavailable dependencies."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(UnavailableError)[1] is None
    return isinstance(error, UnavailableError)


AT_ONCE_SECONDS = 0.2
"""The longest time that Azure takes from the end of a run to the start of an overdue one."""
SHORTEST_INTERVAL_SECONDS = 1.0
"""The shortest interval of a schedule. A shorter run has not missed a turn."""

_long_run_ended: dict[str, float] = {}
"""When the last run of each function ended in this process, if that run was long."""


async def skip_overlapping_runs(
    function: str,
    work: Callable[[], Awaitable[object]],
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """Do the work of a periodic function, but skip a run that is due only by overlap.

    A run is skipped if it starts only because the last one took longer than the interval. It does
    nothing, and the timer fires again at its next regular time. Two runs in sequence are never
    skipped. While a dependency is unavailable, a run ends early without an error.
    """
    began = monotonic()
    if began - _long_run_ended.pop(function, -math.inf) < AT_ONCE_SECONDS:
        log.info("timer.overran", extra={"function": function})
        return
    try:
        await work()
    except* UnavailableError as outage:
        _seen(function, outage.exceptions[0])
    else:
        _over(function)
    finally:
        if (ended := monotonic()) - began >= SHORTEST_INTERVAL_SECONDS:
            _long_run_ended[function] = ended
