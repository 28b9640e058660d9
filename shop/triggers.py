"""Binds the shop to HTTP. Anybody may call it."""

import azure.functions as func

from core.errors import InvalidError
from entrypoints.functions import Functions
from entrypoints.http import body_of, ok, order_id_of
from shop import rules
from shop.rules import Purchase
from shop.service import ShopService


def blueprint(service: ShopService) -> func.Blueprint:
    """Return the shop's functions."""
    triggers = Functions()

    @triggers.route("api/products", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
    async def shop_products(req: func.HttpRequest) -> func.HttpResponse:
        return ok(rules.products())

    @triggers.route("api/orders", methods=["POST"], auth_level=func.AuthLevel.ANONYMOUS)
    async def shop_place_order(req: func.HttpRequest) -> func.HttpResponse:
        order_id = await service.place(body_of(req, Purchase), _idempotency_key(req))
        url = f"/api/orders/{order_id}"
        return ok({"orderId": order_id, "statusUrl": url}, 202, {"Location": url})

    @triggers.route("api/orders/{orderId}", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
    async def shop_order(req: func.HttpRequest) -> func.HttpResponse:
        return ok(await service.follow(order_id_of(req)))

    return triggers


def _idempotency_key(req: func.HttpRequest) -> str | None:
    key: str | None = req.headers.get("Idempotency-Key")
    if key is not None and not 1 <= len(key) <= 200:
        raise InvalidError(["Idempotency-Key: expected 1 to 200 characters"])
    return key
