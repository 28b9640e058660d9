"""Carries out requests by calling one remote service."""

# The pattern in an hour, 15 of 23: the call

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    retry_if_not_exception_type,
    wait_exponential_jitter,
)

from agents import rules
from agents.bulkhead import Bulkhead
from agents.circuit_breaker import CircuitBreaker, ProbeTimeoutError
from agents.health import HealthReporter
from engine.domain.attempts import NotAttemptedReason
from engine.domain.errors import (
    AnswersLaterError,
    CallTimeoutError,
    DeferredError,
    GatewayError,
    NotAttemptedError,
    PermanentError,
    ThrottledError,
    TransientError,
)
from engine.domain.messages import (
    AgentReply,
    AgentRequest,
    CompletedReply,
    DeferredReply,
    FailedReply,
    NotAttemptedReply,
)
from engine.ports import Bus, Clock, RemoteService, Slowdown

log = logging.getLogger(__name__)

LATE = "too little time was left when the request came"
NO_TIME = "no time was left for a call"
TOO_LATE = "the service answered after the time was up"
OVERDUE = "the service accepted the work, but did not finish it in time"


@dataclass(kw_only=True, slots=True)
class _EarlierCalls:
    """The result of the earlier calls of an attempt."""

    unanswered: bool
    """Whether any of them had no answer."""
    accepted: bool = False
    """Whether the service has deferred one of them, and its final answer is due (AGT-11)."""
    fault: TransientError = field(default_factory=lambda: CallTimeoutError(NO_TIME))
    """The last transient fault."""

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record how the call in the block fails."""
        try:
            yield
        except TransientError as fault:
            self.unanswered, self.fault = True, fault
            raise
        except DeferredError:
            self.accepted = True
            raise


@dataclass(frozen=True, kw_only=True)
class AgentService:
    """The agent of one remote service (AGT-1)."""

    name: str
    remote: RemoteService
    bus: Bus
    clock: Clock
    sleep: Callable[[float], Awaitable[None]]
    margin: timedelta
    """How long before the complete-by time the agent stops."""
    usual_call_timeout: timedelta
    slowdown: Slowdown
    circuit: CircuitBreaker
    bulkhead: Bulkhead
    health_reporter: HealthReporter

    @property
    def call_timeout(self) -> timedelta:
        """How long a call that begins now may take before it is retried."""
        return self.usual_call_timeout * self.slowdown()

    async def handle(self, request: AgentRequest, *, again: bool = False) -> None:
        """Call the service and reply. After the complete-by time, send no reply (AGT-4, AGT-5).

        There is no reply either if the service answers at its callback URL (ANS-8).

        A request that is delivered `again` may already have reached the service, from a process
        that ended. A time-out is reported in the agent's health row, which never changes the
        order's state.
        """
        if self._is_too_late(request):
            return
        with self.health_reporter.at_work():
            try:
                reply = await self._carry_out(request, again=again)
            except TransientError as fault:
                await self._gave_up(request, fault)
                return
            except AnswersLaterError:  # over its link; no reply of ours ends the step
                facts = {"agent": self.name, "request": request.request_id}
                log.info("agent.answered_later", extra=facts)
                await self.health_reporter.answers_later(request)
                return
        if not self._is_too_late(request):
            message = reply.model_copy(update={"instance": self.health_reporter.instance})
            await self.bus.send([message.to_bus(self.name, self.clock())])
            is_answer = not isinstance(reply, NotAttemptedReply)
            self.health_reporter.replied(request, is_answer=is_answer)
        elif isinstance(reply, CompletedReply | FailedReply):
            await self._gave_up(request, CallTimeoutError(TOO_LATE))

    async def _carry_out(self, request: AgentRequest, *, again: bool) -> AgentReply:
        """Return the reply. Raises the last `TransientError` if no time is left for a call.

        Raises `AnswersLaterError` if the service answers at its callback URL (ANS-8).
        """
        if self.clock() > rules.latest_beginning(request, self.margin, self.call_timeout):
            late = NotAttemptedError(NotAttemptedReason.LATE, LATE, timedelta())
            return rules.not_attempted(request, late, was_called=again, was_deferred=False)
        earlier = _EarlierCalls(unanswered=again)
        try:
            async for attempt in self._retrying(request):
                with attempt, earlier.recorded():
                    if self._is_too_late(request):  # the pause took the remaining time
                        raise earlier.fault
                    is_first = attempt.retry_state.attempt_number == 1
                    result = await self._call(request, first=is_first)
        except PermanentError as error:
            return rules.failed(
                request, error, was_called=earlier.unanswered, was_deferred=earlier.accepted
            )
        except (NotAttemptedError, ThrottledError) as error:
            await self.health_reporter.turned_away()
            return rules.not_attempted(
                request, error, was_called=earlier.unanswered, was_deferred=earlier.accepted
            )
        except DeferredError as error:
            return self._later(request, error, was_called=earlier.unanswered)
        return rules.completed(request, result)

    async def _call(self, request: AgentRequest, *, first: bool) -> Mapping[str, Any]:
        """Call the service with a slot.

        The circuit is checked before and after the wait (AGT-8).
        """
        self.circuit.admit()
        async with self.bulkhead.turn(self._latest_turn(request)):
            if first:
                self.circuit.admit()  # a request that is turned away here has not begun
                await self.health_reporter.request_started(request)
                if self._is_too_late(request):  # the report took the remaining time
                    raise CallTimeoutError(NO_TIME)
            with self.circuit.guard(request.order_id):
                timeout = min(self._seconds_left(request), self.call_timeout.total_seconds())
                return await self.remote.call(request, timeout)

    def _later(
        self, request: AgentRequest, error: DeferredError, *, was_called: bool
    ) -> DeferredReply:
        """Return the reply about deferred work. Raises `TransientError` if it is overdue."""
        if rules.is_overdue(request, self.clock()):
            raise TransientError(OVERDUE) from error
        return rules.deferred(request, error, was_called=was_called)

    async def _gave_up(self, request: AgentRequest, fault: TransientError) -> None:
        why = str(fault)
        log.warning(
            "agent.gave_up", extra={"agent": self.name, "request": request.request_id, "why": why}
        )
        await self.health_reporter.attempt_without_result(
            request,
            why,
            by_gateway=isinstance(fault, GatewayError),
            is_timeout=isinstance(fault, CallTimeoutError),
        )

    def _is_too_late(self, request: AgentRequest) -> bool:
        if self._seconds_left(request) > 0:
            return False
        log.info("agent.out_of_time", extra={"agent": self.name, "request": request.request_id})
        return True

    def _latest_turn(self, request: AgentRequest) -> datetime:
        """Return the latest time at which a call can begin and still be answered in time."""
        return max(self.clock(), rules.stop_at(request, self.margin) - self.call_timeout)

    def _retrying(self, request: AgentRequest) -> AsyncRetrying:
        """Retry transient faults with exponential back-off and jitter, while time is left (AGT-2).

        A half-open probe that timed out is not retried: the circuit is open again, and the attempt
        times out. So an order ends even if its service hangs for all orders (AGT-8). A service that
        has deferred the call gets it again after the pause that it names, or after the retry's
        pause if that is longer, provided that time is left for a whole call (AGT-11).
        """
        back_off = wait_exponential_jitter(multiplier=0.1, max=10, jitter=0.1)

        def pause(state: RetryCallState) -> float:
            accepted = _accepted(state)
            requested = rules.pause_after(accepted).total_seconds() if accepted else 0.0
            return max(requested, back_off(state))

        def too_late(state: RetryCallState) -> bool:
            call = self.call_timeout.total_seconds() if _accepted(state) else 0
            return state.upcoming_sleep + call >= self._seconds_left(request)

        return AsyncRetrying(
            retry=retry_if_exception_type((TransientError, DeferredError))
            & retry_if_not_exception_type(ProbeTimeoutError),
            wait=pause,
            stop=too_late,
            sleep=self.sleep,
            reraise=True,
        )

    def _seconds_left(self, request: AgentRequest) -> float:
        """Return the remaining time for the request. Zero or less if it came too late (AGT-5)."""
        return (rules.stop_at(request, self.margin) - self.clock()).total_seconds()


def _accepted(state: RetryCallState) -> DeferredError | None:
    """Return the error by which the last call was deferred. None if it was not."""
    error = state.outcome.exception() if state.outcome else None
    return error if isinstance(error, DeferredError) else None
