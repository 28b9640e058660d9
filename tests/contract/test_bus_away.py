"""What is told of messages when the bus goes away: in memory, and on the local broker behind a gateway (FLT-8)."""

from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import pytest
from azure.servicebus.aio import ServiceBusClient
from builders import seconds
from gateways import Gateway
from memory import in_memory

from adapters.azure import connect
from adapters.settings import Settings
from core.errors import NotSentError, UnavailableError
from core.messages import AgentRequest

QUEUE = "shipping-requests"


def request(number):
    """A request that would be tried again for a minute, were it not certain that it has not arrived."""
    times = {"issuedAt": "2026-01-31T08:14:00Z", "completeBy": "2026-01-31T08:15:00Z"}
    fields = {"operation": "ship", "idempotencyKey": "k", "content": {}, **times}
    order_id = f"b00-{number:026d}"
    named = AgentRequest.model_validate({"orderId": order_id, "step": "shipping", "attempt": 1, **fields})
    return named.to_bus("shipping", time_to_live=seconds(60))


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
        with patch("adapters.messaging.bus.SEND_TIMEOUT_SECONDS", 0.5):
            yield
        self._gateway.answers = True

    async def arrived(self):
        async with (
            ServiceBusClient.from_connection_string(self._services.service_bus_connection_string) as client,
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
async def test_what_certainly_did_not_go_out_is_told(there):
    """Soon, though it would live for longer; nor does it arrive later, when the bus is back."""
    lost, kept = replace(request(1), patience=seconds(0.2)), request(2)
    await there.go_away()
    with pytest.raises(NotSentError):
        await there.bus.send([lost])
    with pytest.raises(UnavailableError):
        await there.bus.probe([QUEUE])
    await there.come_back()
    await there.bus.probe([QUEUE])
    await there.bus.send([kept])
    assert {lost.message_id, kept.message_id} & await there.arrived() == {kept.message_id}


@pytest.mark.proves("FLT-8")
async def test_what_may_have_arrived_is_not_called_unsent(behind_a_gateway):
    """It does arrive, and the answer is lost."""
    there, message = behind_a_gateway, replace(request(3), time_to_live=None)
    await there.bus.probe([QUEUE])
    with there.silence(), pytest.raises(UnavailableError) as raised:
        await there.bus.send([message])
    assert not isinstance(raised.value, NotSentError)
    assert message.message_id in await there.arrived()
