"""The shop's API: anonymous orders, and orders with a priority for operators (SCH-11)."""

from collections.abc import Sequence

from engine.http.openapi import Route
from shop.service import ShopService


def routes(shop: ShopService) -> Sequence[Route]:
    """Return the shop's routes."""
    return [
        Route("shop_products", "GET", "api/products", shop.products, open=True),
        Route("shop_place_order", "POST", "api/orders", shop.place, open=True),
        Route(
            "shop_place_order_for_customer", "POST", "api/operator/orders", shop.place_for_customer
        ),
        Route("shop_order", "GET", "api/orders/{orderId}", shop.follow, open=True),
    ]
