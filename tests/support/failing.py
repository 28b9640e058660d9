"""Orders on the order workflow of which a step fails, and what stands of them at the remote services."""

from functions_alone.tests.support.waiting import eventually
from tests.support.client import events
from tests.support.submitting import new_order_id, submit

OPERATIONS = {
    "stock": ("inventory", "reserve", "release"),
    "payment": ("payment", "authorise", "void"),
    "shipment": ("shipping", "ship", "cancel"),
    "capture": ("payment", "capture", "refund"),
}

UNDOES = {undo: do for _, do, undo in OPERATIONS.values()}


def standing(actions: list[str]) -> set[str]:
    """What was done and not taken back."""
    return {do for _, do, undo in OPERATIONS.values() if do in actions and undo not in actions}


async def place(stack, workflow, **more):
    order_id = new_order_id()
    await submit(stack, order_id, workflow=workflow, **more)
    return order_id


async def fault(client, step, mode, order_id, **more):
    """Let one operation of one order fail; the others of its service go on."""
    service, do, _ = OPERATIONS[step]
    body = {"mode": mode, "match": {"orderId": order_id, "action": more.pop("action", do)}} | more
    status, answer = await client.request("PUT", f"/simulator/{service}/faults", json=body)
    assert status == 200, answer


async def ended(client, order_id):
    """Wait until an order is processed or in error."""

    async def has_ended():
        order = await client.order(order_id)
        assert order, f"{order_id} is not there"
        assert order["processState"] in ("Processed", "Error"), (order_id, events(order))
        return order

    return await eventually(has_ended)


def steps_of(order):
    return {step["name"]: step["state"] for step in order["steps"]}
