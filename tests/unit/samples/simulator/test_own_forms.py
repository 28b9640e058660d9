"""Simulated services with methods, paths, bodies and statuses of their own, called over HTTP as agents call them."""

from contextlib import AsyncExitStack
from datetime import timedelta
from urllib.parse import quote

import aiohttp
import azure.functions as func
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from engine.azure.remote import HttpRemoteService
from engine.declarations.service_forms import OperationRoute
from engine.domain.errors import DeferredError, InvalidError, InvalidRequestError, RejectedError
from engine.domain.messages import AgentRequest
from functions_alone.host.routes import encoded_anew, percent_decoded
from samples.simulator.ledger import Ledger
from samples.simulator.rules import SimulatedCall, SimulatedFault, action_of, call_of, simulated
from samples.simulator.service import FAULT_CACHE_SECONDS, Simulator
from samples.simulator.triggers import simulator_functions
from testkit import WorkflowTestEnvironment
from testkit.memory import of_columns
from tests.support.builders import NOW, ORDER_ID
from tests.support.own_forms import PARCELS, Parcel

CHARGE = {"amount": 1200, "currency": "eur"}
SHIPMENT = {"address": "1 Main Street"}
SERVICES = simulated(PARCELS)


class Played:
    """Simulated services behind an HTTP server, and the agents' way to call them."""

    def __init__(self):
        self.now = NOW
        self.received = []
        self.simulator = Simulator(
            services=SERVICES,
            called=tuple(SERVICES),
            ledger=Ledger(of_columns()),
            clock=lambda: self.now,
            sleep=self.sleep,
            chance=lambda: 0.0,
        )
        app = func.FunctionApp()
        app.register_functions(simulator_functions(self.simulator, None))
        functions = {function.get_function_name(): function for function in app.get_functions()}
        self._function = functions["simulator_service_call"].get_user_function()

    async def sleep(self, seconds):
        self.now += timedelta(seconds=seconds)

    async def answer(self, request):
        """Hand a request to the function, as a host does."""
        self.received.append((request.method, request.raw_path, request.headers))
        service, _, path = request.path.removeprefix("/simulator/").partition("/")
        response = await self._function(
            func.HttpRequest(
                method=request.method,
                url=str(request.url),
                headers=dict(request.headers),
                route_params={"service": service, "path": path},
                body=await request.read(),
            )
        )
        return web.Response(
            status=response.status_code, body=response.get_body(), headers=response.headers
        )

    def remote(self, name, url, session):
        agent = next(candidate for candidate in PARCELS.agents if candidate.name == name)
        return HttpRemoteService(
            base_url=f"{url}/simulator/{name}",
            session=lambda: session,
            form=agent.form,
            refusals=agent.refusals,
            answer_within=agent.answer_within,
            longest_wait=timedelta(minutes=5),
            clock=lambda: self.now,
        )

    async def fault(self, service, mode, **more):
        await self.simulator.set_fault(
            service, SimulatedFault.model_validate({"mode": mode} | more)
        )
        self.now += timedelta(seconds=FAULT_CACHE_SECONDS)

    async def effects(self, service):
        """What has happened for the order."""
        report = await self.simulator.report(service, ORDER_ID)
        return [effect["action"] for effect in report["effects"]]


@pytest.fixture
async def played():
    """The services, and a function that calls one."""
    services = Played()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", services.answer)
    async with AsyncExitStack() as at_exit:
        server = await at_exit.enter_async_context(TestServer(app))
        session = await at_exit.enter_async_context(aiohttp.ClientSession())
        url = f"http://{server.host}:{server.port}"

        async def call(service, operation, content, key=f"{ORDER_ID}:step"):
            request = AgentRequest(
                order_id=ORDER_ID,
                step="step",
                attempt=1,
                action="do",
                operation=operation,
                idempotency_key=key,
                issued_at=services.now,
                complete_by=services.now + timedelta(minutes=1),
                content=content,
            )
            return await services.remote(service, url, session).call(request, 5.0)

        services.call = call
        yield services


async def test_a_stripe_like_service_charges_once_and_refunds(played):
    """At its own paths; the key says whose it is, since the body is the content alone."""
    charged = await played.call("stripe", "charge", CHARGE)
    assert charged == await played.call("stripe", "charge", CHARGE)
    assert charged["paid"] is True
    await played.call("stripe", "refund", CHARGE | {"result": {"id": charged["id"]}})
    assert await played.effects("stripe") == ["charge", "refund"]
    paths = [path for _, path, _ in played.received]
    refund = f"/simulator/stripe/v1/charges/{charged['id']}/refunds"
    assert paths == ["/simulator/stripe/v1/charges"] * 2 + [refund]
    with pytest.raises(RejectedError, match="undone"):
        await played.call("stripe", "charge", CHARGE)


async def test_a_stripe_like_service_declines_a_card_and_says_so_again(played):
    """With its own status, under that key, until another one comes; other content under a key is an error."""
    await played.fault("stripe", "reject")
    for mode in ("reject", "none"):
        await played.fault("stripe", mode)
        with pytest.raises(RejectedError, match="declined"):
            await played.call("stripe", "charge", CHARGE)
    await played.call("stripe", "charge", CHARGE, f"{ORDER_ID}:step:1")
    with pytest.raises(InvalidRequestError, match="different content"):
        await played.call("stripe", "charge", CHARGE | {"amount": 1}, f"{ORDER_ID}:step:1")
    assert await played.effects("stripe") == ["charge"]


async def test_a_carrier_like_service_accepts_first_and_takes_back(played):
    """By PUT and DELETE, with its own header for the key; there is nothing in the answer to a cancel."""
    await played.fault("carrier", "accept", latencyMs=30_000)
    with pytest.raises(DeferredError) as raised:
        await played.call("carrier", "ship", SHIPMENT)
    assert raised.value.retry_after == timedelta(seconds=30)
    played.now += timedelta(seconds=30)
    label = (await played.call("carrier", "ship", SHIPMENT))["label"]
    await played.fault("carrier", "none")
    assert await played.call("carrier", "cancel", SHIPMENT | {"result": {"label": label}}) == {}
    assert await played.effects("carrier") == ["ship", "cancel"]
    method, path, headers = played.received[-1]
    assert (method, path) == ("DELETE", f"/simulator/carrier/labels/{label}")
    assert headers["X-Request-Id"] == f"{ORDER_ID}:step"


def test_a_service_has_the_form_and_the_refusals_of_its_agent():
    """The first status that the agent declares, or 422."""
    services = simulated(PARCELS)
    assert {name: service.form for name, service in services.items()} == {
        agent.name: agent.form for agent in PARCELS.agents
    }
    statuses = {name: service.refuses_with for name, service in services.items()}
    assert statuses == {"stripe": 402, "carrier": 422}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/charge"),
        ("GET", "/v1/charges"),
        ("POST", "/v1/charges/"),
        ("POST", "/v1/charges/x/y/refunds"),
        ("POST", "/v1xcharges"),
        ("POST", ""),
    ],
)
def test_a_call_in_another_form_is_none_of_the_service(method, path):
    """Another method, another path, a part too many."""
    assert action_of(SERVICES["stripe"], "POST", "/v1/charges") == "charge"
    assert action_of(SERVICES["stripe"], method, path) is None


def test_a_path_is_the_operation_s_whatever_its_fields_are():
    """Encoded, they have no slash; a query is no part of it."""
    route = OperationRoute(method="PUT", path="/v1/{a}:{b}/x?strict={c}")
    assert route.leads_to("ship", "/v1/1%2F2:3/x")
    assert not route.leads_to("ship", "/v1/1/2:3/x")
    assert OperationRoute().leads_to("ship", "/ship")


@pytest.mark.parametrize(
    "label", ["L-1", "a/b", "a%2Fb", "a?b", "a#b", "100%", "%C3", "é b", "a;b=c"]
)
def test_a_call_is_known_by_the_address_that_azure_hands_over(label):
    """It is decoded and encoded anew on the way: `%252F` arrives as `%2F` (http.md 2)."""
    sent = f"/labels/{quote(label, safe='')}"
    seen = encoded_anew(percent_decoded(sent, but="/"))
    assert action_of(SERVICES["carrier"], "DELETE", seen) == "cancel"


def test_a_body_that_is_no_object_is_refused():
    """As every body is that the service cannot read."""
    with pytest.raises(InvalidError):
        call_of(SERVICES["stripe"], "charge", "o1:pay", b"[]")
    assert call_of(SERVICES["stripe"], "charge", "o1", b"{}") == SimulatedCall(order_id="o1")


def test_the_key_names_order_and_step_where_the_body_does_not():
    """A body that is the content alone says neither, and a call without a body has no content."""
    charged = call_of(SERVICES["stripe"], "charge", "o1:pay:2", b'{"amount": 5}')
    assert charged == SimulatedCall(order_id="o1", step="pay", order={"amount": 5})
    cancelled = call_of(SERVICES["carrier"], "cancel", "o1:send", b"")
    assert cancelled == SimulatedCall(order_id="o1", step="send")


@pytest.mark.soak
@pytest.mark.proves("AGT-3", "AGT-11", "AGT-12")
def test_no_fault_leads_to_a_second_effect_at_both_services():
    """Whatever goes wrong once, and an operator resubmits at any moment."""
    environment = WorkflowTestEnvironment(PARCELS)
    explored = environment.explore(faults=1, acts=("resubmit",), seconds=600)
    assert explored.whole
    assert {end for end in explored.ends if "not undone" in end} == set()


def test_orders_at_both_services_end_well_and_are_taken_back():
    """In a test environment: a declined card waits for an operator, a refused address takes the payment back."""
    environment = WorkflowTestEnvironment(PARCELS)
    environment.refuse("stripe", "charge")
    order = environment.submit(Parcel(amount=1200, address="1 Main Street"))
    assert order.reason == "Your card was declined."
    environment.heal()
    environment.act(order, "resubmit")
    assert order.state == "Processed"
    environment.refuse("carrier", "ship")
    other = environment.submit(Parcel(amount=1200, address="nowhere"))
    assert (other.outcome, environment.effects("stripe", other)) == ("undone", ["charge", "refund"])
