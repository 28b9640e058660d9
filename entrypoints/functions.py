"""Where a function begins: what every function of the app has, whatever starts it.

While the store or the bus is away, a function waits, and says so once. Were its message given back at once, it would
come back at once, and a short outage would wear out its deliveries and end it as poison. So it tries again by itself,
with back-off, for longer than a restart of a dependency takes.

Azure counts a timer's next time from when a run began. A run that lasts longer than until then is followed by another
at once, so work that has become slow would go on without a pause, however seldom it is meant to run.
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
from tenacity import AsyncRetrying, retry_if_exception, stop_after_delay, wait_exponential_jitter

from core.errors import CutOffError, UnavailableError
from entrypoints.http import answers
from stores.poison import Arrival


def on_storage_queue(message: func.QueueMessage) -> Arrival:
    """Return when the message was put on its Storage Queue, and the id that it was given there."""
    return Arrival(at=_utc(message.insertion_time), number=message.id or "")


def on_bus(message: func.ServiceBusMessage) -> Arrival:
    """Return when the message was put on its Service Bus queue, and its number there (in a batch, ids have gaps)."""
    return Arrival(at=_utc(message.enqueued_time_utc), number=str(message.sequence_number))


def _utc(time: datetime | None) -> datetime:
    """Return the time, which the host gives in UTC, with or without saying so."""
    return time.replace(tzinfo=UTC) if time else datetime.now(UTC)


log = logging.getLogger(__name__)

Handler = Callable[..., Awaitable[Any]]
T = TypeVar("T")

PATIENCE_SECONDS = 45.0
"""Less than the lock of a message lasts, so that it is given back before somebody else gets it."""


def answering(handler: Handler) -> Handler:
    """Make an ordinary failure of a `CancelledError` that the handler raises, alone or among others.

    For one of those Azure's worker sends no answer: the function would seem to run until its time-out, which ends the
    process and all that runs in it.
    """

    @functools.wraps(handler)
    async def answered(*args: Any, **arguments: Any) -> Any:
        try:
            return await handler(*args, **arguments)
        except (asyncio.CancelledError, BaseExceptionGroup) as error:
            if _is_cut_off(error):
                raise CutOffError(f"{handler.__module__}.{handler.__name__}") from error
            raise

    return answered


def _of(
    wrap: Callable[[Handler], Handler], decorator: Callable[..., Any]
) -> Callable[..., Callable[..., Any]]:
    """Return the decorator for a function that is wrapped so first, if it is still a plain function."""

    def decorate(*args: Any, **options: Any) -> Callable[..., Any]:
        bind = decorator(*args, **options)
        return lambda target: bind(wrap(target) if iscoroutinefunction(target) else target)

    return decorate


class Functions(func.Blueprint):
    """A blueprint whose functions always answer; those of HTTP with problem details, if they raise an error."""

    route = _of(lambda target: answering(answers(target)), func.Blueprint.route)
    queue_trigger = _of(answering, func.Blueprint.queue_trigger)
    service_bus_queue_trigger = _of(answering, func.Blueprint.service_bus_queue_trigger)
    timer_trigger = _of(answering, func.Blueprint.timer_trigger)

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # it has no annotations


def _is_cut_off(error: BaseException) -> bool:
    """Tell whether something was cancelled, and not the function itself by whoever called it."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        return False
    return (
        not isinstance(error, BaseExceptionGroup)
        or error.subgroup(asyncio.CancelledError) is not None
    )


LASTS_SECONDS = 180.0
"""After so long an outage is no longer one of those that pass by themselves; while it lasts, that is said as often."""

_away: dict[str, float] = {}
"""The functions that met an outage which lasts, and when to say so again.

Each has its own: what one needs may be away while another goes on.
"""


def _seen(function: str, error: BaseException | None) -> None:
    """Note a failure, in the log only if it is the first, or the outage lasts."""
    now = time.monotonic()
    if function not in _away:
        log.warning("outage.began", extra={"function": function, "why": str(error)})
    elif now >= _away[function]:
        log.error("outage.lasts", extra={"function": function, "why": str(error)})
    else:
        return
    _away[function] = now + LASTS_SECONDS


def _over(function: str) -> None:
    """Note that the function worked."""
    if _away.pop(function, None) is not None:
        log.warning("outage.ended", extra={"function": function})


async def through_outages(function: str, work: Callable[[], Awaitable[T]]) -> T:
    """Do the work of a function, again if something that it needs is away.

    Raises `UnavailableError` when that takes too long.
    """
    retrying = AsyncRetrying(
        retry=retry_if_exception(_is_outage),
        wait=wait_exponential_jitter(multiplier=0.2, max=3, jitter=0.5),
        stop=stop_after_delay(PATIENCE_SECONDS),
        before_sleep=lambda state: _seen(
            function, state.outcome.exception() if state.outcome else None
        ),
        reraise=True,
    )
    async for attempt in retrying:
        with attempt:
            result = await work()
    _over(function)
    return result


def _is_outage(error: BaseException) -> bool:
    """Whether something was away, and nothing else is wrong."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(UnavailableError)[1] is None
    return isinstance(error, UnavailableError)


AT_ONCE_SECONDS = 0.2
"""What Azure needs from the end of a run to the beginning of one that was due before."""
SHORTEST_INTERVAL_SECONDS = 1.0
"""No schedule comes more often, so a shorter run has missed nothing."""

_long_run_ended: dict[str, float] = {}
"""When the last run of a function ended, if it was long; each process knows of its own."""


async def in_turn(
    function: str,
    work: Callable[[], Awaitable[object]],
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """Do the work of a periodic function, unless it only comes because the run before took too long.

    Such a run gives up its turn, and the timer comes again at its next regular time; no two turns are given up in
    sequence. While something is away a run ends early, without an error.
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
