"""The payment agent, with a clock that the test holds."""

from dataclasses import replace
from datetime import UTC, datetime

from engine.domain.messages import AgentRequest, decode_reply
from testkit.memory import in_memory
from tests.support.apps import app
from tests.support.builders import NOW, TIMEOUT, orders, scheduler, seconds, steps

MARGIN = seconds(0.5)
CALL_TIMEOUT = seconds(2)
CIRCUIT_ORDERS, OPEN_FOR = 10, seconds(30)


class Agency:
    """The agent, a request that was issued just now, and a remote service that fails as it is told."""

    def __init__(self, *failures, begins=NOW, timeout=TIMEOUT, in_flight=10):
        self.now = begins
        self.pauses = []
        """How long the agent slept, each time, in seconds."""
        self.parts = in_memory(clock=self.clock)
        self.remote = self.parts.services["payment"]
        self.remote.failures = list(failures)
        self.app = app(
            self.parts,
            instance_id="a1",
            reply_margin_seconds=MARGIN.total_seconds(),
            remote_call_timeout_seconds=CALL_TIMEOUT.total_seconds(),
            circuit_orders=CIRCUIT_ORDERS,
            circuit_open_seconds=OPEN_FOR.total_seconds(),
            calls_in_flight={"payment": in_flight},
        )
        self.agent = replace(self.app.engine.agent(self.app.engine.agents[0]), sleep=self.sleep)
        self.circuit = self.agent.circuit
        payment = [steps.new(timeout=timeout)]
        order = orders.new(steps=payment, ready_since=begins, updated_at=begins)
        (message,) = scheduler.claim(order, begins).messages
        self.request = AgentRequest.model_validate_json(message.body)

    def clock(self):
        return self.now

    async def sleep(self, time):
        self.pauses.append(time)
        self.now += seconds(time)

    def replies(self):
        return [(m.correlation_id, decode_reply(m.body)) for m in self.parts.bus.sent]

    async def agent_health(self):
        """What the agent says of itself."""
        return await self.app.engine.agent_health.since(datetime.min.replace(tzinfo=UTC))
