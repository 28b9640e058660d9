"""Takes orders and hands them to submission over the queue; follows and cancels them."""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from pydantic import BaseModel

from engine.declarations.business import EndpointDefinition, Payload
from engine.domain.causes import Cause, Code
from engine.domain.errors import RefusedError, UnknownOrderError
from engine.domain.messages import Submission
from engine.domain.orders import OrderAggregate
from engine.http.public_api import rules
from engine.http.public_api.rules import Beginning, Cancelled, FollowedOrder, IdempotencyKey, Placed
from engine.ports import Clock, TextQueue
from engine.storage.submission_keys import SubmissionKeys
from engine.storage.unit_of_work import UnitOfWork

log = logging.getLogger(__name__)

AT_ONCE = Beginning()
MakeMessage = Callable[[str, datetime], Submission]
"""Makes the message that submits the order of this id, placed at this time."""


@dataclass(frozen=True, kw_only=True)
class CustomerService:
    """Submits orders to the queue `order-submissions`, and shows how far they are."""

    unit_of_work: UnitOfWork
    submissions: TextQueue
    keys: SubmissionKeys
    payload: Payload
    clock: Clock
    new_order_id: Callable[[], str]
    placed_at: Callable[[str], datetime]
    """Reads the time from an order id, so that a repeated order becomes the same message."""

    async def place(
        self,
        endpoint: EndpointDefinition,
        content: BaseModel,
        key: IdempotencyKey,
        address: str,
        beginning: Beginning = AT_ONCE,
    ) -> Placed:
        """Place an order of the endpoint's workflow; `address` is that of its orders.

        Raises `InvalidError` with every fault, and `RefusedError` as `submit` does.
        """
        payload = rules.payload_of(content)
        self.payload.accept(payload)
        message = partial(rules.submission, endpoint, payload, beginning)
        kind = f"{endpoint.workflow}{beginning.not_before or ''}"
        return await self.submit(message, content, key, address, kind)

    async def submit(
        self,
        message: MakeMessage,
        content: BaseModel,
        key: IdempotencyKey,
        address: str,
        kind: str = "",
    ) -> Placed:
        """Submit what was ordered; the kind is all that distinguishes orders of equal content.

        Raises `RefusedError` if the key stands for another order, and `InvalidError` if no queue
        can hold the message.
        """
        order_id = self.new_order_id()
        if key.value is not None:
            fingerprint = rules.fingerprint(content, key.value, kind)
            order_id = await self._bind(key.value, order_id, fingerprint)
        # For a bound key too: the former call may have ended before it sent the message.
        text = message(order_id, self.placed_at(order_id)).to_json()
        rules.check_length(text)
        await self.submissions.put(text)
        log.info("customers.order_placed", extra={"order_id": order_id})
        url = f"{address}/{order_id}"
        return Placed(order_id=order_id, status_url=url, location=url)

    async def _bind(self, key: str, order_id: str, fingerprint: str) -> str:
        """Return the order id that is bound to the key: the given one, or that of a former call.

        Raises `RefusedError` if the former order had other content.
        """
        bound_id, bound_fingerprint = await self.keys.claim(key, order_id, fingerprint)
        if bound_fingerprint != fingerprint:
            raise RefusedError(Cause(Code.IDEMPOTENCY_KEY_USED))
        return bound_id

    async def find(self, order_id: str) -> OrderAggregate | datetime:
        """Return the order; or when it was placed, if it is accepted but not recorded yet.

        Raises `UnknownOrderError`. The id contains the time of the order, so a new order is known
        before it is recorded.
        """
        order = await self.unit_of_work.store.load(order_id)
        if order:
            return order
        with suppress(ValueError):  # a foreign id may hold a time beyond the calendar
            placed_at = self.placed_at(order_id)
            if await self._may_be_queued(placed_at):
                return placed_at
        raise UnknownOrderError

    async def _may_be_queued(self, placed_at: datetime) -> bool:
        """Whether an order may yet be recorded: submission may stand still for hours."""
        age = self.clock() - placed_at
        if abs(age) <= rules.RECORDED_WITHIN:
            return True
        head = await self.submissions.oldest() if age > timedelta() else None
        return head is not None and head <= placed_at + rules.RECORDED_WITHIN

    async def follow(self, endpoint: EndpointDefinition, order_id: str) -> FollowedOrder:
        """Return how far an order is; raises `UnknownOrderError`, also for other workflows'."""
        found = await self.find(order_id)
        if isinstance(found, datetime):
            return rules.accepted(order_id, found)
        if not rules.is_of(found, endpoint):
            raise UnknownOrderError
        return rules.followed(found, endpoint)

    async def cancel(self, endpoint: EndpointDefinition, order_id: str) -> Cancelled:
        """Take an order back at its customer's wish.

        Raises `UnknownOrderError`; and `RefusedError` if it is too late, or too early.
        """
        if isinstance(await self.find(order_id), datetime):
            raise RefusedError(Cause(Code.NOT_RECORDED_YET))
        await self.unit_of_work.run(
            order_id, lambda order, now: rules.cancelled(order, endpoint, now)
        )
        log.info("customers.order_cancelled", extra={"order_id": order_id})
        return Cancelled(order_id=order_id)
