"""The form of a call as an agent declares it: what comes over real HTTP, and what is never sent."""

import asyncio
import json
from dataclasses import replace

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer

from engine.azure.remote import HttpRemoteService
from engine.declarations.business import AgentDefinition, Application
from engine.declarations.faults import Fault, FaultCode
from engine.declarations.service_forms import METHODS, Body, Form, OperationRoute
from engine.declarations.workflow import DeclarationError
from engine.domain.errors import GatewayError, InvalidRequestError, TransientError
from engine.workflow import CONTENT, Agent, Model, Nothing, Operation, Workflow, application
from shop.business import SHOP
from tests.support.agency import Agency
from tests.support.builders import NOW, seconds
from tests.support.faults import without_lines
from tests.support.foreign import ForeignService

CONTENT_OF_REQUEST = {"parcel": "P-1", "weight": 3, "result": {"label": "L 9", "void": True}}


@pytest.fixture
async def foreign():
    service = ForeignService()
    async with TestServer(service.app) as server, ClientSession() as session:
        service.at = lambda form: HttpRemoteService(
            base_url=str(server.make_url("/api/")),
            session=lambda: session,
            form=form,
            longest_wait=seconds(60),
            clock=lambda: NOW,
        )
        yield service


def request(**content):
    """A request for the operation `authorise`."""
    return Agency().request.model_copy(update={"content": CONTENT_OF_REQUEST | content})


def sent_to(path, **more):
    """The form of a service with one operation."""
    return Form(routes={"authorise": OperationRoute(path=path, **more)})


async def test_a_call_has_the_declared_form(foreign):
    """Method, path, headers, the name of the key's header, and the content as the whole body."""
    form = Form(
        headers={"Api-Version": "2026-01", "Content-Type": "application/vnd.api+json"},
        key_header="Request-Id",
        body=Body.CONTENT,
        routes={"authorise": OperationRoute(method="PUT", path="/v2/parcels/{parcel}?notify=0")},
    )
    sent = request()
    await foreign.at(form).call(sent, 5)
    (call,) = foreign.calls
    assert (call.method, call.target) == ("PUT", "/api/v2/parcels/P-1?notify=0")
    assert json.loads(call.body) == CONTENT_OF_REQUEST
    assert call.headers["Api-Version"] == "2026-01"
    assert call.headers["Content-Type"] == "application/vnd.api+json"
    assert call.headers["Request-Id"] == sent.idempotency_key
    assert "Idempotency-Key" not in call.headers


async def test_what_is_not_declared_has_the_usual_form(foreign):
    """Operations of one service are declared one by one."""
    form = Form(routes={"void": OperationRoute(method="DELETE", path="/v2/parcels/{parcel}")})
    sent = request()
    await foreign.at(form).call(sent, 5)
    (call,) = foreign.calls
    assert (call.method, call.target) == ("POST", "/api/authorise")
    assert json.loads(call.body) == {
        "orderId": sent.order_id,
        "step": sent.step,
        "order": CONTENT_OF_REQUEST,
    }
    assert call.headers["Idempotency-Key"] == sent.idempotency_key


async def test_an_address_is_encoded_too(foreign):
    """Whoever wrote the setting may have written it as people read it."""
    remote = foreign.at(sent_to("/p/{parcel}"))
    await replace(remote, base_url=remote.base_url + "caf\u00e9/").call(request(), 5)
    assert [call.target for call in foreign.calls] == ["/api/caf%C3%A9/p/P-1"]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_method_without_a_body_sends_none(foreign, method):
    """All that such a call says stands in its path; the key goes along."""
    await foreign.at(sent_to("/parcels/{parcel}", method=method)).call(request(), 5)
    (call,) = foreign.calls
    assert (call.method, call.body) == (method, "")
    assert "Content-Type" not in call.headers
    assert "Idempotency-Key" in call.headers


FILLED = {
    "of the order": ("/o/{orderId}/{step}/{key}", "/o/{orderId}/{step}/{orderId}%3A{step}", {}),
    "a number": ("/w/{weight}", "/w/3", {}),
    "of the result": ("/labels/{result.label}", "/labels/L%209", {}),
    "a slash": ("/p/{parcel}/x", "/p/INV%2F7/x", {"parcel": "INV/7"}),
    "a query": ("/p/{parcel}", "/p/a%3Fall%3D1%26x%23y", {"parcel": "a?all=1&x#y"}),
    "in a query": ("/p?name={parcel}&x=1", "/p?name=a%26b%3Dc..&x=1", {"parcel": "a&b=c.."}),
    "a sign of encoding": ("/p/{parcel}", "/p/100%25", {"parcel": "100%"}),
    "beyond ASCII": ("/p/{parcel}", "/p/%C3%A9%F0%9F%8D%B5", {"parcel": "é🍵"}),
    "dots": ("/p/{parcel}", "/p/v1..2", {"parcel": "v1..2"}),
    "several in one part": ("/p/{parcel}-{weight}.json", "/p/P-1-3.json", {}),
}  # fmt: skip


@pytest.mark.parametrize("label", FILLED)
async def test_the_fields_of_a_path_are_encoded(foreign, label):
    """Whatever stands in them, the call goes to the resource that the path names."""
    path, target, content = FILLED[label]
    sent = request(**content)
    await foreign.at(sent_to(path)).call(sent, 5)
    assert [call.target for call in foreign.calls] == [
        "/api" + target.format(orderId=sent.order_id, step=sent.step)
    ]


NEVER_SENT = {
    "up": ("/p/{parcel}/x", {"parcel": ".."}),
    "the same": ("/p/{parcel}/x", {"parcel": "."}),
    "nothing": ("/p/{parcel}", {"parcel": ""}),
    "up and down": ("/p/{parcel}", {"parcel": "../admin"}),
    "down and up": ("/p/{parcel}", {"parcel": "x/../../admin"}),
    "by backslashes": ("/p/{parcel}", {"parcel": "..\\admin"}),
    "encoded twice": ("/p/{parcel}", {"parcel": "%2e%2e"}),
    "from the root": ("/p/{parcel}", {"parcel": "/admin"}),
    "two halves": ("/p/{parcel}{half}/x", {"parcel": ".", "half": "."}),
    "half of it": ("/p/.{parcel}/x", {"parcel": "."}),
    "a line": ("/p/{parcel}", {"parcel": "a\r\nX-Admin: 1"}),
    "a zero": ("/p/{parcel}", {"parcel": "a\x00"}),
    "too much": ("/p/{parcel}", {"parcel": "x" * 501}),
    "missing": ("/p/{nothing}", {}),
    "missing below": ("/p/{result.nothing}", {}),
    "below a text": ("/p/{parcel.id}", {}),
    "null": ("/p/{parcel}", {"parcel": None}),
    "an object": ("/p/{result}", {}),
    "a boolean": ("/p/{result.void}", {}),
    "a fraction": ("/p/{weight}", {"weight": 1.5}),
}


@pytest.mark.proves("AGT-1", "AGT-6")
@pytest.mark.parametrize("label", NEVER_SENT)
async def test_a_path_that_cannot_be_made_costs_no_call_and_is_for_an_operator(foreign, label):
    """It would lead to another resource, or to none; the reason names the field and no value."""
    path, content = NEVER_SENT[label]
    with pytest.raises(InvalidRequestError, match="path of authorise") as raised:
        await foreign.at(sent_to(path)).call(request(**content), 5)
    assert foreign.calls == []
    assert "admin" not in str(raised.value).lower()


async def test_an_answer_that_is_no_http_is_reported_without_the_path_of_the_call():
    """What stands in the path may be personal."""

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n")
        writer.write(b"HTTP/1.1 what\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with ClientSession() as session:
            remote = HttpRemoteService(
                base_url=f"http://127.0.0.1:{port}",
                session=lambda: session,
                form=sent_to("/people/{parcel}"),
                longest_wait=seconds(60),
                clock=lambda: NOW,
            )
            with pytest.raises(TransientError, match=r"no answer: ClientResponseError$") as raised:
                await remote.call(request(parcel="ada"), 5)
    assert "ada" not in str(raised.value)


async def test_an_empty_answer_is_done_only_where_that_is_declared(foreign):
    """Of an operation with a route, of whose answer nothing is kept; else it may be a gateway's."""
    foreign.statuses = [204, 204]
    route = OperationRoute(method="DELETE", path="/p/{parcel}", answer_may_be_empty=True)
    assert await foreign.at(Form(routes={"authorise": route})).call(request(), 5) == {}
    with pytest.raises(TransientError) as raised:
        await foreign.at(sent_to("/p/{parcel}")).call(request(), 5)
    assert isinstance(raised.value, GatewayError)


PATHS = (
    "parcels",
    "/",
    "/a//b",
    "/a/../b",
    "/a/%2E./b",
    "/a b",
    "/a#b",
    "/{a",
    "/{a-b}",
    "//evil.example/x",
)
FAULTY = {
    **{
        f"method {method}": (
            Form(routes={"ship": OperationRoute(method=method)}),
            Fault(FaultCode.METHOD_UNKNOWN, "operation ship", method=method, methods=METHODS),
        )
        for method in ("FETCH", "post")
    },
    **{
        f"path {path}": (
            Form(routes={"ship": OperationRoute(path=path)}),
            Fault(FaultCode.PATH_INVALID, "operation ship", path=path),
        )
        for path in PATHS
    },
    "a secret": (
        Form(headers={"Authorization": "Bearer x"}),
        Fault(FaultCode.HEADER_NOT_ALLOWED, "headers", header="Authorization"),
    ),
    "a key": (
        Form(headers={"idempotency-key": "x"}),
        Fault(FaultCode.HEADER_NOT_ALLOWED, "headers", header="idempotency-key"),
    ),
    "a header with a space": (
        Form(headers={"A b": "x"}),
        Fault(FaultCode.HEADER_NOT_ALLOWED, "headers", header="A b"),
    ),
    "a header of two lines": (
        Form(headers={"A": "x\r\nB: y"}),
        Fault(FaultCode.NOT_PRINTABLE, "headers", field="A"),
    ),
    "a key in a header of HTTP": (
        Form(key_header="Host"),
        Fault(FaultCode.HEADER_NOT_ALLOWED, "key_header", header="Host"),
    ),
}


@pytest.mark.parametrize(
    ("template", "path", "leads"),
    [
        (None, "/send", True),
        (None, "/sent", False),
        ("/v1/parcels/{orderId}", "/v1/parcels/b00-1", True),
        ("/v1/parcels/{orderId}", "/v1/parcels/", False),
        ("/v1/parcels/{orderId}", "/v1/parcels/1/2", False),
        ("/v1/parcels/{orderId}", "/send", False),
        ("/v1/parcels/{orderId}/labels/{no}", "/v1/parcels/1/labels/2", True),
        ("/v1/parcels/{orderId}/labels/{no}", "/v1/parcels/1/marks/2", False),
        ("/v1/label.pdf", "/v1/labelXpdf", False),
        ("/v1/parcels?of={orderId}?", "/v1/parcels", True),
    ],
)
def test_an_encoded_path_is_known_by_its_template(template, path, leads):
    """A field is one part of it, whatever it says; a query is none."""
    assert OperationRoute(path=template).leads_to("send", path) is leads


@pytest.mark.parametrize("label", FAULTY)
def test_a_form_that_no_call_can_have_is_reported_at_the_start(label):
    """With the name of the agent, and before the first order."""
    form, fault = FAULTY[label]
    with pytest.raises(DeclarationError) as raised:
        Application(
            workflows=SHOP.workflows,
            default_workflow=SHOP.default_workflow,
            agents=[
                *SHOP.agents,
                AgentDefinition(name="post", offers="post", address="P", form=form),
            ],
            payload=SHOP.payload,
        ).check(SHOP.agents)
    assert raised.value.faults == [fault.within("agent post")]


class Parcel(Model):
    """What is to be sent."""

    parcel_id: str
    weight: int


class Label(Model):
    """The answer of the carrier."""

    label: str | None = None


class Carrier(Agent):
    """A carrier as it is."""

    ship = Operation(Parcel, Label, method="PUT", path="/v1/parcels/{parcelId}")
    cancel = Operation(Parcel, method="DELETE", path="/v1/labels/{result.label}")
    lose = Operation(Parcel, method="DELETE", path="/v1/{parcel_id}/{result.lost}/{orderId}")
    tell = Operation(Parcel)


class TwoWays(Agent):
    """A service that calls one operation in two ways."""

    send = Operation(Parcel, path="/send")
    send_again = Operation(Parcel, path="/resend", name="send")


carrier = Carrier("carrier", body=CONTENT, headers={"Accept-Language": "en"}, key_header="Key")


def parcels(undo):
    flow = Workflow("parcel", Parcel)

    @flow.step(carrier.ship, undo=undo)
    def send(parcel: Parcel) -> Parcel:
        """Send it."""
        return parcel

    return flow


def test_operations_and_agents_declare_the_form_of_their_calls():
    """What an operation does not declare is not in the form; nothing kept means it may be empty."""
    (declared,) = application(parcels(carrier.cancel), agents=[carrier]).agents
    assert declared.form == Form(
        headers={"Accept-Language": "en"},
        key_header="Key",
        body=Body.CONTENT,
        routes={
            "ship": OperationRoute(method="PUT", path="/v1/parcels/{parcelId}"),
            "cancel": OperationRoute(
                method="DELETE", path="/v1/labels/{result.label}", answer_may_be_empty=True
            ),
            "lose": OperationRoute(
                method="DELETE",
                path="/v1/{parcel_id}/{result.lost}/{orderId}",
                answer_may_be_empty=True,
            ),
        },
    )
    assert Carrier.tell.response is Nothing


def test_a_path_with_a_field_that_its_request_lacks_is_reported_at_the_start():
    """With the place of the step: in the names of messages, and the kept answer for an undo."""
    with pytest.raises(DeclarationError) as raised:
        application(parcels(carrier.lose), agents=[carrier])
    place = "test_service_forms.py:N: parcel version 1: step send: undo"
    assert without_lines(raised.value.faults) == [
        Fault(FaultCode.PATH_FIELD_UNKNOWN, place, operation="lose", field=field)
        for field in ("{parcel_id}", "{result.lost}")
    ]


def test_only_an_undo_has_a_kept_answer_in_its_path():
    """A step has none yet when it is asked for."""
    flow = parcels(carrier.cancel)

    @flow.step(carrier.cancel)
    def drop(parcel: Parcel) -> Parcel:
        """Throw it away."""
        return parcel

    with pytest.raises(DeclarationError) as raised:
        application(flow, agents=[carrier])
    place = "test_service_forms.py:N: parcel version 1: step drop"
    assert without_lines(raised.value.faults) == [
        Fault(FaultCode.PATH_FIELD_UNKNOWN, place, operation="cancel", field="{result.label}")
    ]


def test_an_operation_with_two_routes_is_reported_at_the_start():
    """No request says which of them is meant."""
    with pytest.raises(DeclarationError) as raised:
        application(parcels(carrier.cancel), agents=[carrier, TwoWays("two")])
    assert raised.value.faults == [Fault(FaultCode.TWO_ROUTES, "agent two", operation="send")]
