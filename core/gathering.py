"""Doing many things at once without letting one failure stop the others."""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from core.errors import CutOffError

T = TypeVar("T")


async def run_all(work: Iterable[Coroutine[Any, Any, T]], *, at_most: int = 64) -> list[T]:
    """Run everything, `at_most` at a time, to its end; then raise what failed as one `ExceptionGroup`.

    A batch of messages is handled this way: each order goes its own way, and only then is the batch given back.
    """
    return results_of(await settle_all(work, at_most=at_most))


def results_of(outcomes: Sequence[T | Exception]) -> list[T]:
    """Return what was returned; raise what failed as one `ExceptionGroup`."""
    failures = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {len(outcomes)} failed", failures)
    return [outcome for outcome in outcomes if not isinstance(outcome, Exception)]


async def settle_all(work: Iterable[Coroutine[Any, Any, T]], *, at_most: int = 64) -> list[T | Exception]:
    """Run everything, `at_most` at a time, to its end; return what each returned, or raised.

    What is cancelled, but not by who called, has failed like any other.
    """
    slots = asyncio.Semaphore(at_most)

    async def one(coroutine: Coroutine[Any, Any, T]) -> T:
        async with slots:
            try:
                return await coroutine
            except asyncio.CancelledError as error:  # if it is the caller who is cancelled, `gather` says so
                raise CutOffError("one of many") from error

    results = await asyncio.gather(*(one(coroutine) for coroutine in work), return_exceptions=True)
    return [result for result in results if isinstance(result, Exception) or not isinstance(result, BaseException)]
