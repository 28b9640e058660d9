"""Concurrent work in which one failure does not stop the rest, and group commit."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from engine.domain.errors import WorkCancelledError
from engine.time_limit import unlimited, writing

T = TypeVar("T")
Item = TypeVar("Item")
Result = TypeVar("Result")

Flush = Callable[[str, Sequence[Item]], Awaitable[Sequence[Result | Exception]]]
"""Handles one or more of the waiting items, beginning with the first, and returns an outcome for
each. If it raises an error, every waiting item fails with that error."""


async def run_all(work: Iterable[Coroutine[Any, Any, T]], *, at_most: int = 64) -> list[T]:
    """Run all coroutines, `at_most` at a time.

    Then raise all failures as one `ExceptionGroup`.
    """
    # So every order of a batch of messages is handled before the batch fails.
    return results_of(await settle_all(work, at_most=at_most))


def results_of(outcomes: Sequence[T | Exception]) -> list[T]:
    """Return the results.

    Raises all failures as one `ExceptionGroup`.
    """
    failures = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {len(outcomes)} failed", failures)
    return [outcome for outcome in outcomes if not isinstance(outcome, Exception)]


def reached(outcomes: Mapping[str, T | Exception]) -> tuple[dict[str, T], dict[str, Exception]]:
    """Return the results and the failures by name.

    Raises an `ExceptionGroup` if all failed.
    """
    results: dict[str, T] = {}
    failures: dict[str, Exception] = {}
    for name, outcome in outcomes.items():
        if isinstance(outcome, Exception):
            failures[name] = outcome
        else:
            results[name] = outcome
    if not results:
        raise ExceptionGroup(f"all {len(outcomes)} failed", list(failures.values()))
    return results, failures


async def settle_all(
    work: Iterable[Coroutine[Any, Any, T]], *, at_most: int = 64
) -> list[T | Exception]:
    """Run all coroutines to their end, `at_most` at a time, and return each result or exception.

    A coroutine that is cancelled by anyone except the caller fails with `WorkCancelledError`.
    """
    slots = asyncio.Semaphore(at_most)

    async def one(coroutine: Coroutine[Any, Any, T]) -> T:
        async with slots:
            try:
                return await coroutine
            except asyncio.CancelledError as error:
                # If the caller is cancelled, `gather` raises that to it in any case.
                raise WorkCancelledError("one of many") from error

    results = await asyncio.gather(*(one(coroutine) for coroutine in work), return_exceptions=True)
    return [_raised_unless_failure(result) for result in results]


def _raised_unless_failure(result: T | BaseException) -> T | Exception:
    if isinstance(result, BaseException) and not isinstance(result, Exception):
        # Such as the time-out of a test: it ends everything, not only one piece of the work.
        raise result
    return result


class GroupCommit(Generic[Item, Result]):
    """Runs one flush at a time for each lane. An idle lane flushes immediately, without a timer."""

    def __init__(self, flush: Flush[Item, Result]) -> None:
        self._flush = flush
        self._waiting: dict[str, list[tuple[Item, asyncio.Future[Result]]]] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    async def submit(self, lane: str, item: Item) -> Result:
        """Flush the item, alone or with others of its lane, even if the caller is cancelled.

        Raises `OutOfTimeError` once the time of the function is up.
        """
        with writing():
            answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(lane, []).append((item, answer))
            if lane not in self._running:
                self._running[lane] = asyncio.create_task(self._drain(lane), context=unlimited())
            return await answer

    async def _drain(self, lane: str) -> None:
        try:
            while waiting := self._waiting.get(lane):
                outcomes = await self._outcomes(lane, [item for item, _ in waiting])
                for (_, answer), outcome in zip(waiting[: len(outcomes)], outcomes, strict=True):
                    _settle(answer, outcome)
                del waiting[: len(outcomes)]
        finally:
            del self._running[lane]
            for _, answer in self._waiting.pop(lane, []):
                answer.cancel()

    async def _outcomes(self, lane: str, items: list[Item]) -> Sequence[Result | Exception]:
        try:
            outcomes = await self._flush(lane, items)
        except Exception as error:  # noqa: BLE001 - any error is raised to the waiting callers
            return [error] * len(items)
        return outcomes or [RuntimeError("a flush took none of the waiting items")] * len(items)


def _settle(answer: "asyncio.Future[Result]", outcome: Result | Exception) -> None:
    if answer.done():  # its caller was cancelled
        return
    if isinstance(outcome, Exception):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
