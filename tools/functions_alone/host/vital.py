"""What a host cannot do without: its end is the end of the host, which whoever started it starts again."""

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
"""How long the rest may take to end when something vital has failed."""

Result = TypeVar("Result")


class Vital(asyncio.TaskGroup):
    """The tasks that a host cannot do without: when one fails, all end.

    A task that heeds no cancellation (the Service Bus SDK swallows one now and then) keeps no failed host alive: the
    process ends then without it.
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
    """Do what goes on until the host stops; raises `HostError` if it fails, also by a `CancelledError` of its own."""
    try:
        await work
    except (Exception, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        _log.exception("%s has ended", what)
        reason = {"reason": in_a_few_words(error)}
        raise HostError(StackFault(LocalCode.COMPONENT_ENDED, what, reason)) from error
