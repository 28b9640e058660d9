"""The tasks that a host cannot do without.

If one ends, the host ends, and the process that started the host starts it again.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Coroutine, Generator
from contextvars import Context
from typing import Any, TypeVar

import click

from functions_alone.faults import LocalCode, StackFault
from functions_alone.host.errors import HostError
from functions_alone.host.outage import in_a_few_words

_log = logging.getLogger("functions_alone.host")

END_SECONDS = 2.0
"""How long the other tasks may take to end after a vital one has failed."""

Result = TypeVar("Result")


class Vital(asyncio.TaskGroup):
    """The tasks that a host cannot do without: if one fails, all end.

    The Service Bus SDK sometimes swallows a cancellation. A task that ignores its cancellation does not keep a failed
    host alive: the process ends without it.
    """

    def create_task(
        self,
        coro: Generator[Any, None, Result] | Coroutine[Any, Any, Result],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[Result]:
        """See `asyncio.TaskGroup`."""
        task = super().create_task(coro, name=name, context=context)
        task.add_done_callback(_limit_the_end)
        return task


def _limit_the_end(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()):
        asyncio.get_running_loop().call_later(END_SECONDS, _end, error)


def _end(error: BaseException) -> None:
    click.echo(f"error: {error}", err=True)
    os._exit(1)  # the fork server sees it, and ends the workers


async def vital(what: str, work: Awaitable[None]) -> None:
    """Do work that lasts until the host stops.

    Raises `HostError` if it fails, also through a `CancelledError` of its own.
    """
    try:
        await work
    except (Exception, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        _log.exception("%s has ended", what)
        reason = {"reason": in_a_few_words(error)}
        raise HostError(StackFault(LocalCode.COMPONENT_ENDED, what, reason)) from error
