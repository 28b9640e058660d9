"""What the service of an agent does, over HTTP or as functions of the business: one suite for both."""

import asyncio
import threading
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from engine.azure.answers import MAX_BYTES
from engine.azure.code import CodeService
from engine.azure.remote import HttpRemoteService
from engine.domain.errors import (
    CallTimeoutError,
    DeferredError,
    GatewayError,
    InvalidResultError,
    RejectedError,
    ThrottledError,
    TransientError,
)
from engine.domain.messages import MAX_RETRY_AFTER_SECONDS
from engine.workflow import Agent, Call, DeferredResult, Model, NonRetryable, Operation, Retryable
from tests.support.agency import Agency
from tests.support.builders import NOW, seconds

LONGEST_WAIT, ANSWER_WITHIN = seconds(600), seconds(120)


class Sum(Model):
    """What is asked."""

    amount: int


class Paid(Model):
    """What is answered."""

    reference: str | None = None


class Bank(Agent):
    """The service as a declaration."""

    authorise = Operation(Sum, Paid)


@dataclass
class Does:
    """What the service is told to do with each call."""

    answer: str = "r-1"
    refuses: str | None = None
    fails: bool = False
    busy_for: timedelta | None = None
    later: timedelta | None = None
    """It accepts the call, and wants to be asked again after this."""
    may_answer: threading.Event = field(default_factory=threading.Event)
    received: list[tuple[str, str, Any]] = field(default_factory=list)
    """Order, key and amount of each call."""


@pytest.fixture
def does():
    made = Does()
    made.may_answer.set()
    yield made
    made.may_answer.set()


@pytest.fixture
async def over_http(does):
    async def answer(request):
        body = await request.json()
        key = request.headers["Idempotency-Key"]
        does.received.append((body["orderId"], key, body["order"]["amount"]))
        await asyncio.to_thread(does.may_answer.wait)
        return _over_http(does)

    app = web.Application()
    app.router.add_post("/authorise", answer)
    async with TestServer(app) as server, ClientSession() as session:
        yield HttpRemoteService(
            base_url=str(server.make_url("")),
            session=lambda: session,
            answer_within=ANSWER_WITHIN,
            longest_wait=LONGEST_WAIT,
            clock=lambda: NOW,
        )


def _over_http(does):
    if does.refuses:
        return web.json_response({"detail": does.refuses}, status=422)
    if does.fails:
        return web.json_response({"detail": "try again"}, status=500)
    for after, status, why in ((does.busy_for, 429, "busy"), (does.later, 202, "accepted")):
        if after:
            pause = {"Retry-After": str(int(after.total_seconds()))}
            return web.json_response({"detail": why}, status=status, headers=pause)
    return web.json_response({"reference": does.answer})


def _as_function(does):
    if does.refuses:
        raise NonRetryable(does.refuses)
    if does.fails:
        raise Retryable
    if does.busy_for:
        raise Retryable(does.busy_for, reason="busy")
    if does.later:
        raise DeferredResult(does.later)
    return Paid(reference=does.answer)


def served(agent):
    """The service of an agent whose operations are functions."""
    return CodeService(
        agent=agent.name,
        operations=agent.declaration().code,
        at_once=10,
        answer_within=ANSWER_WITHIN,
        longest_wait=LONGEST_WAIT,
    )


@pytest.fixture
def on_the_loop(does):
    bank = Bank("bank")

    @bank.activity(Bank.authorise)
    async def authorise(call: Call, ask: Sum) -> Paid:
        does.received.append((call.order_id, call.key, ask.amount))
        await asyncio.to_thread(does.may_answer.wait)
        return _as_function(does)

    return served(bank)


@pytest.fixture
def in_threads(does):
    bank = Bank("bank")

    @bank.activity(Bank.authorise)
    def authorise(call: Call, ask: Sum) -> Paid:
        does.received.append((call.order_id, call.key, ask.amount))
        does.may_answer.wait()
        return _as_function(does)

    return served(bank)


@pytest.fixture(params=["over_http", "on_the_loop", "in_threads"])
def service(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def request_():
    return Agency().request.model_copy(update={"content": {"amount": 7}})


@pytest.mark.proves("AGT-1", "AGT-3")
async def test_a_call_has_its_order_its_key_and_its_content_and_returns_the_answer(
    service, does, request_
):
    """The same key in every attempt."""
    for attempt in (1, 2):
        again = request_.model_copy(update={"attempt": attempt})
        assert await service.call(again, 5) == {"reference": "r-1"}
    assert does.received == 2 * [(request_.order_id, request_.idempotency_key, 7)]


@pytest.mark.proves("AGT-6")
async def test_a_refusal_is_final_and_says_why(service, does, request_):
    """In one line of at most 500 characters."""
    does.refuses = "card declined\n" + 1000 * "x"
    with pytest.raises(RejectedError, match=r"^card declined x+$") as raised:
        await service.call(request_, 5)
    assert len(str(raised.value)) == 500


@pytest.mark.proves("AGT-2")
async def test_a_failure_may_pass_and_is_the_services_own(service, does, request_):
    """No gateway's."""
    does.fails = True
    with pytest.raises(TransientError, match="try again") as raised:
        await service.call(request_, 5)
    assert not isinstance(raised.value, GatewayError)


@pytest.mark.proves("AGT-8")
@pytest.mark.parametrize(("pause", "wait"), [(60, 60), (601, 600)])
async def test_a_service_may_ask_to_be_left_alone_within_bounds(
    service, does, request_, pause, wait
):
    """The call was made, and may have had its effect."""
    does.busy_for = seconds(pause)
    with pytest.raises(ThrottledError, match="busy") as raised:
        await service.call(request_, 5)
    assert raised.value.retry_after == seconds(wait)


@pytest.mark.parametrize(("pause", "wait"), [(60, 60), (601, 120)])
async def test_a_service_may_accept_a_call_and_be_called_again(
    service, does, request_, pause, wait
):
    """Within the time that it is given."""
    does.later = seconds(pause)
    with pytest.raises(DeferredError, match="accepted") as raised:
        await service.call(request_, 5)
    assert raised.value.retry_after == seconds(wait)


async def test_no_service_is_called_again_later_than_a_reply_can_tell(service, does, request_):
    """However long it may take."""
    does.later = timedelta(days=3)
    with pytest.raises(DeferredError) as raised:
        await replace(service, answer_within=timedelta(days=30)).call(request_, 5)
    assert raised.value.retry_after == seconds(MAX_RETRY_AFTER_SECONDS)


async def test_who_is_given_no_time_cannot_answer_later(service, does, request_):
    """It is tried again like any other failure."""
    does.later = seconds(60)
    with pytest.raises(TransientError, match="accepted"):
        await replace(service, answer_within=None).call(request_, 5)


@pytest.mark.proves("AGT-2")
async def test_who_does_not_answer_in_time_is_not_waited_for(service, does, request_):
    """The call may have had its effect; that may pass, and is a time-out."""
    does.may_answer.clear()
    with pytest.raises(CallTimeoutError, match="no answer"):
        await service.call(request_, 0.05)
    does.may_answer.set()
    assert len(does.received) == 1


@pytest.mark.proves("AGT-6", "UND-2")
async def test_an_answer_that_no_reply_can_carry_is_a_failure_in_doubt(service, does, request_):
    """Asking again changes nothing."""
    does.answer = "x" * MAX_BYTES
    with pytest.raises(InvalidResultError, match=f"more than {MAX_BYTES} bytes"):
        await service.call(request_, 5)
