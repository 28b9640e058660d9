"""Where a function begins: what every function of the app has, whatever starts it."""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any

import azure.functions as func

from core.errors import CutOffError

Handler = Callable[..., Awaitable[Any]]


class Functions(func.Blueprint):
    """A blueprint whose functions always answer (`answering`)."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # it has no annotations

    def route(self, *args: Any, **options: Any) -> Callable[..., Any]:
        """See `func.Blueprint`."""
        return _of_answering(super().route(*args, **options))

    def queue_trigger(self, *args: Any, **options: Any) -> Callable[..., Any]:
        """See `func.Blueprint`."""
        return _of_answering(super().queue_trigger(*args, **options))

    def service_bus_queue_trigger(self, *args: Any, **options: Any) -> Callable[..., Any]:
        """See `func.Blueprint`."""
        return _of_answering(super().service_bus_queue_trigger(*args, **options))

    def timer_trigger(self, *args: Any, **options: Any) -> Callable[..., Any]:
        """See `func.Blueprint`."""
        return _of_answering(super().timer_trigger(*args, **options))


def _of_answering(decorate: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate what is still a plain function with `answering` first."""
    return lambda target: decorate(answering(target) if iscoroutinefunction(target) else target)


def answering(handler: Handler) -> Handler:
    """Make an ordinary failure of a `CancelledError` that the handler raises, alone or among others.

    For one of those Azure's worker sends no answer: the function would seem to run until its time-out, which ends the
    process and all that runs in it.
    """

    @functools.wraps(handler)
    async def answers(*args: Any, **arguments: Any) -> Any:
        try:
            return await handler(*args, **arguments)
        except (asyncio.CancelledError, BaseExceptionGroup) as error:
            if _is_cut_off(error):
                raise CutOffError(f"{handler.__module__}.{handler.__name__}") from error
            raise

    return answers


def _is_cut_off(error: BaseException) -> bool:
    """Tell whether something was cancelled, and not the function itself by whoever called it."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        return False
    return not isinstance(error, BaseExceptionGroup) or error.subgroup(asyncio.CancelledError) is not None
