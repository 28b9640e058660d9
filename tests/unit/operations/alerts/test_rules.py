"""An alert that cannot be read off the queue has a fault with its place, code and facts."""

import base64
import json

import pytest

from engine.domain.errors import InvalidError
from operations.alerts.rules import read

EVENT = {
    "specversion": "1.0",
    "id": "e-1",
    "source": "/orders",
    "type": "OrderProcessing.OrderFailed",
    "subject": "orders/b00-1",
    "time": "2026-01-31T08:15:00Z",
}


def faults_of(body):
    with pytest.raises(InvalidError) as caught:
        read(body)
    (fault,) = caught.value.faults
    assert set(fault.facts) == {"error"}
    assert fault.facts["error"] not in ("", "None")
    return fault.place, fault.code


def test_data_that_are_no_json_are_a_fault():
    """NaN is none, though Python reads it."""
    text = json.dumps(EVENT | {"data": {"amount": float("nan")}})
    assert faults_of(base64.b64encode(text.encode())) == ("body", "no-json")


def test_an_alert_is_read():
    """The form in which Event Grid delivers it."""
    text = json.dumps(EVENT | {"data": {"amount": 1}})
    event = read(base64.b64encode(text.encode()))
    assert (event.event_id, event.subject, event.data) == ("e-1", "orders/b00-1", {"amount": 1})
