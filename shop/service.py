"""Takes purchases and hands them to submission over the queue."""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from core.errors import RefusedError, UnknownOrderError
from core.ports import Clock, TextQueue
from shop import rules
from shop.catalogue import PRODUCTS
from shop.rules import IdempotencyKey, OperatorPurchase, Placed, ProductList, Purchase, Status
from stores.orders import OrderStore
from stores.submission_keys import SubmissionKeys

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ShopService:
    """Takes purchases, submits them to the queue `order-submissions`, and shows their orders."""

    store: OrderStore
    submissions: TextQueue
    keys: SubmissionKeys
    clock: Clock
    new_order_id: Callable[[], str]
    placed_at: Callable[[str], datetime]
    """Reads the time from an order id, so that a repeated purchase becomes the same message."""

    async def products(self) -> ProductList:
        """List what the shop sells."""
        return ProductList(products=PRODUCTS)

    async def place(self, purchase: Purchase, key: IdempotencyKey) -> Placed:
        """Place an order; raises `RefusedError` if the key stands for another one."""
        order_id = self.new_order_id()
        if key.value is not None:
            order_id = await self._bind(key.value, order_id, rules.fingerprint(purchase, key.value))
        # For a bound key too: the former call may have ended before it sent the message.
        message = rules.submission(purchase, order_id, self.placed_at(order_id))
        await self.submissions.put(message.to_json())
        log.info("shop.order_placed", extra={"order_id": order_id})
        url = f"/api/orders/{order_id}"
        return Placed(order_id=order_id, status_url=url, location=url)

    async def place_for_customer(self, purchase: OperatorPurchase, key: IdempotencyKey) -> Placed:
        """Place an order for a customer, before others if need be; raises as `place` does."""
        return await self.place(purchase, key)

    async def _bind(self, key: str, order_id: str, fingerprint: str) -> str:
        """Return the order id that is bound to the key: the given one, or that of a former call.

        Raises `RefusedError` if the former purchase had other content.
        """
        bound_id, bound_fingerprint = await self.keys.claim(key, order_id, fingerprint)
        if bound_fingerprint != fingerprint:
            raise RefusedError("this Idempotency-Key was used for a purchase with other content")
        return bound_id

    async def follow(self, order_id: str) -> Status:
        """Follow an order; raises `UnknownOrderError`.

        The id contains the time of the order, so a new order is known before it is recorded.
        """
        order = await self.store.load(order_id)
        if order:
            return rules.status(order)
        with suppress(ValueError):  # a foreign id may hold a time beyond the calendar
            placed_at = self.placed_at(order_id)
            if abs(self.clock() - placed_at) <= rules.RECORDED_WITHIN:
                return rules.accepted(order_id, placed_at)
        raise UnknownOrderError
