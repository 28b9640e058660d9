"""Binds the shop to HTTP. Anybody may call it."""

import azure.functions as func

from core.errors import InvalidError
from entrypoints.functions import Functions
from entrypoints.http import body_of, ok, order_id_of, unless_known
from shop import rules
from shop.rules import MAX_KEY, MIN_KEY, OperatorPurchase, Purchase
from shop.service import ShopService


def blueprint(service: ShopService) -> func.Blueprint:
    """Return the shop's functions."""
    triggers = Functions()

    @triggers.route("api/products", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
    async def shop_products(req: func.HttpRequest) -> func.HttpResponse:
        return ok(rules.products())

    @triggers.route("api/orders", methods=["POST"], auth_level=func.AuthLevel.ANONYMOUS)
    async def shop_place_order(req: func.HttpRequest) -> func.HttpResponse:
        return await _placed(req, Purchase)

    @triggers.route("api/operator/orders", methods=["POST"], auth_level=func.AuthLevel.FUNCTION)
    async def shop_place_order_for_customer(req: func.HttpRequest) -> func.HttpResponse:
        return await _placed(req, OperatorPurchase)

    @triggers.route("api/orders/{orderId}", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
    async def shop_order(req: func.HttpRequest) -> func.HttpResponse:
        status = await service.follow(order_id_of(req))
        return unless_known(req, status, rules.ask_again_in(status))

    async def _placed(req: func.HttpRequest, purchase: type[Purchase]) -> func.HttpResponse:
        order_id = await service.place(body_of(req, purchase), _idempotency_key(req))
        url = f"/api/orders/{order_id}"
        return ok({"orderId": order_id, "statusUrl": url}, 202, {"Location": url, "Retry-After": "1"})

    return triggers


def _idempotency_key(req: func.HttpRequest) -> str | None:
    key: str | None = req.headers.get("Idempotency-Key")
    if key is not None and not MIN_KEY <= len(key) <= MAX_KEY:
        raise InvalidError([f"Idempotency-Key: expected {MIN_KEY} to {MAX_KEY} characters at random, such as a UUID"])
    return key
