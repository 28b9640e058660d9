"""The shop's calls. Anybody may order; only who has the operators' key may go before others (SCH-11)."""

from collections.abc import Sequence

from entrypoints.openapi import Route
from shop.service import ShopService


def routes(shop: ShopService) -> Sequence[Route]:
    """Return what may be asked of the shop."""
    return [
        Route("shop_products", "GET", "api/products", shop.products, open=True),
        Route("shop_place_order", "POST", "api/orders", shop.place, open=True),
        Route(
            "shop_place_order_for_customer", "POST", "api/operator/orders", shop.place_for_customer
        ),
        Route("shop_order", "GET", "api/orders/{orderId}", shop.follow, open=True),
    ]
