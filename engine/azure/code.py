"""Services whose operations are activities: functions of the business."""

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
"""A function that blocks the event loop for longer than this is logged."""
NO_CAPACITY = "functions that timed out still run, so there is no capacity"
RETRY_AFTER = timedelta(seconds=1)
"""The pause before a request that found no capacity may be repeated."""


def start_thread(run: Callable[[], None], name: str) -> None:
    """Run a function in its own thread, which does not keep the process alive."""
    threading.Thread(target=run, name=name, daemon=True).start()


@dataclass(frozen=True, kw_only=True)
class CodeService:
    """`RemoteService` whose operations are activities. Operations without one go to `other`."""

    agent: str
    operations: Mapping[str, ActivityFunction]
    other: RemoteService | None = None
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    at_once: int
    """How many functions may run at the same time.

    Functions that still run after their time-out count, too.
    """
    answer_within: timedelta | None = None
    """How long the service may take for deferred work. None if it never defers."""
    longest_wait: timedelta
    """The longest pause that the service may request."""
    monotonic: Callable[[], float] = time.monotonic
    start: Callable[[Callable[[], None], str], None] = start_thread
    """Starts a plain function in a thread. The text is the thread's name."""
    _running: set[asyncio.Future[Any]] = field(default_factory=set, init=False, repr=False)

    async def call(self, request: AgentRequest, timeout_seconds: float) -> Mapping[str, Any]:
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
        """Return the answer of the function within the time limit.

        After the limit, the agent continues without the function, which counts as running until it
        ends.
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
            # A thread cannot be ended, and a coroutine may ignore its cancellation.
            if isinstance(work, asyncio.Task):
                work.cancel()
        log.warning("code.ran_out_of_time", extra={"agent": self.agent, "function": code.name})
        raise CallTimeoutError(f"no answer: {code.name} timed out")

    def _ended(self, work: asyncio.Future[Any]) -> None:
        self._running.discard(work)
        if not work.cancelled():
            work.exception()  # or asyncio would complain that nobody has seen it

    def _on_loop(self, code: ActivityFunction, call: Call, ask: Any) -> asyncio.Task[Any]:
        """Start an async function."""

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
        """Start a plain function in a thread."""
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
        """Convert an exception of the function to an error of the app. Raises nothing itself."""
        try:
            return self._meant(code, call, error)
        except Exception as fault:  # noqa: BLE001 - or nobody would hear that the function has ended
            return TransientError(
                f"{code.name} raised {type(error).__name__}, which cannot be read: "
                f"{type(fault).__name__}"
            )

    def _meant(self, code: ActivityFunction, call: Call, error: BaseException) -> AppError:
        """Convert an exception of the function to an error of the app."""
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
        # Only the kind and place, because the text may hold personal data or a secret.
        return TransientError(f"{code.name} raised {type(error).__name__}{_place(error)}")


class _Watched:
    """Awaits a coroutine, and reports how long each of its steps blocks the event loop."""

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
    """Return the result for the reply. Raises `InvalidResultError` if a reply cannot hold it."""
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
    frames = traceback.extract_tb(error.__traceback__)
    return f" at {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
