"""The payment agent, with a clock that the test holds."""

from dataclasses import replace
from datetime import UTC, datetime

from builders import ALLOWANCE, NOW, new_order, scheduler, seconds

from adapters.memory import MemoryRemoteService, in_memory
from agents.circuit import Circuit
from agents.gauge import Gauge
from agents.limits import CallLimits
from agents.service import AgentService
from core.messages import AgentReply, AgentRequest

MARGIN = seconds(0.5)
CALL_TIMEOUT = seconds(2)
CIRCUIT_ORDERS, OPEN_FOR = 10, seconds(30)


class Agency:
    """The agent, a request that was issued just now, and a remote service that fails as it is told."""

    def __init__(self, *failures, begins=NOW, allowance=ALLOWANCE, in_flight=10):
        self.now = begins
        self.pauses = []
        """How long the agent slept, each time, in seconds."""
        self.parts = in_memory()
        self.remote = MemoryRemoteService(failures=list(failures))
        self.circuit = Circuit(orders=CIRCUIT_ORDERS, open_for=OPEN_FOR, clock=self.clock)
        self.agent = AgentService(
            name="payment",
            remote=self.remote,
            bus=self.parts.bus,
            clock=self.clock,
            sleep=self.sleep,
            margin=MARGIN,
            call_timeout=CALL_TIMEOUT,
            circuit=self.circuit,
            limits=CallLimits(in_flight=in_flight, clock=self.clock),
            gauge=Gauge(
                agent="payment", instance="a1", circuit=self.circuit, measures=self.parts.measures, clock=self.clock
            ),
        )
        order = new_order(not_before=begins, updated_at=begins)
        (message,) = scheduler.claim(order.with_steps(replace(order.steps[0], allowance=allowance)), begins).messages
        self.request = AgentRequest.model_validate_json(message.body)

    def clock(self):
        return self.now

    async def sleep(self, time):
        self.pauses.append(time)
        self.now += seconds(time)

    def replies(self):
        return [(m.correlation_id, AgentReply.model_validate_json(m.body)) for m in self.parts.bus.sent]

    async def measures(self):
        """What the agent says of itself."""
        return await self.parts.measures.since(datetime.min.replace(tzinfo=UTC))
