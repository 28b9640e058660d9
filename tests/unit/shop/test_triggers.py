"""The shop's calls as they go over HTTP."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import azure.functions as func
import pytest

from engine.domain.statuses import Outcome
from engine.runtime.api import http_functions
from shop.catalogue import BY_SKU, eur
from shop.triggers import routes
from testkit.memory import in_memory
from tests.support.apps import app
from tests.support.builders import ORDER_ID, claimed, orders

BEGINS = datetime(2099, 12, 1, 7, tzinfo=UTC)
KEY = "5f0c7d0e-3b1f-4c55-9d0a-0f7f9a7a1c11"
PURCHASE = {
    "customer": {"name": "Ada", "email": "ada@example.com"},
    "items": [{"sku": "TEA-SENCHA", "quantity": 2}],
}


class Caller:
    """Calls the shop's functions as the host does."""

    def __init__(self):
        self.engine = app(in_memory()).engine
        self.customers = self.engine.customers
        self.queue = self.engine.submission.queue
        bound = func.FunctionApp()
        bound.register_functions(http_functions(routes(self.customers)))
        self.functions = {
            function.get_function_name(): function.get_user_function()
            for function in bound.get_functions()
        }

    async def __call__(self, name, body=b"", headers=None, params=None, **path):
        request = func.HttpRequest(
            method="POST" if body else "GET",
            url="http://x/",
            body=body,
            headers=headers or {},
            params=params or {},
            route_params=path,
        )
        return await self.functions[name](request)

    async def place(self, key, name="shop_place_order", params=None, **more):
        body = json.dumps(PURCHASE | more).encode()
        return await self(name, body, {"idempotency-key": key}, params)

    async def follow(self, order, known=""):
        async def load(order_id):
            return order

        self.customers.unit_of_work.store.load = load
        return await self("shop_order", headers={"If-None-Match": known}, orderId=ORDER_ID)


@pytest.fixture
def call():
    return Caller()


async def test_a_key_stands_for_one_order_and_one_purchase(call):
    """Who sends it again is told of the same order; another purchase under it is refused."""
    first = await call.place(KEY)
    order_id = json.loads(first.get_body())["orderId"]
    url = f"/api/orders/{order_id}"
    assert json.loads(first.get_body()) == {"orderId": order_id, "statusUrl": url}
    assert (first.status_code, dict(first.headers)) == (202, {"Location": url, "Retry-After": "1"})
    assert (await call.place(KEY)).get_body() == first.get_body()
    assert (await call.place(KEY, items=[{"sku": "POT-GLASS", "quantity": 1}])).status_code == 409


def priced(amount):
    """The shop's products, of which sencha has this price."""
    sencha = BY_SKU["TEA-SENCHA"]
    return BY_SKU | {sencha.sku: replace(sencha, price=eur(amount))}


NOW_OTHERWISE = {
    "dearer": priced("15.00"),
    "dearer than an order may be": priced("4000.00"),
    "gone": {sku: product for sku, product in BY_SKU.items() if sku != "TEA-SENCHA"},
}


@pytest.mark.proves("SUB-3", "SUB-8")
@pytest.mark.parametrize("label", NOW_OTHERWISE)
async def test_an_order_that_is_sent_again_has_its_first_price(call, monkeypatch, label):
    """Bugs 3: it makes no order, no alert and no poison message, whatever the shop sells by now."""
    first = await call.place(KEY)
    monkeypatch.setattr("shop.rules.BY_SKU", NOW_OTHERWISE[label])
    assert ((await call.place(KEY)).status_code, len(call.queue.texts)) == (202, 2)
    assert call.queue.texts[0] == call.queue.texts[1]
    for text in call.queue.texts:
        await call.engine.submission.record(text.encode())
    call.queue.texts.clear()
    again = await call.place(KEY)
    assert (again.status_code, again.get_body()) == (202, first.get_body())
    assert call.queue.texts == []
    order_id = json.loads(first.get_body())["orderId"]
    assert len(await call.engine.store.history(order_id)) == 1
    assert await call.engine.poison_store.page("order-submissions", 10) == []


@pytest.mark.proves("SUB-9")
@pytest.mark.parametrize("name", ["shop_place_order", "shop_place_order_for_customer"])
async def test_a_purchase_may_name_the_time_before_which_it_does_not_begin(call, name):
    """Accepted, it is honoured: customers and operators name it alike."""
    later = {"notBefore": BEGINS.isoformat().replace("+00:00", "Z")}
    placed = await call.place(KEY, name, later)
    assert placed.status_code == 202
    assert json.loads(call.queue.texts[0])["notBefore"] == later["notBefore"]
    assert (await call.place(KEY, name)).status_code == 409
    assert (await call.place(KEY, name, {"notBefore": "later"})).status_code == 400
    await call.engine.submission.record(call.queue.texts[0].encode())
    found = await call("shop_order", orderId=json.loads(placed.get_body())["orderId"])
    assert datetime.fromisoformat(json.loads(found.get_body())["notBefore"]) == BEGINS


GUESSED = {
    "empty": "",
    "short": KEY[:19],
    "long": KEY * 6,
    "one character": "k" * 20,
    "nearly one character": "1" + "0" * 30 + "17",
    "two characters": "ab" * 20,
    "a word three times": "checkout" * 3,
    "a whole key twice": KEY * 2,
}


@pytest.mark.parametrize("key", GUESSED.values(), ids=GUESSED)
async def test_a_key_that_others_can_guess_is_refused(call, key):
    """It would tell them whose order it stands for."""
    refused = await call.place(key)
    assert refused.status_code == 400
    assert json.loads(refused.get_body())["faults"] == [
        "Idempotency-Key: expected 20 to 200 random characters, such as a UUID"
    ]


@pytest.mark.parametrize(
    "key",
    [
        KEY,
        "01KB0Z6Y3D8QF5N7V2XWJ4T9RM",
        "73914028556190274483",
        "dGhpcyBpcyBhIGtleQ==",
    ],
    ids=["UUID", "ULID", "digits", "base64"],
)
async def test_a_key_at_random_is_taken(call, key):
    """Whatever its form."""
    assert (await call.place(key)).status_code == 202


async def test_an_order_has_no_field_that_does_not_apply(call):
    """No outcome before there is one, and no time to ask again once nothing changes.

    It has data alone; the page makes words and marks of it.
    """
    order = claimed()
    found = await call.follow(order)
    assert json.loads(found.get_body()) == {
        "orderId": ORDER_ID,
        "processState": "Processing",
        "placedAt": order.submitted.placed_at.isoformat(),
        "updatedAt": order.updated_at.isoformat(),
        "direction": "forward",
        "steps": [{"name": "payment", "state": "Running"}],
    }
    assert found.headers["Retry-After"] == "2"
    undone = await call.follow(orders.in_error(order, outcome=Outcome.UNDONE))
    assert json.loads(undone.get_body())["outcome"] == "undone"
    processed = await call.follow(orders.processed(order))
    assert "Retry-After" not in processed.headers
    again = await call.follow(order, known=found.headers["ETag"])
    assert (again.status_code, again.get_body(), again.headers["Retry-After"]) == (304, b"", "2")


async def test_the_shop_says_what_it_sells(call):
    """With prices as decimal strings."""
    products = json.loads((await call("shop_products")).get_body())["products"]
    assert products[1] == {
        "sku": "TEA-SENCHA",
        "name": "Sencha",
        "description": "Green tea from Shizuoka, 100 g",
        "price": {"amount": "14.00", "currency": "EUR"},
    }
