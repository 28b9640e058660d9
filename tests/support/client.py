"""What tests from outside need: shop, operator, simulated services and tables, each by its public interface."""

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import aiohttp
import pytest
from azure.data.tables.aio import TableServiceClient

from development.stack import AppStack
from functions_alone.tests.support.waiting import eventually

QUICK = {
    "STEP_TIMEOUT_SECONDS": "3",
    "CLOCK_TOLERANCE_SECONDS": "0.5",
    "REPLY_MARGIN_SECONDS": "0.3",
    "REMOTE_CALL_TIMEOUT_SECONDS": "1.2",
    "SUPERVISOR_SCHEDULE": "* * * * * *",
    "SCHEDULER_POLL_SCHEDULE": "* * * * * *",
    "CIRCUIT_ORDERS": "1000",
    "MAX_UNBEGUN_ATTEMPTS": "1000",
    "BUCKETS": "2",
    "LOCAL_SHUTDOWN_SECONDS": "2",
    "LOCAL_QUEUE_LOCK_SECONDS": "2",
    "AzureFunctionsJobHost__extensions__queues__maxPollingInterval": "00:00:01",
}
"""Short times, so that a recovery takes seconds. Unless a test wants it, circuits stay closed, and no step is given up
because a slow machine begins its requests too late. Two buckets, and queues that are asked once a second: a stack on
which nothing happens leaves the cores to others."""

KILLED = {"LOCAL_TIMER_LOCK_SECONDS": "2"}
"""For stacks whose hosts are killed: with the times of host.json no timer of theirs runs for up to half a minute."""

PATIENT = QUICK | {
    "STEP_TIMEOUT_SECONDS": "10",
    "FAILURE_THRESHOLD": "20",
    "REMOTE_CALL_TIMEOUT_SECONDS": "4",
}
"""For tests that put much on a machine that many share: no order is given up because the machine is slow."""

SERVICES = ("payment", "inventory", "shipping")

DONE = ["authorise", "capture", "reserve", "ship"]
"""What happens at the remote services for an order that is processed: each of it once."""


class Client:
    """Speaks to a running stack."""

    def __init__(self, stack: AppStack) -> None:
        self.url = stack.http_url
        self.key = {"x-functions-key": stack.operator_key}
        self._storage = stack.storage_connection_string
        self.http = aiohttp.ClientSession()

    async def close(self) -> None:
        await self.http.close()

    async def request(
        self, method: str, path: str, key: bool = True, **options: Any
    ) -> tuple[int, Any]:
        headers = options.pop("headers", {}) | (self.key if key else {})
        async with self.http.request(
            method, self.url + path, headers=headers, **options
        ) as response:
            text = await response.text()
            return response.status, json.loads(text) if "json" in response.content_type else None

    async def place(self, sku: str = "TEA-SENCHA", **more: Any) -> str:
        body = {
            "customer": {"name": "Ada", "email": "ada@example.com"},
            "items": [{"sku": sku, "quantity": 2}],
        }
        status, answer = await self.request("POST", "/api/orders", key=False, json=body | more)
        assert status == 202, answer
        return answer["orderId"]

    async def order(self, order_id: str) -> dict[str, Any] | None:
        """Return the order as operators see it; None before it is recorded."""
        status, answer = await self.request("GET", f"/api/operator/orders/{order_id}")
        return answer if status == 200 and answer["processState"] != "Accepted" else None

    async def until(self, order_id: str, state: str, failures: int = 0) -> dict[str, Any]:
        """Wait until the order is in this state, and has failed at least so often; it may not end otherwise."""

        async def as_wanted() -> dict[str, Any]:
            order = await self.order(order_id)
            assert order, f"{order_id} is not there"
            if order["processState"] == "Error" and state == "Processed":
                pytest.fail(f"{order_id} is in Error, not Processed: {order['history']}")
            assert order["processState"] == state, (order_id, events(order))
            assert order["failureCount"] >= failures, (order_id, events(order))
            return order

        return await eventually(as_wanted)

    async def fault(
        self, mode: str, sku: str | None = None, service: str = "payment", **more: Any
    ) -> None:
        body = {"mode": mode} | ({"match": {"sku": sku}} if sku else {}) | more
        status, answer = await self.request("PUT", f"/simulator/{service}/faults", json=body)
        assert status == 200, answer

    async def ledger(self, order_id: str) -> dict[str, Any]:
        status, answer = await self.request("GET", f"/simulator/payment/ledger?orderId={order_id}")
        assert status == 200
        return answer

    async def actions(self, order_id: str, services: Iterable[str] = SERVICES) -> list[str]:
        """What really happened at the remote services for this order, each effect once."""
        found = []
        for service in services:
            status, answer = await self.request(
                "GET", f"/simulator/{service}/ledger?orderId={order_id}"
            )
            assert status == 200
            found += [effect["action"] for effect in answer["effects"]]
        return sorted(found)

    async def all_actions(self) -> dict[str, list[str]]:
        """What `actions` returns, for all orders at once: asked one by one, many orders take long."""
        found = defaultdict(list)
        for service in SERVICES:
            _, answer = await self.request("GET", f"/simulator/{service}/ledger")
            for effect in answer["effects"]:
                found[effect["idempotencyKey"].partition(":")[0]].append(effect["action"])
        return {order_id: sorted(actions) for order_id, actions in found.items()}

    async def alerts(self, order_id: str) -> list[dict[str, Any]]:
        _, answer = await self.request("GET", "/api/operator/alerts")
        return [alert for alert in answer["alerts"] if alert["subject"] == f"orders/{order_id}"]

    async def resubmit(self, order_id: str) -> tuple[int, Any]:
        body = {"operator": "grace", "note": "the provider is back"}
        return await self.request("POST", f"/api/operator/orders/{order_id}/resubmit", json=body)

    async def rows(self, start: str, end: str, bucket: str) -> dict[str, dict[str, Any]]:
        query = f"PartitionKey eq '{bucket}' and RowKey ge '{start}' and RowKey lt '{end}'"
        async with TableServiceClient.from_connection_string(self._storage) as service:
            found = service.get_table_client("orders").query_entities(query)
            return {row["RowKey"]: dict(row) async for row in found}

    async def rows_of(self, order_id: str) -> dict[str, dict[str, Any]]:
        return await self.rows(order_id, f"{order_id}~", order_id[:3])

    async def work_items_of(self, order_id: str) -> list[str]:
        rows = await self.rows("!", "!~", order_id[:3])
        return [key for key in rows if order_id in key]


def events(order: dict[str, Any]) -> list[str]:
    """What happened to an order, oldest first."""
    return [entry["event"] for entry in order["history"]]


def claims_and_recoveries_alternate(order: dict[str, Any]) -> bool:
    """Whether no scheduler claimed the order while another handled it, and nobody gave back what nobody had."""
    held = False
    for event in events(order):
        if (event == "claimed" and held) or (event in ("recovered", "requeued") and not held):
            return False
        if event in TAKES | GIVES:
            held = event in TAKES
    return True


TAKES = {"claimed"}
GIVES = {
    "recovered",
    "requeued",
    "undo-requested",
    "processed",
    "failed",
    "undone",
    "undo-incomplete",
}
