"""Grown claims on a running stack: submitted, answered, reminded of, and broken one by one."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient

from development.stack import AppStack
from engine.domain.messages import ANSWERS
from functions_alone.tests.support.waiting import eventually
from tests.support.client import Client
from tests.support.failing import ended
from tests.support.submitting import new_order_id, submit

ROOF = {
    "claimNumber": "C-2041",
    "policyHolder": {"name": "Ada", "email": "ada@example.com"},
    "amount": {"amount": "950.00", "currency": "EUR"},
    "description": "A storm took the roof",
}
COSTLY = ROOF | {"amount": {"amount": "95000.00", "currency": "EUR"}}
PICTURES = {"urls": ["https://pictures.example/roof.jpg"]}
AGENTS = ("assessor", "bank", "post")
GRACE = {"operator": "grace", "note": "as a test wants it"}


class GrownClaim:
    """One claim on a running stack."""

    def __init__(self, stack: AppStack, client: Client) -> None:
        self.stack, self.client, self.id = stack, client, new_order_id()

    async def submit(self, payload: Mapping[str, Any] = ROOF, **more: Any) -> "GrownClaim":
        await submit(self.stack, self.id, payload=payload, **more)
        return self

    async def fault(self, agent: str, mode: str, action: str, **more: Any) -> "GrownClaim":
        """Let one operation fail for this claim alone, or be well again."""
        body = {"mode": mode, "match": {"orderId": self.id, "action": action}} | more
        status, answer = await self.client.request("PUT", f"/simulator/{agent}/faults", json=body)
        assert status == 200, answer
        return self

    async def ask(self, method: str, path: str, **body: Any) -> tuple[int, Any]:
        """Call a route of this claim, as an operator."""
        path = f"/api/operator/orders/{self.id}/{path}"
        return await self.client.request(method, path, **({"json": body} if body else {}))

    async def look(self) -> dict[str, Any]:
        order = await self.client.order(self.id)
        assert order, f"{self.id} is not there"
        return order

    async def steps(self) -> dict[str, dict[str, Any]]:
        return {step["name"]: step for step in (await self.look())["steps"]}

    async def awaits(self, step: str, requests: int = 1) -> datetime:
        """Wait until an answer to the step is awaited that was asked for so often; return its deadline."""

        async def is_awaited() -> str | None:
            found = (await self.steps())[step]
            return found["completeBy"] if found["failureCount"] == requests - 1 else None

        return datetime.fromisoformat(await eventually(is_awaited))

    async def answer(self, step: str, **content: Any) -> None:
        """Answer for somebody; `answer` or `refusal`."""
        status, taken = await self.ask("POST", f"answers/{step}", operator="grace", **content)
        assert (status, taken.get("status")) == (200, "recorded"), taken

    async def answer_by_queue(self, step: str, **content: Any) -> None:
        """Put the answer on the queue `answers`."""
        body = json.dumps({"orderId": self.id, "step": step, **content})
        connection = self.stack.service_bus_connection_string
        async with (
            ServiceBusClient.from_connection_string(connection) as bus,
            bus.get_queue_sender(ANSWERS) as sender,
        ):
            await sender.send_messages(ServiceBusMessage(body))

    async def time_is_up(self, step: str, within: timedelta = timedelta(seconds=1)) -> None:
        """Let the time for the answer end, at once or soon."""

        async def is_extended() -> bool:
            soon = (datetime.now(UTC) + within).isoformat()
            status, taken = await self.ask("POST", f"answers/{step}/extend", until=soon, **GRACE)
            assert status == 202, taken  # or it is past already
            return True

        await eventually(is_extended)

    async def photographed(self) -> "GrownClaim":
        await self.awaits("photographs")
        await self.answer("photographs", answer=PICTURES)
        return self

    async def ends(self, *expected: str) -> dict[str, Any]:
        """Wait for its end: its state, outcome and reason, as many of them as are expected."""
        order = await ended(self.client, self.id)
        seen = (order["processState"], order["outcome"], order["reason"])
        assert seen[: len(expected)] == expected, (seen, order["history"])
        return order

    async def is_undone(self, reason: str | None = None) -> dict[str, Any]:
        """Wait until it is taken back; until then it may be in `Error` because its first step back is to come."""

        async def has_outcome() -> dict[str, Any] | None:
            order = await self.look()
            return order if order["outcome"] == "undone" else None

        order = await eventually(has_outcome)
        assert reason in (None, order["reason"])
        return order

    async def effects(self, *agents: str) -> list[str]:
        """What really happened at these services, each effect once."""
        return await self.client.actions(self.id, agents or AGENTS)

    async def owes_nothing(self) -> None:
        """Wait until no work item is left; notices go out within a second."""

        async def is_at_rest() -> bool:
            return await self.client.work_items_of(self.id) == []

        await eventually(is_at_rest)

    async def until(self, is_so: Callable[[dict[str, Any]], object], step: str) -> None:
        """Wait until this is so of a step."""

        async def is_seen() -> object:
            assert is_so(found := (await self.steps())[step]), found
            return True

        await eventually(is_seen)
