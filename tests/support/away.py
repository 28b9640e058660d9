"""Parts of a stack that go away and come back, and calls of a port that is away."""

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from development.stack import AppStack
from engine.domain.errors import UnavailableError


async def away(*_: object) -> None:
    """Do nothing: what would do it is away."""
    raise UnavailableError


@asynccontextmanager
async def stopped(stack: AppStack, what: str) -> AsyncIterator[None]:
    """Nobody listens."""
    await getattr(stack, f"stop_{what}")()
    try:
        yield
    finally:
        await getattr(stack, f"start_{what}")()


@asynccontextmanager
async def frozen(stack: AppStack, what: str) -> AsyncIterator[None]:
    """Connections stay open, and nothing answers."""
    process = getattr(stack, what)
    process.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.signal(signal.SIGCONT)
