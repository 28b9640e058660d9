"""Accepts orders and submits them over the queue. Shows and cancels orders."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import BaseModel

from engine.decisions.actions.cancel import CUSTOMER
from engine.declarations.business import EndpointDefinition, Payload
from engine.domain.causes import Cause, Code
from engine.domain.errors import RefusedError, UnknownOrderError, UnreadableRowError
from engine.domain.keys import is_checked
from engine.domain.messages import Submission
from engine.domain.orders import OrderAggregate
from engine.http.public_api import rules
from engine.http.public_api.rules import (
    Beginning,
    Cancelled,
    FollowedOrder,
    IdempotencyKey,
    NewOrder,
    Offer,
    Placed,
)
from engine.ports import Clock, TextQueue
from engine.storage.submission_keys import Binding, SubmissionKeys
from engine.storage.unit_of_work import UnitOfWork

log = logging.getLogger(__name__)

AT_ONCE = Beginning()


@dataclass(frozen=True, kw_only=True)
class CustomerService:
    """Submits orders to the queue `order-submissions`, and shows their progress."""

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
        """Place an order of the endpoint's workflow. `address` is the address of its orders.

        Raises `InvalidError` with all faults, and `RefusedError` as `submit` does.
        """
        payload = rules.payload_of(content)

        def message(_: Offer, order_id: str, placed_at: datetime) -> Submission:
            return rules.submission(endpoint, payload, beginning, order_id, placed_at)

        kind = rules.kind_of(beginning, endpoint.workflow)
        return await self.submit(
            NewOrder(content=content, message=message, kind=kind), key, address
        )

    async def submit(self, order: NewOrder, key: IdempotencyKey, address: str) -> Placed:
        """Submit a new order.

        A key stands for the first message under it. This message is sent again, even if the offer
        has changed, or nothing if its order is recorded. Raises `RefusedError` if the key stands
        for another order. Raises `InvalidError` if the content cannot be ordered now. Then the key
        is not bound.
        """
        if key.value is None:
            binding = Binding(order_id=self.new_order_id(), offer=order.offer())
        else:
            fingerprint = rules.fingerprint(order.content, key.value, order.kind)
            found = await self.keys.find(key.value)
            binding = found or await self._bind(order, key.value, fingerprint)
            if binding.fingerprint != fingerprint:
                raise RefusedError(Cause(Code.IDEMPOTENCY_KEY_USED))
            if found and await self._is_recorded(found.order_id):
                return rules.placed(found.order_id, address)
        # For a bound key too: the former call may have ended before it sent the message.
        await self.submissions.put(self._text(order, binding))
        log.info("customers.order_placed", extra={"order_id": binding.order_id})
        return rules.placed(binding.order_id, address)

    async def _bind(self, order: NewOrder, key: str, fingerprint: str) -> Binding:
        """Bind the key to a message that can be sent. Return the binding of the key."""
        order_id, offer = self.new_order_id(), order.offer()
        binding = Binding(order_id=order_id, fingerprint=fingerprint, offer=offer)
        self._text(order, binding)
        return await self.keys.claim(key, binding)

    def _text(self, order: NewOrder, binding: Binding) -> str:
        """Return the message of an order. Raises `InvalidError` if submission would refuse it."""
        placed_at = self.placed_at(binding.order_id)
        message = order.message(binding.offer, binding.order_id, placed_at)
        self.payload.accept(message.payload)
        text = message.to_json()
        rules.check_length(text)
        return text

    async def _is_recorded(self, order_id: str) -> bool:
        try:
            return await self.unit_of_work.store.load(order_id) is not None
        except UnreadableRowError:
            return True

    async def find(self, order_id: str) -> OrderAggregate | datetime:
        """Return the order, or the time of its placement if it is accepted but not recorded yet.

        The id contains the time of the order and check characters. So a new order is recognised
        before it is recorded, unless another system made its id. Raises `UnknownOrderError`.
        """
        order = await self.unit_of_work.store.load(order_id)
        if order:
            return order
        if is_checked(order_id):
            placed_at = self.placed_at(order_id)
            if await self._may_be_queued(placed_at):
                return placed_at
        raise UnknownOrderError

    async def _may_be_queued(self, placed_at: datetime) -> bool:
        """Whether an order may still be recorded. Submission may be stopped for hours."""
        age = self.clock() - placed_at
        if abs(age) <= rules.RECORDED_WITHIN:
            return True
        head = await self.submissions.oldest() if age > timedelta() else None
        return head is not None and head <= placed_at + rules.RECORDED_WITHIN

    async def follow(self, endpoint: EndpointDefinition, order_id: str) -> FollowedOrder:
        """Return the progress of an order.

        Raises `UnknownOrderError`, also for an order of another workflow.
        """
        found = await self.find(order_id)
        if isinstance(found, datetime):
            return rules.accepted(order_id, found)
        if not rules.is_of(found, endpoint):
            raise UnknownOrderError
        return rules.followed(found, endpoint)

    async def cancel(self, endpoint: EndpointDefinition, order_id: str) -> Cancelled:
        """Cancel an order for its customer. A repeat changes nothing.

        Raises `UnknownOrderError`, or `RefusedError` if it is too late or too early.
        """
        if isinstance(await self.find(order_id), datetime):
            raise RefusedError(Cause(Code.NOT_RECORDED_YET))
        try:
            await self.unit_of_work.run(
                order_id, lambda order, now: rules.cancelled(order, endpoint, now)
            )
            log.info("customers.order_cancelled", extra={"order_id": order_id})
        except RefusedError as refused:
            if not await self._was_repeated(order_id, refused.cause):
                raise
        return Cancelled(order_id=order_id)

    async def _was_repeated(self, order_id: str, why_not: Cause) -> bool:
        """Whether the customer has already cancelled the order.

        The first answer may have been lost.
        """
        if why_not.code is not Code.TAKEN_BACK_ALREADY:
            return False
        history = await self.unit_of_work.store.history(order_id)
        return any(entry.actor == CUSTOMER for entry in history)
