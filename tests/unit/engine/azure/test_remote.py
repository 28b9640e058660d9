"""What an agent makes of its service's answers, and where its calls go: over real HTTP."""

import asyncio
import json
from dataclasses import replace
from email.utils import format_datetime
from unittest.mock import AsyncMock

import azure.functions as func
import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
from azure.core.exceptions import ClientAuthenticationError
from azure.functions.servicebus import ServiceBusMessage
from azure.servicebus import ServiceBusMessageBatch

import agents.triggers
from agents import rules
from engine.azure.answers import DEFAULT_PAUSE, MAX_BYTES
from engine.azure.connections import Connections
from engine.azure.credentials import Fixed, Token, Tokens
from engine.azure.messaging.bus import _outgoing
from engine.azure.remote import HttpRemoteService
from engine.domain.errors import (
    AnswersLaterError,
    DeferredError,
    GatewayError,
    InvalidRequestError,
    InvalidResultError,
    RejectedError,
    ThrottledError,
    TransientError,
)
from engine.domain.messages import AgentRequest
from engine.words.causes import words_of
from tests.support.agency import Agency
from tests.support.apps import SETTINGS
from tests.support.builders import NOW, ORDER_ID, seconds
from tests.support.kept import kept

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
        self.links = []
        self.received = []
        self.app = web.Application()
        self.app.router.add_route("*", "/{path:.*}", self.answers)

    async def answers(self, request):
        self.paths.append(request.raw_path)
        self.credentials.append(request.headers.get("Authorization"))
        self.cookies.append(dict(request.cookies))
        self.links.append(request.headers.get("Callback-Url"))
        self.received.append((request.headers["Idempotency-Key"], await request.json()))
        await asyncio.sleep(self.takes)
        answer = self.answer
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers)

    def says(self, status, text='{"detail": "why"}', **headers):
        """Let it answer this."""
        self.answer = web.Response(
            status=status,
            text="" if status == 204 else text,
            headers={"Retry-After": "60"} | headers,
        )

    async def call(self, request=None):
        return await self.remote.call(request or Agency().request, 5)


@pytest.fixture
async def service():
    service = Service()
    async with TestServer(service.app) as server, ClientSession() as session:
        service.remote = remote_at(server, lambda: session)
        yield service


def remote_at(server, session):
    """The remote service that this server plays."""
    return HttpRemoteService(
        base_url=str(server.make_url("/pay")),
        session=session,
        refusals=(402,),
        longest_wait=LONGEST_WAIT,
        clock=lambda: NOW,
    )


LONGEST_WAIT = seconds(600)
PASSES = (202, 408, 409, 425, 500, 502, 504, 507, 599)
BY_GATEWAY = (
    204,
    206,
    300,
    302,
    307,
    401,
    403,
    404,
    405,
    406,
    407,
    411,
    414,
    415,
    418,
    421,
    426,
    428,
    431,
    451,
    501,
    999,
)


@pytest.mark.proves("AGT-2")
@pytest.mark.parametrize("status", PASSES + BY_GATEWAY)
async def test_what_is_not_listed_as_final_may_pass(service, status):
    """A gateway's or proxy's answer is no word of the service, and is told apart from one."""
    service.says(status, "[]" if status == 206 else '{"detail": "why"}')
    with pytest.raises(TransientError, match=str(status)) as raised:
        await service.call()
    assert isinstance(raised.value, GatewayError) == (status in BY_GATEWAY)


@pytest.mark.proves("AGT-2")
async def test_no_answer_is_no_word_of_anybody(service):
    """Neither the service nor what stands before it has said anything."""
    service.remote = replace(service.remote, base_url="http://127.0.0.1:1")
    with pytest.raises(TransientError, match="no answer") as raised:
        await service.call()
    assert not isinstance(raised.value, GatewayError)


@pytest.mark.parametrize(
    "body",
    [
        '{"detail": "card declined", "error": "other"}',
        '{"error": {"type": "card_error", "message": "card declined"}}',
        '{"error": "card declined"}',
    ],
)
async def test_the_words_of_a_refusal_are_found_where_services_put_them(service, body):
    """In problem details, or in an error as Stripe and OAuth servers give it."""
    service.says(402, body)
    with pytest.raises(RejectedError, match=r"^card declined$"):
        await service.call()


@pytest.mark.proves("AGT-6")
@pytest.mark.parametrize("status", [402, 410, 422])
async def test_a_refusal_is_final_and_says_why(service, status):
    """In the service's own words; 402 since it is declared."""
    service.says(status, '{"detail": "card declined"}')
    with pytest.raises(RejectedError, match="card declined"):
        await service.call()


@pytest.mark.parametrize(
    ("body", "identifiers"),
    [
        ({"type": "https://p.example.com/declined"}, {"type": "https://p.example.com/declined"}),
        ({"code": "declined", "type": "about:blank"}, {"code": "declined"}),
        ({"type": "https://tools.ietf.org/html/rfc4918#section-11.2", "code": "402"}, {}),
        (
            {"error": {"type": "card_error", "code": "expired_card", "message": "no"}},
            {"type": "card_error", "code": "expired_card"},
        ),
        ({"error": "declined", "code": 7, "type": None}, {}),
        ({"code": "a\u0000b\n" + "c" * 200}, {"code": "a b " + "c" * 86}),
    ],
)
async def test_a_refusal_has_the_type_and_the_code_that_its_service_gave_it(
    service, body, identifiers
):
    """They name its cause whatever the text says; what says no more than the status names nothing."""
    service.says(402, json.dumps(body))
    with pytest.raises(RejectedError) as raised:
        await service.call()
    assert raised.value.identifiers == identifiers


async def test_what_is_not_declared_is_no_refusal(service):
    """The agent of another service may take the same status for a gateway's."""
    service.says(402)
    service.remote = replace(service.remote, refusals=())
    with pytest.raises(TransientError) as raised:
        await service.call()
    assert isinstance(raised.value, GatewayError)


@pytest.mark.proves("AGT-6")
@pytest.mark.parametrize("status", [400, 413])
async def test_a_fault_of_our_own_request_is_final_and_for_an_operator(service, status):
    """It would be answered the same each time, and is no reason to take an order back."""
    service.says(status)
    with pytest.raises(InvalidRequestError, match=f"{status} why"):
        await service.call()


IN_A_MINUTE, NEXT_DAY, LONG_AGO = (
    format_datetime(NOW + seconds(wait), usegmt=True) for wait in (60, 86_400, -3600)
)


IN_A_MINUTE_RFC_850 = (NOW + seconds(60)).strftime("%A, %d-%b-%y %H:%M:%S GMT")
IN_A_MINUTE_ASCTIME = (NOW + seconds(60)).strftime("%a %b %e %H:%M:%S %Y")


@pytest.mark.proves("AGT-8")
@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("retry_after", "wait"),
    [
        ("1", 1),
        (" 60 ", 60),
        ("600", 600),
        ("601", 600),
        ("0060", 60),
        ("9" * 5000, 600),
        (IN_A_MINUTE, 60),
        (IN_A_MINUTE.replace("GMT", "-0000"), 60),
        (IN_A_MINUTE_RFC_850, 60),
        (IN_A_MINUTE_ASCTIME, 60),
        (NEXT_DAY, 600),
        ("1.", 1),
        ("0.2", 1),
        ("20.0", 20),
        ("20.001", 21),
        ("599.9", 600),
        ("9" * 5000 + ".5", 600),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 600),
        ("Fri, 31 Dec 9999 23:59:59 -2359", 600),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_a_service_is_left_alone_for_as_long_as_it_asks_within_bounds(
    service, status, retry_after, wait
):
    """In seconds or until a time; a call was made all the same, and may have had its effect.

    Fractions of seconds are rounded up (bugs 11).
    """
    service.says(status, **{"Retry-After": retry_after})
    with pytest.raises(ThrottledError, match=f"{status} why") as raised:
        await service.call()
    assert raised.value.retry_after == seconds(wait)


NO_PAUSE = ("", "0", "0.0", "000", LONG_AGO, "Mon, 01 Jan 0000 00:00:00 GMT")
UNREADABLE = (
    "-5",
    "+5",
    ".5",
    "1,5",
    "1e9",
    "nan",
    "inf",
    "soon",
    "20s",
    "60, 120",
    "٣",
    "2026-01-05T12:00:00Z",
    "Wed, 32 Dec 2099 00:00:00 GMT",
    f"Fri, 31 Dec {'9' * 30} 23:59:59 GMT",
    f"Fri, 31 Dec 2099 23:59:59 +{'9' * 30}",
    "Fri," * 500,
)


@pytest.mark.proves("AGT-8", "FLT-6")
@pytest.mark.parametrize("retry_after", UNREADABLE, ids=range(len(UNREADABLE)))
@pytest.mark.parametrize("status", [429, 503])
async def test_a_pause_that_cannot_be_read_is_one_of_the_default_length(
    service, status, retry_after
):
    """The service does ask for one, so it is no failure of the order (bugs 11)."""
    service.says(status, **{"Retry-After": retry_after})
    with pytest.raises(ThrottledError) as raised:
        await service.call()
    assert raised.value.retry_after == DEFAULT_PAUSE
    service.remote = replace(service.remote, longest_wait=seconds(5))
    with pytest.raises(ThrottledError) as raised:
        await service.call()
    assert raised.value.retry_after == seconds(5)


@pytest.mark.proves("AGT-2")
@pytest.mark.parametrize("retry_after", NO_PAUSE)
@pytest.mark.parametrize("status", [429, 503])
async def test_what_asks_for_no_pause_is_a_failure_like_any_other(service, status, retry_after):
    """No time, or one that is over: it is tried again, and counts."""
    service.says(status, **{"Retry-After": retry_after})
    with pytest.raises(TransientError) as raised:
        await service.call()
    assert not isinstance(raised.value, GatewayError)


@pytest.mark.parametrize("status", [200, 400, 403, 422, 500, 502])
async def test_only_a_service_that_is_busy_asks_to_be_left_alone(service, status):
    """Of any other answer the header says nothing to us."""
    service.says(status)
    outcome = (await asyncio.gather(service.call(), return_exceptions=True))[0]
    assert not isinstance(outcome, ThrottledError)


@pytest.mark.proves("AGT-1")
async def test_a_call_goes_where_it_is_sent_and_nowhere_else(service):
    """A service may not send it on."""
    service.answer = web.Response(status=307, headers={"Location": "/elsewhere"})
    with pytest.raises(TransientError):
        await service.call()
    assert service.paths == ["/pay/authorise"]


@pytest.mark.proves("AGT-3")
async def test_a_call_names_its_order_its_step_and_its_key(service):
    """The key is that of the step, and the same at each attempt."""
    request = Agency().request
    for attempt in (1, 2):
        await service.call(request.model_copy(update={"attempt": attempt}))
    body = {"orderId": request.order_id, "step": request.step, "order": dict(request.content)}
    assert service.received == 2 * [(f"{request.order_id}:{request.step}", body)]


async def test_a_service_that_asks_for_it_is_shown_who_calls(service):
    """And no other; without a token there is no call, and the failure may pass like any other."""
    await service.call()
    service.answer = web.Response(text="{}")
    service.remote = replace(service.remote, credential=Fixed({"Authorization": "Bearer a-token"}))
    await service.call()
    fetch = AsyncMock(side_effect=ClientAuthenticationError("no identity"))
    service.remote = replace(service.remote, credential=Tokens(fetch, lambda: NOW))
    with pytest.raises(TransientError, match="no identity"):
        await service.call()
    assert service.credentials == [None, "Bearer a-token"]


async def test_a_service_hears_nothing_from_the_calls_before():
    """A cookie that it set for one order would go along with those of other customers."""
    service, pool = Service(), Connections(SETTINGS)
    service.answer = web.Response(text="{}", headers={"Set-Cookie": "session=ada; Path=/"})
    async with TestServer(
        service.app, host="localhost"
    ) as server:  # of an address nobody keeps a cookie
        service.remote = remote_at(server, lambda: pool.http)
        await service.call()
        service.answer = web.Response(text="{}")
        await service.call()
        await pool.close()
    assert service.cookies == [{}, {}]


async def test_the_token_and_the_answer_share_one_time_out(service):
    """What the one took, the other one does not get: each would be in time by itself."""

    async def fetch(_):
        await asyncio.sleep(0.3)
        return Token(text="a-token", ends=NOW + seconds(60))

    tokens = Tokens(fetch, lambda: NOW)
    service.remote, service.takes = replace(service.remote, credential=tokens), 0.3
    with pytest.raises(TransientError, match="TimeoutError"):
        await service.remote.call(Agency().request, 0.5)


LATER, EARLIER = ("Sun, 01 Jan 2040 00:00:00 GMT", "Mon, 01 Jan 2001 00:00:00 GMT")


@pytest.mark.parametrize(
    ("retry_after", "within", "wait"),
    [
        ("60", 120, 60),
        ("", 120, 30),
        ("", 5, 5),
        ("0", 120, 30),
        ("59.5", 120, 60),
        ("soon", 120, 30),
        ("soon", 5, 5),
        ("86400", 120, 120),
        (LATER, 120, 120),
        (EARLIER, 120, 30),
    ],
)
async def test_a_service_that_answers_later_is_called_again_when_it_says(
    service, retry_after, within, wait
):
    """In half a minute if it does not say when, and at the end of its time at the latest."""
    service.says(202, **{"Retry-After": retry_after})
    service.remote = replace(service.remote, answer_within=seconds(within))
    with pytest.raises(DeferredError, match="202 why") as raised:
        await service.call()
    assert raised.value.retry_after == seconds(wait)


@pytest.mark.parametrize(("retry_after", "wait"), [("60", 60), ("soon", 30), ("", 120)])
async def test_a_service_that_calls_back_is_not_called_before_its_time_is_up(
    service, retry_after, wait
):
    """Unless it says when; then it is asked once more, since it may have called in vain."""
    service.says(202, **{"Retry-After": retry_after})
    service.remote = replace(service.remote, answer_within=seconds(120), calls_back=True)
    with pytest.raises(DeferredError) as raised:
        await service.call()
    assert raised.value.retry_after == seconds(wait)


LINK = "https://orders.example/api/answers/b00-1/payment?token=x"


@pytest.mark.proves("ANS-8")
@pytest.mark.parametrize(
    ("link", "headers", "expected"),
    [
        (LINK, {"Retry-After": ""}, AnswersLaterError),
        (None, {"Retry-After": ""}, TransientError),
        (LINK, {"Retry-After": "5"}, TransientError),
        (LINK, {"Retry-After": "", "Location": "/jobs/1"}, TransientError),
    ],
    ids=["neither", "an undo, which has no link", "a time", "a place"],
)
async def test_a_service_that_says_neither_when_nor_where_to_ask_answers_over_its_link(
    service, link, headers, expected
):
    """Nothing is declared of it; any other 202 is tried again in the same attempt."""
    service.says(202, **headers)
    request = Agency().request.model_copy(update={"callback_url": link})
    with pytest.raises(expected, match="202 why"):
        await service.call(request)


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
    """The service has done it: asking again changes nothing, and a refusal would leave it."""
    service.answer = web.Response(text=TOO_LONG[label])
    with pytest.raises(InvalidResultError, match="too long"):
        await service.call()
    service.answer = web.Response(text=TOO_LONG[label], status=503)
    with pytest.raises(TransientError):
        await service.call()


@pytest.mark.proves("AGT-6")
@pytest.mark.parametrize("character", ["x", "é", "\U0001f375", '"', "\x01"], ids=range(5))
async def test_the_longest_answer_fits_a_message(service, character):
    """With all that the reply says besides."""
    space = MAX_BYTES - 20
    service.answer = web.Response(body=filled(character, space))
    agency = Agency()
    result = await service.call(agency.request)
    reply = rules.completed(agency.request, result).to_bus("payment", agency.now)
    batch = ServiceBusMessageBatch(max_size_in_bytes=STANDARD_BYTES)
    batch.add_message(_outgoing(reply))
    assert batch.size_in_bytes > space / 2


def filled(character, space):
    """An answer of nearly so many bytes."""
    one = len(json.dumps(character, ensure_ascii=False).encode()) - 2
    return json.dumps({"label": character * (space // one)}, ensure_ascii=False).encode()


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
    """Who may send to an agent's queue reaches the operations of its service, and no more."""
    agency = Agency()
    poison = agency.app.engine.poison_store
    body = json.dumps(json.loads(agency.request.to_json()) | FORGED[label]).encode()
    app = func.FunctionApp()
    app.register_functions(agents.triggers.agent_functions(agency.agent, agency.app.engine.unread))
    (function,) = app.get_functions()
    await function.get_user_function()(
        ServiceBusMessage(
            body=body,
            message_id="m",
            correlation_id=ORDER_ID,
            application_properties={},
            user_properties={},
        )
    )
    (message,) = await kept(poison)
    assert (message.source, message.correlation_id) == ("payment-requests", ORDER_ID)
    assert next(iter(FORGED[label])) in words_of(message.reason)
    assert agency.remote.calls == []
    forged = AgentRequest.model_construct(
        **dict(agency.request) | {"operation": FORGED[label].get("operation", "/")}
    )
    with pytest.raises(InvalidRequestError):
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


async def test_a_service_gets_the_link_over_which_it_can_answer_later(service):
    """In a header, which a service that never does so ignores; an undo has none."""
    request = Agency().request
    await service.call(request.model_copy(update={"callback_url": "https://app/api/answers/x"}))
    await service.call(request)
    assert service.links == ["https://app/api/answers/x", None]
