"""A deployment to look at, and everything that the running app can do, so that its calls can be seen."""

import asyncio
import json
import re
from typing import NamedTuple

import pytest

from development.business import DEPLOYED, TRIED, load_app, named
from development.settings import simulated
from engine.domain.messages import bus_queues
from engine.domain.submitted_order import OnFailure
from functions_alone.tests.support.waiting import eventually
from tests.support.client import events
from tests.support.giving_up import give_up
from tests.support.recording import Call
from tests.support.submitting import new_order_id, submit

BUSINESS = named(DEPLOYED)
"""The business that is deployed."""
AGENTS = BUSINESS.agents
ADDRESSES = {agent.address: agent for agent in AGENTS if agent.address}
"""The agents, by the setting with the address of their service."""
SETTINGS = {setting.name: setting for agent in AGENTS for setting in agent.settings}
"""The settings that the agents read, by name: addresses, and whatever their services are shown."""
REQUIRED = {setting.name for agent in AGENTS for setting in agent.settings if setting.required}
"""Those without which the app does not start, unless the services are simulated."""
VARIANTS = ("default", "isolated", "demonstration")
"""The sets of `tools/development/snapshots.py` in which the app works as it comes; it has no rights but those of its calls."""
RESPONSES = "status-example"
"""A private response queue, to which the app only sends."""
GRACE = {"operator": "grace", "note": "the cause is mended"}


def everything(ports, agents=AGENTS):
    """The settings that switch on what is optional."""
    return simulated(agents, f"http://127.0.0.1:{ports.http_port}", with_optional=True)


def functions_with(settings, business=DEPLOYED):
    """The functions that the app of a business has with these settings."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in settings.items():
            environment.setenv(name, value)
        return load_app(business).get_functions()


def index(settings, business=DEPLOYED):
    """The trigger of each function that the app has with these settings, as the host sees it."""
    bindings = {
        function.get_function_name(): function.get_bindings_dict()["bindings"]
        for function in functions_with(settings, business)
    }
    found = json.loads(json.dumps(bindings, default=str))
    return {
        name: next(binding for binding in some if binding["type"].endswith("Trigger"))
        for name, some in found.items()
    }


def in_time(functions):
    """Those that a test can wait for: all but timers whose schedule is no setting."""
    return {
        name
        for name, function in functions.items()
        if function["type"] != "timerTrigger" or "%" in function["schedule"]
    }


class AtWork(NamedTuple):
    """What an app did."""

    functions: set[str]
    """The names of those that have succeeded."""
    calls: set[Call]
    """What was called of Azure's services."""


async def do_everything(stack, client):
    """Go through all that the app can do: orders that end well, fail, time out, go on and are undone; poison."""
    for address, body in endpoints():
        order_id = await place_with_key(client, address, body)
        assert order_id == await place_with_key(client, address, body)
        await client.until(order_id, "Processed")
    await submit(stack, followed := new_order_id(), payload=sample(), replyTo=RESPONSES)
    await client.until(followed, "Processed")
    refused, slow_one = steps_that_fail()
    await fault(client, refused, "reject")
    failed = await place_sample(client)
    actions = (await client.until(failed, "Error"))["actions"]
    await eventually(lambda: client.alerts(failed))
    await fault(client, refused, "none")
    await fault(client, slow_one, "hang")
    if "resubmit" in actions:
        status, answer = await client.resubmit(failed)
        assert status == 202, answer
    slow = await place_sample(client)
    await eventually(lambda: recovered(client, slow))
    await fault(client, slow_one, "none")
    await client.until(slow, "Processed")
    await poison_every_queue(stack, client)
    _, listed = await client.request("GET", "/api/operator/alerts")
    for path, more in {
        f"orders/{followed}/erase": {},
        "customers/find": {"email": "ada@example.com"},
        "alerts/acknowledge": {"alerts": [listed["alerts"][0]["key"]]},
    }.items():
        status, answer = await client.request("POST", f"/api/operator/{path}", json=GRACE | more)
        assert status in (200, 202), answer


async def call_every_route(client, functions):
    """Call each HTTP function once, with next to nothing."""
    for name, trigger in functions.items():
        if trigger["type"] == "httpTrigger":
            path = "/" + re.sub(r"\{\*?\w+\}", "none", trigger["route"])
            path = re.sub(r"\{\w+:[^}]*\?\}", "", path)
            status, _ = await client.request(
                (trigger.get("methods") or ["GET"])[0], path, data=b"{}"
            )
            assert status < 500, name


async def recovered(client, order_id):
    """Whether the supervisor has asked for another try."""
    order = await client.order(order_id)
    return order and "recovered" in events(order)


def sample():
    """The payload of an order that people try the app with."""
    return BUSINESS.sample.payload


def steps_that_fail():
    """A step whose refusal is left to an operator, if there is one; and one whose time-outs are tried again."""
    steps = BUSINESS.workflows.latest(BUSINESS.sample.workflow or BUSINESS.default_workflow).steps
    left = [step for step in steps if step.on_failure is not OnFailure.UNDO]
    patient = [step for step in steps if step.threshold is None]
    return (left or steps)[0], (patient or steps)[0]


async def fault(client, step, mode):
    """Let every service that a step may be done by have a fault, or none."""
    for agent in AGENTS:
        if agent.offers == step.capability:
            await client.fault(mode, service=agent.name)


async def place_sample(client):
    """Place the sample order of the business, as the console does."""
    status, answer = await client.request("POST", "/simulator/sample", json={})
    assert status == 202, answer
    return answer["orderId"]


PURCHASE = {
    "customer": {"name": "Ada", "email": "ada@example.com"},
    "items": [{"sku": "TEA-SENCHA", "quantity": 2}],
}


def endpoints():
    """The addresses at which orders are placed over HTTP, and what is sent there; the shop has one of its own."""
    if DEPLOYED == TRIED:
        return [("/api/orders", PURCHASE)]
    return [
        (
            f"/api/{'' if endpoint.open else 'operator/'}workflows/{endpoint.workflow}/orders",
            sample(),
        )
        for endpoint in BUSINESS.endpoints
    ]


async def place_with_key(client, address, body):
    """Place an order under a key of the customer's; the second time it is the same order."""
    headers = {"Idempotency-Key": f"one-key-for-one-order-at-{address}"}
    status, answer = await client.request("POST", address, json=body, headers=headers)
    assert status == 202, answer
    return answer["orderId"]


async def poison_every_queue(stack, client):
    """Have the platform give up a message of every queue; put all that is kept back, and drop what comes again."""
    bus = bus_queues([agent.name for agent in AGENTS])
    sources = ["order-submissions", "operator-alerts", *bus]
    await asyncio.gather(*(give_up(stack, source, "unreadable") for source in sources))
    for action in ("redrive", "drop"):
        for message in await eventually(lambda: kept(client, sources)):
            path = f"/api/operator/poison/{message['queue']}/{message['id']}/{action}"
            status, answer = await client.request("POST", path, json=GRACE)
            assert status == 202, answer


async def kept(client, sources):
    """The poison messages, once there is one of every queue."""
    _, answer = await client.request("GET", "/api/operator/poison")
    return (
        answer["messages"]
        if {message["queue"] for message in answer["messages"]} == set(sources)
        else None
    )
