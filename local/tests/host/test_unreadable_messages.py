"""A message that the host's SDK cannot decode costs itself alone (real-behaviour.md P1)."""

from decimal import Decimal

import pytest
from azure.servicebus import ServiceBusMessage
from waiting import until


def is_empty(messages):
    return messages == 0


def unreadable():
    """The SDK sends a decimal number, and cannot read one."""
    return ServiceBusMessage("unreadable", application_properties={"price": Decimal("1.10")})


@pytest.mark.parametrize(("queue_name", "kind"), [("singles", "single"), ("batches", "batch")])
def test_a_message_that_cannot_be_decoded_is_given_up_alone(host, bus_queue, queue_name, kind):
    """Its queue dead-letters it after its deliveries; no function is called for it, and what ran beside it is settled."""
    queue = bus_queue(queue_name)
    queue.send("gate")
    host.wait_for(kind)
    queue.send_together([unreadable()])
    queue.send("n1", "n2")
    host.open_gate()
    until(queue.dead, lambda dead: dead == 1)
    until(queue.under_way, is_empty)
    seen = host.seen(kind)
    bodies = sorted(body for each in seen for body in each.get("bodies", [each.get("body")]))
    assert bodies == ["gate", "n1", "n2"]
    assert host.logged("is away") == 0
    assert host.logged("cannot be decoded") == 1  # however often it comes
