"""What a host cannot do without: its end is the end of the host, which whoever started it starts again."""

import asyncio
import logging
from collections.abc import Awaitable

from local.host.errors import HostError
from local.host.outage import in_a_few_words

_log = logging.getLogger("local.host")


async def vital(what: str, work: Awaitable[None]) -> None:
    """Do what goes on until the host stops; raises `HostError` if it fails, also by a `CancelledError` of its own."""
    try:
        await work
    except (Exception, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        _log.exception("%s has ended", what)
        raise HostError(f"{what} has ended: {in_a_few_words(error)}") from error
