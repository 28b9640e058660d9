"""Accepts purchases at the shop's prices, and shows the status of their orders."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial

from engine.http.public_api.rules import Beginning, IdempotencyKey, NewOrder, Placed, kind_of
from engine.http.public_api.service import AT_ONCE, CustomerService
from shop import rules
from shop.catalogue import PRODUCTS
from shop.rules import OperatorPurchase, ProductList, Purchase, Status

ORDERS = "/api/orders"


@dataclass(frozen=True, kw_only=True)
class ShopService:
    """Accepts purchases through `CustomerService`, and shows their orders."""

    customers: CustomerService

    async def products(self) -> ProductList:
        """List what the shop sells."""
        return ProductList(products=PRODUCTS)

    async def place(
        self, purchase: Purchase, key: IdempotencyKey, beginning: Beginning = AT_ONCE
    ) -> Placed:
        """Place an order.

        Raises `RefusedError` if the key stands for another order, and `InvalidError` if the shop
        cannot accept the purchase now.
        """
        order = NewOrder(
            content=purchase,
            message=partial(rules.submission, purchase, beginning),
            offer=partial(rules.prices, purchase),
            kind=kind_of(beginning),
        )
        return await self.customers.submit(order, key, ORDERS)

    async def place_for_customer(
        self, purchase: OperatorPurchase, key: IdempotencyKey, beginning: Beginning = AT_ONCE
    ) -> Placed:
        """Place an order for a customer, with a priority; raises as `place` does."""
        return await self.place(purchase, key, beginning)

    async def follow(self, order_id: str) -> Status:
        """Follow an order.

        The id contains the time of the order, so a new order is recognised before it is recorded.
        Raises `UnknownOrderError`.
        """
        found = await self.customers.find(order_id)
        if isinstance(found, datetime):
            return rules.accepted(order_id, found)
        return rules.status(found)
