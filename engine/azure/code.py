"""Services whose operations are functions of the business, as their agents call them."""

import asyncio
import logging
import threading
import time
import traceback
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from engine.azure.answers import LONGEST_PAUSE, MAX_BYTES, MAX_REASON_CHARACTERS, size
from engine.declarations.activities import (
    ActivityFunction,
    Call,
    DeferredResult,
    NonRetryable,
    Retryable,
)
from engine.domain.attempts import NotAttemptedReason
from engine.domain.errors import (
    AnswersLaterError,
    AppError,
    CallTimeoutError,
    DeferredError,
    InvalidError,
    InvalidRequestError,
    InvalidResultError,
    NotAttemptedError,
    RejectedError,
    ThrottledError,
    TransientError,
)
from engine.domain.messages import AgentRequest
from engine.domain.texts import plain
from engine.ports import RemoteService

log = logging.getLogger(__name__)

HELD_SECONDS = 1.0
"""How long a function may keep the event loop from everything else before that is logged."""
NO_CAPACITY = "functions that timed out still run, so there is no capacity"
RETRY_AFTER = timedelta(seconds=1)
"""Delay before a request may come again that found no room."""


def start_thread(run: Callable[[], None], name: str) -> None:
    """Run it in a thread of its own that does not keep the process alive."""
    threading.Thread(target=run, name=name, daemon=True).start()


@dataclass(frozen=True, kw_only=True)
class CodeService:
    """`RemoteService` whose operations are functions; operations without one go to `other`."""

    agent: str
    operations: Mapping[str, ActivityFunction]
    other: RemoteService | None = None
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    at_once: int
    """How many functions may run at a time, with those that still run though their time is up."""
    answer_within: timedelta | None = None
    """How long the service may take for what it has accepted; None if it never does so."""
    longest_wait: timedelta
    """The longest pause that the service may ask for."""
    monotonic: Callable[[], float] = time.monotonic
    start: Callable[[Callable[[], None], str], None] = start_thread
    """Starts a plain function, with a name for where it runs."""
    _running: set[asyncio.Future[Any]] = field(default_factory=set, init=False, repr=False)

    async def call(self, request: AgentRequest, timeout_seconds: float) -> Mapping[str, Any]:
        """See `RemoteService.call`."""
        code = self.operations.get(request.operation)
        if code is None:
            if self.other is None:
                raise InvalidRequestError(f"there is no operation {request.operation}")
            return await self.other.call(request, timeout_seconds)
        try:
            ask = code.read(request.content)
        except InvalidError as error:
            raise InvalidRequestError(f"the request is not valid: {error}") from None
        answer = await self._within(
            timeout_seconds, code, self._call(request, timeout_seconds), ask
        )
        return _result(code, answer)

    def _call(self, request: AgentRequest, timeout_seconds: float) -> Call:
        result = request.content.get("result") if request.action == "undo" else None
        return Call(
            key=request.idempotency_key,
            order_id=request.order_id,
            step=request.step,
            callback_url=request.callback_url,
            seconds_left=timeout_seconds,
            result=result if isinstance(result, Mapping) else {},
            settings=self.settings,
        )

    async def _within(self, seconds: float, code: ActivityFunction, call: Call, ask: Any) -> Any:
        """Return what the function answers in time.

        Nobody can end a thread, nor a function that goes on after it was cancelled. The agent goes
        on without it; but until it has ended, it counts as one that runs.
        """
        if len(self._running) >= self.at_once:
            raise NotAttemptedError(NotAttemptedReason.BUSY, NO_CAPACITY, RETRY_AFTER)
        work = (
            self._in_thread(code, call, ask) if code.in_thread else self._on_loop(code, call, ask)
        )
        self._running.add(work)
        work.add_done_callback(self._ended)
        try:
            await asyncio.wait({work}, timeout=seconds)
            if work.done():
                return _outcome(code, work)
        finally:
            if isinstance(work, asyncio.Task):
                work.cancel()
        log.warning("code.ran_out_of_time", extra={"agent": self.agent, "function": code.name})
        raise CallTimeoutError(f"no answer: {code.name} timed out")

    def _ended(self, work: asyncio.Future[Any]) -> None:
        self._running.discard(work)
        if not work.cancelled():
            work.exception()  # or asyncio would complain that nobody has seen it

    def _on_loop(self, code: ActivityFunction, call: Call, ask: Any) -> asyncio.Task[Any]:
        """Begin an async function."""

        async def watched() -> Any:
            try:
                return await _Watched(
                    code.work(call, ask), self.monotonic, partial(self._held, code)
                )
            except Exception as error:  # noqa: BLE001 - whatever it is, it may pass
                raise self._meaning(code, call, error) from None

        return asyncio.create_task(watched(), name=code.name)

    def _held(self, code: ActivityFunction, seconds: float) -> None:
        if seconds > HELD_SECONDS:
            facts = {"agent": self.agent, "function": code.name, "seconds": round(seconds, 1)}
            log.warning("code.held_the_loop", extra=facts)

    def _in_thread(self, code: ActivityFunction, call: Call, ask: Any) -> asyncio.Future[Any]:
        """Begin a plain function, beside the event loop."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        context = copy_context()

        def run() -> None:
            try:
                result = context.run(code.work, call, ask)
                tell = partial(answer.set_result, result)
            except BaseException as error:  # noqa: BLE001 - whatever it is, it may pass
                tell = partial(answer.set_exception, self._meaning(code, call, error))
            with suppress(RuntimeError):  # the loop has ended, and with it whoever waited
                loop.call_soon_threadsafe(tell)

        self.start(run, code.name)
        return answer

    def _meaning(self, code: ActivityFunction, call: Call, error: BaseException) -> AppError:
        """Return what an exception of the function means; it raises nothing for any exception."""
        try:
            return self._meant(code, call, error)
        except Exception as fault:  # noqa: BLE001 - or nobody would hear that the function has ended
            return TransientError(
                f"{code.name} raised {type(error).__name__}, which cannot be read: "
                f"{type(fault).__name__}"
            )

    def _meant(self, code: ActivityFunction, call: Call, error: BaseException) -> AppError:
        """Return what an exception of the function means.

        Of one that the function did not mean to raise, the kind and the place are told: its text
        may hold personal data, or a secret.
        """
        if isinstance(error, NonRetryable):
            return RejectedError(plain(error.reason, MAX_REASON_CHARACTERS))
        if isinstance(error, DeferredResult) and self.answer_within:
            after = self.answer_within if error.after is None else error.after
            wait = min(max(after, timedelta()), self.answer_within, LONGEST_PAUSE)
            return DeferredError(_message_of(error), retry_after=wait)
        if isinstance(error, DeferredResult) and error.after is None and call.callback_url:
            return AnswersLaterError(_message_of(error))
        if isinstance(error, Retryable | DeferredResult):
            wait = min(error.after or timedelta(), self.longest_wait)
            if isinstance(error, Retryable) and wait > timedelta():
                return ThrottledError(_message_of(error), wait)
            return TransientError(_message_of(error))
        return TransientError(f"{code.name} raised {type(error).__name__}{_place(error)}")


class _Watched:
    """Awaits a coroutine, and tells how long it has the loop for itself at each stretch."""

    def __init__(
        self,
        work: Coroutine[Any, Any, Any],
        monotonic: Callable[[], float],
        held: Callable[[float], None],
    ) -> None:
        self._work, self._monotonic, self._held = work, monotonic, held

    def __await__(self) -> Generator[Any, Any, Any]:
        go_on: Callable[[], Any] = partial(self._work.send, None)
        while True:
            began = self._monotonic()
            try:
                waits_for = go_on()
            except StopIteration as end:
                return end.value
            finally:
                self._held(self._monotonic() - began)
            try:
                go_on = partial(self._work.send, (yield waits_for))
            except BaseException as error:  # noqa: BLE001 - it is for the coroutine
                go_on = partial(self._work.throw, error)


def _outcome(code: ActivityFunction, work: asyncio.Future[Any]) -> Any:
    if work.cancelled():
        raise TransientError(f"{code.name} was cancelled")
    return work.result()


def _result(code: ActivityFunction, answer: Any) -> Mapping[str, Any]:
    """Return the result for the reply; raises an error if no reply can carry it."""
    try:
        result = code.write(answer)
        too_long = size(result) > MAX_BYTES
    except (TypeError, ValueError) as error:
        wrong = type(error).__name__
        reason = f"{code.name} returned an answer that does not match its declaration: {wrong}"
        raise InvalidResultError(reason) from None
    if too_long:
        reason = f"{code.name} returned more than {MAX_BYTES} bytes, which cannot be passed on"
        raise InvalidResultError(reason)
    return result


def _message_of(error: Retryable | DeferredResult) -> str:
    return plain(error.reason, MAX_REASON_CHARACTERS)


def _place(error: BaseException) -> str:
    """Return the file and line where an exception was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" at {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
