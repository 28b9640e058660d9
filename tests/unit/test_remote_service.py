"""What an agent makes of its service's answers, and where its calls go: over real HTTP."""

import asyncio
import json
from unittest.mock import AsyncMock

import azure.functions as func
import pytest
from agency import Agency
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
from apps import SETTINGS
from azure.core.exceptions import ClientAuthenticationError
from azure.functions.servicebus import ServiceBusMessage
from azure.servicebus import ServiceBusMessageBatch
from builders import ORDER_ID, seconds
from kept import kept
from memory import of_columns

import agents.triggers
from adapters.connections import Connections
from adapters.messaging.bus import _outgoing
from adapters.remote import MAX_BYTES, MAX_REASON_CHARACTERS, HttpRemoteService
from agents import rules
from core.errors import RejectedError, TransientError
from core.messages import AgentRequest
from stores.poison import PoisonStore

STANDARD_BYTES = 256 * 1024
"""What a message on Service Bus Standard may have."""


class Service:
    """A remote service that answers as it is told, and notes what it is asked."""

    def __init__(self):
        self.answer = web.Response(text="{}")
        self.takes = 0.0
        """Seconds."""
        self.paths = []
        self.credentials = []
        self.cookies = []
        self.app = web.Application()
        self.app.router.add_route("*", "/{path:.*}", self.answers)

    async def answers(self, request):
        self.paths.append(request.raw_path)
        self.credentials.append(request.headers.get("Authorization"))
        self.cookies.append(dict(request.cookies))
        await asyncio.sleep(self.takes)
        return self.answer

    async def call(self, request=None):
        return await self.remote.call(request or Agency().request, 5)


@pytest.fixture
async def service():
    service = Service()
    async with TestServer(service.app) as server, ClientSession() as session:
        service.url, service.session = str(server.make_url("/pay")), lambda: session
        service.remote = HttpRemoteService(service.url, service.session)
        yield service


@pytest.mark.proves("AGT-2")
@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 302, 204])
async def test_what_may_pass_is_tried_again(service, status):
    """409 among them: that is how services say that they still work on a call with the same key."""
    service.answer = web.Response(status=status, text="" if status == 204 else '{"detail": "later"}')
    with pytest.raises(TransientError):
        await service.call()


@pytest.mark.proves("AGT-6")
@pytest.mark.parametrize("status", [400, 402, 404, 410, 422])
async def test_a_refusal_is_final_and_says_why(service, status):
    """In the service's own words."""
    service.answer = web.Response(status=status, text='{"detail": "card declined"}')
    with pytest.raises(RejectedError, match="card declined") as raised:
        await service.call()
    assert not raised.value.in_doubt


@pytest.mark.proves("AGT-6")
async def test_of_a_refusal_that_says_too_much_the_beginning_is_kept(service):
    """It stands in the order's record, and in alerts."""
    service.answer = web.Response(status=422, text=json.dumps({"detail": "x" * 5000}))
    with pytest.raises(RejectedError) as raised:
        await service.call()
    assert str(raised.value) == "x" * MAX_REASON_CHARACTERS


@pytest.mark.proves("AGT-1")
async def test_a_call_goes_where_it_is_sent_and_nowhere_else(service):
    """A service may not send it on."""
    service.answer = web.Response(status=307, headers={"Location": "/elsewhere"})
    with pytest.raises(TransientError):
        await service.call()
    assert service.paths == ["/pay/authorise"]


async def test_a_service_that_asks_for_it_is_shown_who_calls(service):
    """And no other; without a token there is no call, and the failure may pass like any other."""
    await service.call()
    service.answer = web.Response(text="{}")
    tokens = AsyncMock(side_effect=["a-token", ClientAuthenticationError("no identity")])
    service.remote = HttpRemoteService(service.url, service.session, tokens)
    await service.call()
    with pytest.raises(TransientError, match="no identity"):
        await service.call()
    assert service.credentials == [None, "Bearer a-token"]


async def test_a_service_hears_nothing_from_the_calls_before():
    """A cookie that it set for one order would go along with those of other customers."""
    service, pool = Service(), Connections(SETTINGS)
    service.answer.set_cookie("session", "ada")
    async with TestServer(service.app, host="localhost") as server:  # of an address nobody keeps a cookie
        service.remote = HttpRemoteService(str(server.make_url("/pay")), lambda: pool.http)
        await service.call()
        service.answer = web.Response(text="{}")
        await service.call()
        await pool.close()
    assert service.cookies == [{}, {}]


async def test_the_token_and_the_answer_share_one_time_out(service):
    """What the one took, the other one does not get: each would be in time by itself."""

    async def token():
        await asyncio.sleep(0.3)
        return "a-token"

    service.remote, service.takes = HttpRemoteService(service.url, service.session, token), 0.3
    with pytest.raises(TransientError, match="TimeoutError"):
        await service.remote.call(Agency().request, 0.5)


async def test_there_is_no_call_if_the_token_never_comes(service):
    """And the failure may pass."""
    service.remote = HttpRemoteService(service.url, service.session, asyncio.Event().wait)
    with pytest.raises(TransientError, match="TimeoutError"):
        await service.remote.call(Agency().request, 0.05)
    assert service.paths == []


def too_long(size):
    return json.dumps({"label": "x" * size})


TOO_LONG = {
    "a few bytes": too_long(MAX_BYTES),
    "ten times": too_long(10 * MAX_BYTES),
    "only as we write it": f'{{"all":[{",".join(["1e15"] * (MAX_BYTES // 6))}]}}',
}


@pytest.mark.proves("AGT-6", "UND-2")
@pytest.mark.parametrize("label", TOO_LONG)
async def test_an_answer_that_no_reply_can_carry_is_a_failure_in_doubt(service, label):
    """The service has done it: to ask again would change nothing, and to call it refused would leave it standing."""
    service.answer = web.Response(text=TOO_LONG[label])
    with pytest.raises(RejectedError, match="too long") as raised:
        await service.call()
    assert raised.value.in_doubt
    service.answer = web.Response(text=TOO_LONG[label], status=503)
    with pytest.raises(TransientError):
        await service.call()


@pytest.mark.proves("AGT-6")
@pytest.mark.parametrize("character", ["x", "é", "\U0001f375", '"', "\x01"], ids=ascii)
async def test_the_longest_answer_fits_a_message(service, character):
    """With all that the reply says besides."""
    room = MAX_BYTES - 20
    service.answer = web.Response(body=filled(character, room))
    agency = Agency()
    result = await service.call(agency.request)
    reply = rules.reply(agency.request, "completed", result=result).to_bus("payment", agency.now)
    batch = ServiceBusMessageBatch(max_size_in_bytes=STANDARD_BYTES)
    batch.add_message(_outgoing(reply))
    assert batch.size_in_bytes > room / 2


def filled(character, room):
    """An answer of nearly so many bytes."""
    one = len(json.dumps(character, ensure_ascii=False).encode()) - 2
    return json.dumps({"label": character * (room // one)}, ensure_ascii=False).encode()


FORGED = {
    "another path": {"operation": "../admin/refund-all?x="},
    "a path": {"operation": "pay/refund"},
    "no path": {"operation": ".."},
    "an encoded path": {"operation": "%2e%2e"},
    "a query": {"operation": "authorise?all=1"},
    "a line": {"operation": "authorise\n"},
    "a time that no clock reaches": {"completeBy": "9999-12-31T23:59:59Z"},
    "a time before all": {"issuedAt": "0001-01-01T00:00:00Z"},
    "a header": {"idempotencyKey": "k\r\nX-Admin: 1"},
    "no key": {"idempotencyKey": ""},
}


@pytest.mark.proves("AGT-1", "FLT-6")
@pytest.mark.parametrize("label", FORGED)
async def test_a_forged_request_is_kept_with_its_reason_and_costs_no_call(service, label):
    """Who may send to an agent's queue reaches the operations of its service, and nothing else on its host."""
    agency, poison = Agency(), PoisonStore(of_columns())
    body = json.dumps(json.loads(agency.request.to_json()) | FORGED[label]).encode()
    app = func.FunctionApp()
    app.register_functions(agents.triggers.blueprint(agency.agent, poison))
    (function,) = app.get_functions()
    await function.get_user_function()(
        ServiceBusMessage(
            body=body, message_id="m", correlation_id=ORDER_ID, application_properties={}, user_properties={}
        )
    )
    (message,) = await kept(poison)
    assert (message.source, message.correlation_id) == ("payment-requests", ORDER_ID)
    assert next(iter(FORGED[label])) in message.reason
    assert agency.remote.calls == []
    forged = AgentRequest.model_construct(**dict(agency.request) | {"operation": FORGED[label].get("operation", "/")})
    with pytest.raises(RejectedError):
        await service.call(forged)
    assert service.paths == []


@pytest.mark.proves("FLT-6")
async def test_a_request_whose_time_is_far_away_is_answered_once():
    """A reply need not live that long; its queue does not keep it that long either."""
    agency = Agency(timeout=seconds(10**9))
    await agency.agent.handle(agency.request)
    (reply,) = agency.parts.bus.sent
    assert _outgoing(reply).time_to_live < seconds(2**32 / 1000)
    assert reply.correlation_id.startswith(ORDER_ID)
