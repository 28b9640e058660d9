"""The shop's API: anonymous orders, and orders with a priority for operators (SCH-11)."""

from collections.abc import Mapping, Sequence

from engine.http.openapi import Route
from engine.http.public_api.service import CustomerService
from engine.pages.triggers import BusinessPage
from shop.business import PAGE
from shop.rules import notice
from shop.service import ShopService


def routes(customers: CustomerService) -> Sequence[Route]:
    shop = ShopService(customers=customers)
    return [
        Route("shop_products", "GET", "api/products", shop.products, open=True),
        Route("shop_place_order", "POST", "api/orders", shop.place, open=True),
        Route(
            "shop_place_order_for_customer", "POST", "api/operator/orders", shop.place_for_customer
        ),
        Route("shop_order", "GET", "api/orders/{orderId}", shop.follow, open=True),
    ]


def page(addresses: Mapping[str, str]) -> BusinessPage:
    """Return the shop's page. `addresses` are the addresses of the agents' services, by agent."""
    return BusinessPage(path="shop", title="Shop", folder=PAGE, notice=notice(addresses))
