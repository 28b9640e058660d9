"""What is told of messages when the bus goes away: in memory, and on the local broker behind a gateway (FLT-8)."""

import asyncio
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from unittest.mock import patch

import pytest
from azure.servicebus.aio import ServiceBusClient

from engine.azure.connect import connect
from engine.azure.settings import Settings
from engine.domain.errors import UnavailableError
from engine.domain.messages import AgentRequest
from functions_alone.tests.support.gateways import Gateway
from testkit.memory import in_memory
from tests.support.builders import seconds

QUEUE = "shipping-requests"


def request(number, life=timedelta(seconds=60)):
    """A request that is tried again for so long."""
    times = {"issuedAt": "2026-01-31T08:14:00Z", "completeBy": "2026-01-31T08:15:00Z"}
    fields = {"operation": "ship", "idempotencyKey": "k", "content": {}, **times}
    order_id = f"b00-{number:026d}"
    named = AgentRequest.model_validate(
        {"orderId": order_id, "step": "shipping", "action": "do", "attempt": 1, **fields}
    )
    return named.to_bus("shipping", time_to_live=life)


class InMemory:
    """The bus in memory."""

    def __init__(self):
        self.bus = in_memory().bus

    async def go_away(self):
        self.bus.away = True

    async def come_back(self):
        self.bus.away = False

    async def arrived(self):
        return {message.message_id for message in self.bus.sent}


class BehindAGateway:
    """Service Bus, to which only the gateway leads."""

    def __init__(self, services, gateway):
        text = services.app_environment()["ServiceBus"]
        environment = services.app_environment() | {
            "ServiceBus": text.replace(str(services.ports.amqp_port), str(gateway.port))
        }
        self.parts = connect(Settings.model_validate(environment))
        self.bus = self.parts.bus
        self._services, self._gateway = services, gateway

    async def go_away(self):
        await self._gateway.close()

    async def come_back(self):
        await self._gateway.open()

    @contextmanager
    def silence(self):
        """Let what is sent arrive, and no answer come back; nobody waits for it for long."""
        self._gateway.answers = False
        with patch("engine.azure.messaging.bus.SEND_TIMEOUT_SECONDS", 0.5):
            yield
        self._gateway.answers = True

    async def arrived(self):
        async with (
            ServiceBusClient.from_connection_string(
                self._services.service_bus_connection_string
            ) as client,
            client.get_queue_receiver(QUEUE) as receiver,
        ):
            return {message.message_id for message in await receiver.peek_messages(100)}


@pytest.fixture
async def behind_a_gateway(services):
    gateway = Gateway(services.ports.amqp_port)
    await gateway.open()
    there = BehindAGateway(services, gateway)
    yield there
    await there.parts.close()
    await gateway.close()


@pytest.fixture(params=["memory", "broker"])
def there(request):
    return InMemory() if request.param == "memory" else request.getfixturevalue("behind_a_gateway")


@pytest.mark.proves("FLT-8")
async def test_a_message_that_dies_while_the_bus_is_away_does_not_arrive_later(there):
    """Nobody would take its answer any more; what is sent when the bus is back arrives."""
    dies, lives = request(1, life=seconds(0.3)), request(2)
    await there.go_away()
    with pytest.raises(UnavailableError):
        await there.bus.send([dies])
    with pytest.raises(UnavailableError):
        await there.bus.probe([QUEUE])
    await there.come_back()
    await there.bus.probe([QUEUE])
    await there.bus.send([lives])
    assert {dies.message_id, lives.message_id} & await there.arrived() == {lives.message_id}


@pytest.mark.proves("FLT-8")
async def test_a_message_that_lives_through_the_outage_arrives(behind_a_gateway):
    """Its sender need not know that there was one."""
    there, message = behind_a_gateway, request(3)
    await there.go_away()
    sending = asyncio.create_task(there.bus.send([message]))
    with pytest.raises(UnavailableError):
        await there.bus.probe([QUEUE])
    await there.come_back()
    await sending
    assert message.message_id in await there.arrived()


@pytest.mark.proves("FLT-8")
async def test_what_was_not_confirmed_may_have_arrived(behind_a_gateway):
    """It does, and the answer is lost: whoever sent it hears only that nobody can tell."""
    there, message = behind_a_gateway, replace(request(4), time_to_live=None)
    await there.bus.probe([QUEUE])
    with there.silence(), pytest.raises(UnavailableError):
        await there.bus.send([message])
    assert message.message_id in await there.arrived()
