"""The operators' API as it describes itself: what it answers is what it says, and nothing works without the key."""

import json
import re

import pytest
import schemathesis
from client import eventually
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from submitting import new_order_id

from operators.openapi import OPERATIONS, description

GRACE = {"operator": "grace", "note": "mended"}
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
)
HOSTILE = "<script>alert(1)</script>'; DROP TABLE orders; -- \u202e %s {{x}} \U0001f9a0"


@pytest.fixture(scope="module")
async def orders(client):
    """Orders in different states: whatever the API has to show."""
    await client.fault("reject", "POT-GLASS")
    failed = [await client.place("POT-GLASS") for _ in range(3)]
    done = await client.place("TEA-SENCHA")
    for order_id in failed:
        await client.until(order_id, "Error")
        await eventually(lambda order_id=order_id: client.alerts(order_id))
    await client.until(done, "Processed")
    return [*failed, done, new_order_id()]


async def described(client):
    async with client.http.get(f"{client.url}/api/openapi.json") as response:
        assert response.status == 200
        return await response.json()


async def test_the_description_is_served_and_is_valid(client):
    """To anybody: it says nothing of what is in the system."""
    served = await described(client)
    assert served == json.loads(json.dumps(description()))
    schemathesis.openapi.from_dict(served).validate()


async def test_the_description_names_every_route_of_the_operators(client, stack):
    """And no other: the routes are those that the host serves."""
    served = await described(client)
    known = {(path, method) for path, methods in served["paths"].items() for method in methods}
    assert known == {(path, method.lower()) for path, method in routes_of_the_app()}


def routes_of_the_app():
    """Every operators' route, as the triggers declare it."""
    source = (ROOT / "operators" / "triggers.py").read_text()
    found = re.findall(r'route\(\s*"(api/operator[^"]*)", methods=\["(\w+)"\], auth_level=(\S+?)[,)\s]', source)
    assert {level for _, _, level in found} == {"func.AuthLevel.FUNCTION"}
    return [(f"/{path}", method) for path, method, _ in found]
