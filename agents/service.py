"""Carries out requests by calling one remote service."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_exponential_jitter

from agents import rules
from agents.protection import Bulkhead, CircuitBreaker, HealthReporter
from core.errors import NotTriedError, RejectedError, TransientError
from core.messages import AgentReply, AgentRequest
from core.ports import Bus, Clock, RemoteService

log = logging.getLogger(__name__)


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
    call_timeout: timedelta
    """How long one call may take before it is tried again."""
    circuit: CircuitBreaker
    bulkhead: Bulkhead
    health_reporter: HealthReporter

    async def handle(self, request: AgentRequest) -> None:
        """Call the service and reply, or, once the time is up, say nothing at all (AGT-4, AGT-5)."""
        with self.health_reporter.at_work():
            reply = await self._carry_out(request)
        if reply is None or self.clock() >= rules.silent_from(request, reply, self.margin):
            log.info("agent.out_of_time", extra={"agent": self.name, "request": request.request_id})
            return
        await self.bus.send([reply.to_bus(self.name, self.clock())])

    async def _carry_out(self, request: AgentRequest) -> AgentReply | None:
        if self._seconds_left(request) <= 0:
            return None
        unanswered = 0
        try:
            async for attempt in self._retrying(request):
                unanswered = attempt.retry_state.attempt_number - 1
                with attempt:
                    return rules.reply(request, "completed", result=await self._call(request, first=not unanswered))
        except RejectedError as rejection:
            in_doubt = rejection.in_doubt or unanswered > 0
            return rules.reply(request, "failed", reason=str(rejection)[:1000], in_doubt=in_doubt)
        except NotTriedError as reason:
            await self.health_reporter.turned_away()
            return rules.not_tried(request, reason, in_doubt=unanswered > 0)
        except TransientError as fault:
            log.warning("agent.gave_up", extra={"agent": self.name, "request": request.request_id, "why": str(fault)})
            return rules.reply(request, "unfinished", reason=str(fault)[:1000])
        return None

    async def _call(self, request: AgentRequest, *, first: bool) -> Mapping[str, Any]:
        """Call once, when it is our turn, if the circuit is closed: before the wait for that, and after it (AGT-8)."""
        self.circuit.admit()
        async with self.bulkhead.turn(self._latest_turn(request)):
            if first:
                await self.health_reporter.waited(request.waited(self.clock()))
            with self.circuit.guard(request.order_id):
                timeout = min(self._seconds_left(request), self.call_timeout.total_seconds())
                return await self.remote.call(request, timeout)

    def _latest_turn(self, request: AgentRequest) -> datetime:
        """Return when a call has to begin at the latest, to be answered in time."""
        return max(self.clock(), rules.stop_at(request, self.margin) - self.call_timeout)

    def _retrying(self, request: AgentRequest) -> AsyncRetrying:
        """Retry transient faults with exponential back-off and jitter, but only while time is left (AGT-2)."""

        def too_late(state: RetryCallState) -> bool:
            return state.upcoming_sleep >= self._seconds_left(request)

        return AsyncRetrying(
            retry=retry_if_exception_type(TransientError),
            wait=wait_exponential_jitter(multiplier=0.1, max=10, jitter=0.1),
            stop=too_late,
            sleep=self.sleep,
            reraise=True,
        )

    def _seconds_left(self, request: AgentRequest) -> float:
        """Return how long there still is to work on the request; zero or less when it came too late (AGT-5)."""
        return (rules.stop_at(request, self.margin) - self.clock()).total_seconds()
