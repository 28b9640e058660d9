"""The endpoint of every business, as it goes over HTTP: place, follow, cancel."""

import json
from dataclasses import replace
from datetime import date
from functools import partial

import azure.functions as func
import pytest
from pydantic import AwareDatetime

import engine.declarations.business
import engine.http.public_api.triggers
from engine.decisions.operator_actions import BY_NAME
from engine.declarations.faults import Fault, FaultCode
from engine.declarations.workflow import DeclarationError
from engine.domain.causes import Cause, Code
from engine.domain.errors import InvalidError
from engine.domain.statuses import Direction, Outcome
from engine.http.openapi import description
from engine.http.public_api.rules import (
    LARGEST_MESSAGE,
    Beginning,
    IdempotencyKey,
    check_length,
    payload_of,
    submission,
)
from engine.runtime.api import http_functions
from engine.words.catalogue import text
from engine.words.history import in_words
from engine.workflow import Agent, Model, Operation, OrderEndpoint, Personal, Workflow, application
from operations.api.requests import OperatorRequest
from samples.claims.business import CLAIMS
from shop.business import SHOP
from testkit.memory import in_memory
from tests.support.apps import bootstrap, functions, set_to
from tests.support.builders import NOW, ORDER_ID, orders, steps

KEY = "5f0c7d0e-3b1f-4c55-9d0a-0f7f9a7a1c11"
STORM = {
    "claimNumber": "C-2041",
    "policyHolder": {"name": "Ada", "email": "ada@example.com"},
    "amount": {"amount": "950.00", "currency": "EUR"},
    "description": "The storm took Ada's roof",
}


class Stay(Model):
    """A payload with what may be left out, and what may be null."""

    guest: Personal[str]
    nights: int = 1
    note: str | None
    arrival: AwareDatetime | None = None


class GrownStay(Stay):
    """The payload of a later version, with another field that may be left out."""

    pillow: str | None = None


class Hotel(Agent):
    """A service."""

    book = Operation(Stay)
    cancel = Operation(Stay)


hotel = Hotel("hotel")


def stays(name, endpoint=None, version=1, model=Stay):
    """Return a workflow of one step, `book`."""
    flow = Workflow(name, model, endpoint=endpoint, version=version)

    @flow.step(hotel.book, undo=hotel.cancel)
    def book(stay: model) -> Stay:
        """Book the room."""
        return stay

    return flow


LONGEST = {"nights": 9}


def not_for_long(stay):
    if stay.nights > LONGEST["nights"]:
        raise InvalidError(["nights: nine at most"])


HOTEL = application(
    stays("stay", OrderEndpoint(open=True)),
    stays("long-stay", OrderEndpoint(open=False, cancel_until="book")),
    stays("no-endpoint"),
    agents=[hotel],
    check=not_for_long,
)
GROWN = application(stays("stay", OrderEndpoint(open=True), model=GrownStay), agents=[hotel])
GUEST = {"guest": "Ada", "note": None}
ARRIVAL = {"arrival": "2026-06-01T16:00:00Z"}


class Caller:
    """Calls the functions of an app in memory as the host does."""

    def __init__(self, of, parts=None):
        addresses = {agent.name: f"http://{agent.name}" for agent in of.agents}
        self.app = bootstrap(set_to(addresses=addresses), of, parts or in_memory())
        self.bound = [
            function
            for function in functions(self.app).get_functions()
            if function.is_http_function()
        ]
        self.functions = {
            function.get_function_name(): function.get_user_function() for function in self.bound
        }
        self.queue = self.app.engine.submission.queue

    async def __call__(self, name, body=None, headers=None, params=None, **path):
        request = func.HttpRequest(
            method="GET",
            url="http://x/",
            body=b"" if body is None else json.dumps(body).encode(),
            headers=headers or {},
            params=params or {},
            route_params=path,
        )
        answer = await self.functions[name](request)
        return answer.status_code, json.loads(answer.get_body() or "{}"), answer.headers

    async def place(self, workflow="claim", body=STORM, key=KEY, **params):
        headers = {"idempotency-key": key} if key else {}
        return await self(f"customers_place_{workflow}", body, headers, params)

    async def recorded(self, workflow="claim", body=STORM):
        """Place an order and have it recorded; return its id."""
        _, placed, _ = await self.place(workflow, body, key=None)
        await self.app.engine.submission.record(self.queue.texts[-1].encode())
        return placed["orderId"]

    async def record_all(self):
        """Have all messages of the queue recorded; return the versions and poison that follow."""
        ids = set()
        while self.queue.texts:
            text = self.queue.texts.pop(0)
            await self.app.engine.submission.record(text.encode())
            ids.add(json.loads(text)["orderId"])
        poison = await self.app.engine.poison_store.page("order-submissions", 10)
        lines = [await self.app.engine.store.history(order_id) for order_id in ids]
        return [len(found) for found in lines], len(poison)

    async def set_to(self, order_id, moved):
        """Have the order as this function returns it."""
        store, load = self.app.engine.store, self.app.engine.store.load
        order = moved(await load(order_id))

        async def found(wanted):
            return order if wanted == order_id else await load(wanted)

        store.load = found


@pytest.fixture
def claims():
    return Caller(CLAIMS)


@pytest.fixture
def hotels():
    return Caller(HOTEL)


@pytest.mark.proves("SUB-9")
async def test_an_order_may_name_the_time_before_which_it_does_not_begin(claims):
    """In the address of the call, since the body is the business's; it is a part of what a key stands for."""
    tomorrow = "2026-02-01T08:00:00Z"
    status, placed, _ = await claims.place(notBefore=tomorrow)
    assert status == 202
    assert json.loads(claims.queue.texts[-1])["notBefore"] == tomorrow
    assert (await claims.place(notBefore=tomorrow))[1] == placed
    assert (await claims.place())[0] == 409
    status, problem, _ = await claims.place(notBefore="tomorrow")
    assert status == 400
    assert "notBefore" in problem["faults"][0]


def routes_of(caller):
    """The method and level of each route of an endpoint."""
    triggers = [function.get_trigger().get_dict_repr() for function in caller.bound]
    return {
        (trigger["methods"][0].value, trigger["route"]): trigger["authLevel"].value
        for trigger in triggers
        if "workflows/" in trigger["route"]
    }


@pytest.mark.proves("OPR-5")
def test_a_workflow_has_the_endpoint_that_it_declares_and_no_other(claims, hotels):
    """Open or for operators, and with a call to cancel only where customers may."""
    order = "api/workflows/claim/orders/{orderId}"
    assert routes_of(claims) == {
        ("POST", "api/workflows/claim/orders"): "anonymous",
        ("GET", order): "anonymous",
        ("POST", f"{order}/cancel"): "anonymous",
    }
    place = "api/operator/workflows/long-stay/orders"
    assert routes_of(hotels) == {
        ("POST", "api/workflows/stay/orders"): "anonymous",
        ("GET", "api/workflows/stay/orders/{orderId}"): "anonymous",
        ("POST", place): "function",
        ("GET", f"{place}/{{orderId}}"): "function",
        ("POST", f"{place}/{{orderId}}/cancel"): "function",
    }
    assert routes_of(Caller(SHOP)) == {}


def test_the_endpoint_of_a_workflow_is_that_of_its_latest_version():
    """One endpoint for all versions, so the older one's is gone."""
    newer, older = stays("stay", version=2), stays("stay", OrderEndpoint(open=True))
    assert application(older, newer, agents=[hotel]).endpoints == ()
    newer.endpoint = OrderEndpoint(cancel_until="book")
    (endpoint,) = application(newer, older, agents=[hotel]).endpoints
    assert (endpoint.workflow, endpoint.open, endpoint.cancel_until) == ("stay", False, "book")


def test_an_endpoint_that_names_no_step_of_its_workflow_is_a_fault_at_the_start():
    """Nobody could ever cancel."""
    with pytest.raises(DeclarationError) as raised:
        application(stays("stay", OrderEndpoint(cancel_until="pay")), agents=[hotel])
    assert raised.value.faults == [
        Fault(FaultCode.ENDPOINT_STEP_UNKNOWN, "stay version 1: endpoint", step="pay")
    ]


def test_an_endpoint_of_a_workflow_that_is_not_there_is_a_fault_at_the_start():
    """No order could come through it."""
    made = application(stays("stay", OrderEndpoint(open=True)), agents=[hotel])
    (endpoint,) = made.endpoints
    with pytest.raises(DeclarationError) as raised:
        replace(made, endpoints=(replace(endpoint, workflow="gone"),)).check(made.agents)
    assert raised.value.faults == [Fault(FaultCode.UNKNOWN_WORKFLOW, "endpoint", workflow="gone")]


@pytest.mark.proves("SUB-1", "SUB-8")
async def test_an_order_is_placed_followed_from_the_first_moment_and_recorded_as_it_was_sent(
    claims,
):
    """`Accepted` while only the queue holds it; then as it is, with the workflow of the endpoint."""
    status, placed, headers = await claims.place(key=None)
    order_id = placed["orderId"]
    url = f"/api/workflows/claim/orders/{order_id}"
    assert (status, placed) == (202, {"orderId": order_id, "statusUrl": url})
    assert (headers["Location"], headers["Retry-After"]) == (url, "1")
    status, accepted, headers = await claims("customers_follow_claim", orderId=order_id)
    assert (status, accepted["processState"], headers["Retry-After"]) == (200, "Accepted", "1")
    await claims.app.engine.submission.record(claims.queue.texts[-1].encode())
    order = await claims.app.engine.store.load(order_id)
    assert (order.workflow, order.submitted.payload) == ("claim", STORM)
    _, found, headers = await claims("customers_follow_claim", orderId=order_id)
    assert found == accepted | {
        "processState": "Pending",
        "updatedAt": order.updated_at.isoformat(),
        "canBeCancelled": True,
    }
    known = {"If-None-Match": headers["ETag"]}
    assert (await claims("customers_follow_claim", headers=known, orderId=order_id))[0] == 304


async def test_an_order_is_followed_by_operators_from_the_first_moment_too(hotels):
    """Their endpoint is another, and what it says is the same."""
    _, placed, _ = await hotels.place("long_stay", GUEST)
    assert placed["statusUrl"].startswith("/api/operator/workflows/long-stay/orders/")
    follow = partial(hotels, "customers_follow_long_stay", orderId=placed["orderId"])
    assert (await follow())[1]["processState"] == "Accepted"


@pytest.mark.proves("SUB-8")
async def test_who_follows_an_order_sees_nothing_of_what_is_in_it(claims):
    """No content, no person, no step, no reason: only how far it is."""
    order_id = await claims.recorded()
    await claims.set_to(order_id, partial(orders.in_error, reason="not covered"))
    _, found, headers = await claims("customers_follow_claim", orderId=order_id)
    assert found.keys() == {
        "orderId", "processState", "placedAt", "updatedAt", "outcome", "canBeCancelled",
    }  # fmt: skip
    assert (found["processState"], found["outcome"]) == ("Error", "failed")
    assert headers["Retry-After"] == "30"
    await claims.set_to(order_id, orders.processed)
    _, found, headers = await claims("customers_follow_claim", orderId=order_id)
    assert (found["canBeCancelled"], "Retry-After" in headers) == (False, False)


async def test_an_order_of_another_workflow_is_unknown_at_this_endpoint(hotels):
    """Its id is the right to see it at its own endpoint alone, which may be the operators'."""
    order_id = await hotels.recorded("long_stay", GUEST)
    assert (await hotels("customers_follow_long_stay", orderId=order_id))[0] == 200
    assert (await hotels("customers_follow_stay", orderId=order_id))[0] == 404
    stay = await hotels.recorded("stay", GUEST)
    assert (await hotels("customers_cancel_long_stay", orderId=stay))[0] == 404
    assert (await hotels.app.engine.store.load(stay)).version == 1
    assert (await hotels("customers_follow_stay", orderId="b00-" + "7" * 26))[0] == 404


async def test_every_fault_of_what_is_sent_is_named(claims, hotels):
    """By the model of the payload, then by the business and the engine; nothing is submitted."""
    wrong = STORM | {"claimNumber": "2041", "amount": 950, "orderId": "b00-1"}
    status, problem, _ = await claims.place(body=wrong)
    assert status == 400
    assert {fault.partition(":")[0] for fault in problem["faults"]} == {
        "claimNumber",
        "amount",
        "orderId",
    }
    long_name = {"guest": "x" * 33_000, "nights": 10, "note": None}
    _, problem, _ = await hotels.place("stay", long_name)
    assert [fault.partition(":")[0] for fault in problem["faults"]] == ["body", "nights"]
    assert (claims.queue.texts, hotels.queue.texts) == ([], [])


def test_a_message_that_no_queue_can_hold_is_the_callers_fault():
    """Each character of another script takes six bytes of it: tried again, it would never fit."""
    check_length("x" * LARGEST_MESSAGE)
    with pytest.raises(InvalidError, match="65537"):
        check_length("x" * (LARGEST_MESSAGE + 1))


@pytest.mark.parametrize("key", ["0123456789abcdefghij", "0" * 10 + "1" * 10, f"{7**240}"[:200]])
def test_the_shortest_and_the_longest_key_are_taken(key):
    """And one of just enough information."""
    assert IdempotencyKey.model_validate({"Idempotency-Key": key}).value == key


@pytest.mark.proves("SUB-1")
def test_a_payload_takes_the_place_of_no_field_of_the_message():
    """Whatever its own fields are called."""
    endpoint = engine.declarations.business.EndpointDefinition(
        workflow="stay", content=Stay, open=True
    )
    payload = {
        "order_id": "b00-other",
        "schema_version": 9,
        "placed_at": "then",
        "not_before": 1,
        "reply_to": "b",
    }
    sent = submission(endpoint, payload, Beginning(), ORDER_ID, NOW)
    assert (sent.order_id, sent.placed_at) == (ORDER_ID, NOW)
    assert (sent.not_before, sent.reply_to) == (None, None)
    assert sent.payload == payload


def test_a_payload_is_what_json_says_of_it():
    """As it is kept, and shown."""
    assert payload_of(Deadline(by=date(2026, 1, 31))) == {"by": "2026-01-31"}


class Deadline(Model):
    """A payload of what JSON has no form of its own for."""

    by: date


async def test_a_long_text_of_another_script_is_refused_and_not_tried_for_ever(hotels):
    status, problem, _ = await hotels.place("stay", {"guest": "茶" * 12_000, "note": None})
    assert (status, hotels.queue.texts) == (400, [])
    assert "65536" in problem["faults"][0]


async def test_what_is_null_or_left_out_is_recorded_so(hotels):
    """A default of the model is not sent, and what may be null has to be there."""
    order_id = await hotels.recorded("stay", GUEST)
    assert (await hotels.app.engine.store.load(order_id)).submitted.payload == GUEST


@pytest.mark.proves("SUB-8")
async def test_a_key_stands_for_one_order_of_one_workflow(hotels):
    """Sent again it is the same order; other content under it is refused, and so is another endpoint."""
    status, first, _ = await hotels.place("stay", GUEST)
    assert (status, (await hotels.place("stay", GUEST))[1]) == (202, first)
    assert hotels.queue.texts[0] == hotels.queue.texts[1]
    assert (await hotels.place("stay", GUEST | {"nights": 2}))[0] == 409
    assert (await hotels.place("long_stay", GUEST))[0] == 409
    assert (await hotels.place("stay", GUEST, key="short"))[0] == 400


REPEATS = {
    "as it was": {},
    "with a default": {"nights": 1},
    "a time in another zone": {"arrival": "2026-06-01T18:00:00+02:00"},
}


@pytest.mark.proves("SUB-3", "SUB-8")
@pytest.mark.parametrize("label", REPEATS)
async def test_an_order_that_is_sent_again_is_the_same_however_it_is_written(hotels, label):
    """Bugs 3: it makes no order, no poison and no line of the history; once recorded, nothing at all."""
    first = await hotels.place("stay", GUEST | ARRIVAL)
    again = partial(hotels.place, "stay", GUEST | ARRIVAL | REPEATS[label])
    assert (await again())[:2] == first[:2]
    assert await hotels.record_all() == ([1], 0)
    assert (await again())[:2] == first[:2]
    assert hotels.queue.texts == []
    other = GUEST | {"arrival": "2026-06-01T18:00:00Z"}
    assert (await hotels.place("stay", other))[0] == 409


async def test_the_same_moment_is_no_other_order(claims):
    """Bugs 3: it is compared as a time, and not as it was written."""
    status, placed, _ = await claims.place(notBefore="2026-12-01T07:00:00Z")
    assert status == 202
    assert (await claims.place(notBefore="2026-12-01T08:00:00+01:00"))[:2] == (202, placed)
    assert (await claims.place(notBefore="2026-12-01T08:00:00Z"))[0] == 409


async def test_a_model_that_grows_changes_no_order_that_is_sent_again():
    """Bugs 3: an optional field more in the next version of the app; the first answer was lost."""
    parts = in_memory()
    before, after = Caller(HOTEL, parts), Caller(GROWN, parts)
    status, placed, _ = await before.place("stay", GUEST)
    assert status == 202
    for sent in (GUEST, GUEST | {"pillow": None}):
        assert (await after.place("stay", sent))[:2] == (202, placed)
    assert (await after.place("stay", GUEST | {"pillow": "hard"}))[0] == 409


REFUSED = {
    "by the queue": {"note": "茶" * 12_000},
    "by the business": {"nights": 10},
}


@pytest.mark.parametrize("why", REFUSED)
async def test_an_order_that_is_refused_binds_no_key(hotels, why):
    """Engine 21: the same key takes the corrected order."""
    assert (await hotels.place("stay", GUEST | REFUSED[why]))[0] == 400
    assert (await hotels.place("stay", GUEST))[0] == 202


async def test_a_recorded_order_is_known_again_whatever_is_allowed_by_now(hotels, monkeypatch):
    """Bugs 3: the business takes no such order any more, but it has this one."""
    stay = GUEST | {"nights": 2}
    _, placed, _ = await hotels.place("stay", stay)
    await hotels.record_all()
    monkeypatch.setitem(LONGEST, "nights", 1)
    assert (await hotels.place("stay", stay))[:2] == (202, placed)
    assert (await hotels.place("stay", stay, key=None))[0] == 400


async def test_a_parameter_that_a_call_would_ignore_is_refused(claims):
    """An order that should begin later would begin at once; the key of the host is known."""
    status, problem, _ = await claims.place(notbefore="2026-12-01T07:00:00Z", code="key")
    assert (status, claims.queue.texts) == (400, [])
    assert [fault.partition(":")[0] for fault in problem["faults"]] == ["notbefore"]
    assert (await claims.place(code="key"))[0] == 202


@pytest.mark.proves("SUB-8")
async def test_a_cancel_that_is_sent_again_gets_the_same_answer(claims):
    """Bugs 15: the first answer may be lost; also once everything is taken back."""
    order_id = await claims.recorded()
    cancel = partial(claims, "customers_cancel_claim", orderId=order_id)
    first = await cancel()
    assert first[0] == 202
    assert (await cancel())[:2] == first[:2]
    assert (await claims.app.engine.store.load(order_id)).version == 2
    await claims.set_to(order_id, partial(orders.in_error, outcome=Outcome.UNDONE))
    assert (await cancel())[:2] == first[:2]


@pytest.mark.proves("SUB-8")
async def test_a_customer_cancels_until_the_named_step_has_begun(claims):
    """It is the operators' cancel, and the history says who asked."""
    order_id = await claims.recorded()
    status, answer, _ = await claims("customers_cancel_claim", orderId=order_id)
    assert (status, answer) == (202, {"orderId": order_id, "status": "cancelled"})
    order = await claims.app.engine.store.load(order_id)
    assert order.direction is Direction.UNDO
    assert order.cause == Cause(Code.CANCELLED, {"by": "customer"})
    entry = (await claims.app.engine.store.history(order_id))[-1]
    assert (entry.actor, entry.event, in_words(entry.events)) == (
        "customer",
        "cancelled",
        "the customer asked for it",
    )
    other = await claims.recorded()
    await claims.app.operations.orders.act(
        BY_NAME["cancel"], other, OperatorRequest(operator="grace", note="by phone")
    )
    by_operator = await claims.app.engine.store.load(other)
    assert order.steps == by_operator.steps
    theirs = by_operator.derived
    derived = replace(order.derived, ready_since=theirs.ready_since, work_items=theirs.work_items)
    own = {name: getattr(by_operator, name) for name in ("submitted", "cause", "updated_at")}
    assert replace(order, derived=derived, **own) == by_operator
    assert len(order.derived.work_items) == len(theirs.work_items)


def with_step(name, state):
    """A function that moves this step of an order to a state."""
    return lambda order: orders.with_steps(order, state(order.step(name)))


def all_before_payment_done(order):
    before = ("assess", "fraud", "approve")
    return orders.with_steps(order, *(steps.completed(order.step(name)) for name in before))


TOO_LATE = text("cause.too-late-to-cancel")
LATE = {
    "the step has begun": (
        with_step("pay", lambda step: steps.with_counts(step, attempts=1)),
        TOO_LATE,
    ),
    "it is done": (orders.processed, TOO_LATE),
    "it was skipped": (with_step("pay", steps.skipped_by_operator), TOO_LATE),
    "it is taken back": (
        orders.undoing,
        text("cause.taken-back-already"),
    ),
}


@pytest.mark.proves("SUB-8")
@pytest.mark.parametrize("why", LATE)
async def test_a_customer_who_is_too_late_gets_the_reason_and_changes_nothing(claims, why):
    """Without the name of a step, which is none of theirs."""
    moved, reason = LATE[why]
    order_id = await claims.recorded()
    load = claims.app.engine.store.load
    await claims.set_to(order_id, moved)
    _, found, _ = await claims("customers_follow_claim", orderId=order_id)
    status, problem, _ = await claims("customers_cancel_claim", orderId=order_id)
    assert (status, problem["detail"], found["canBeCancelled"]) == (409, reason, False)
    assert (await load(order_id)).version == 1


async def test_a_step_before_the_named_one_may_have_begun(claims):
    """What it did is taken back."""
    order_id = await claims.recorded()
    await claims.set_to(order_id, all_before_payment_done)
    assert (await claims("customers_cancel_claim", orderId=order_id))[0] == 202


async def test_an_order_that_is_not_recorded_yet_is_cancelled_later(claims):
    """It is known, so the answer is not that there is none."""
    _, placed, _ = await claims.place()
    status, problem, _ = await claims("customers_cancel_claim", orderId=placed["orderId"])
    assert (status, "not recorded yet" in problem["detail"]) == (409, True)


def test_the_description_of_an_endpoint_has_the_model_of_the_payload(claims):
    """With what each field may be, and the statuses that can come."""
    routes = engine.http.public_api.triggers.endpoint_routes(
        claims.app.engine.customers, CLAIMS.endpoints
    )
    described = description(routes)
    post = described["paths"]["/api/workflows/claim/orders"]["post"]
    assert post["requestBody"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/Claim"
    }
    number = described["components"]["schemas"]["Claim"]["properties"]["claimNumber"]
    assert number["pattern"] == r"^C-[0-9]{4,10}$"
    assert set(post["responses"]) == {"202", "400", "409", "411", "429", "503"}
    cancel = described["paths"]["/api/workflows/claim/orders/{orderId}/cancel"]["post"]
    assert set(cancel["responses"]) == {"202", "404", "409", "429", "503"}
    http_functions(routes)
