"""What the shop makes of a purchase."""

import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta

import pytest

from engine.azure.clock import order_ids, order_time
from engine.domain.errors import InvalidError, UnknownOrderError
from engine.domain.messages import decode
from engine.domain.states import UnderWay
from engine.http.public_api.rules import Beginning, fingerprint, kind_of
from shop.rules import (
    LARGEST_TOTAL,
    SIMULATED,
    OperatorPurchase,
    Purchase,
    is_tried_again,
    notice,
    prices,
    status,
    submission,
)
from testkit.memory import in_memory
from tests.support.apps import app, shop_of
from tests.support.builders import claimed, orders, steps

PURCHASE = {
    "customer": {"name": "Ada", "email": "ada@example.com"},
    "items": [{"sku": "TEA-SENCHA", "quantity": 2}],
}


@pytest.mark.parametrize(
    ("name", "address", "expected"),
    [
        ("payment", "https://tea.example/simulator/payment", SIMULATED),
        ("payment-backup", "https://tea.example/simulator/payment-backup/", SIMULATED),
        ("payment", "https://bank.example/payments", ""),
        ("shipping", "https://tea.example/simulator/shipping", ""),
    ],
)
def test_a_shop_that_charges_a_simulated_service_says_so(name, address, expected):
    """By where its agents for payments call; a shop that charges its customers says nothing."""
    assert notice({"inventory": "https://stock.example", name: address}) == expected


def test_a_fingerprint_tells_purchases_apart_and_not_whose_they_are():
    """The same content gives the same under one key, and cannot be made without the key."""
    purchase = Purchase.model_validate(PURCHASE)
    other = Purchase.model_validate(
        PURCHASE | {"customer": {"name": "Ada", "email": "ada@example.org"}}
    )
    assert fingerprint(purchase, "k") == fingerprint(Purchase.model_validate(PURCHASE), "k")
    assert fingerprint(purchase, "k") != fingerprint(other, "k")
    assert fingerprint(purchase, "k") != fingerprint(purchase, "k\udc80")
    content, long_key = purchase.model_dump_json().encode(), "k" * 200
    assert fingerprint(purchase, "k") != hashlib.sha256(content).hexdigest()
    stored = hashlib.sha256(long_key.encode()).digest()
    assert fingerprint(purchase, long_key) not in {
        hmac.digest(stored, content, f"sha{n}").hex() for n in (256, 512)
    }


def test_orders_that_begin_at_one_moment_are_of_one_kind():
    """In whatever zone it was sent; and a key stands for its order whatever version made it."""
    begins = [
        Beginning.model_validate_strings({"notBefore": time})
        for time in ("2026-12-01T09:00:00+01:00", "2026-12-01T08:00:00Z")
    ]
    assert {kind_of(beginning, "w") for beginning in begins} == {"w2026-12-01T08:00:00+00:00"}
    assert kind_of(Beginning()) == ""


def of(*quantities):
    """A purchase of rooibos, of which 500 cost 4900.00, in several lines."""
    return json.dumps(
        PURCHASE
        | {"items": [{"sku": "TEA-ROOIBOS", "quantity": quantity} for quantity in quantities]}
    )


@pytest.mark.parametrize("quantity", [2.0, 1e2])
def test_a_quantity_may_be_written_with_a_point(quantity):
    """`P9`: the description says that it is an integer, and so it is."""
    wish = decode(Purchase, of(quantity)).items[0]
    assert (type(wish.quantity), wish.quantity) == (int, quantity)


def test_a_quantity_has_no_fraction():
    with pytest.raises(InvalidError):
        decode(Purchase, of(2.5))


def test_an_order_has_a_largest_total():
    """However it is spread over lines: nobody orders teapots for millions without being asked."""
    prices(decode(Purchase, of(500, 10)))  # 4998.00
    with pytest.raises(InvalidError, match=f"^items: 5007.80 .*{LARGEST_TOTAL}"):
        prices(decode(Purchase, of(500, 11)))


def test_every_product_that_the_shop_does_not_sell_is_named():
    items = [{"sku": sku, "quantity": 1} for sku in ("TEA-SENCHA", "TEA-ICED", "TEA-HOT")]
    with pytest.raises(InvalidError) as caught:
        prices(decode(Purchase, json.dumps(PURCHASE | {"items": items})))
    places = [fault.partition(":")[0] for fault in caught.value.faults]
    assert places == ["items.1.sku", "items.2.sku"]


@pytest.mark.parametrize("blank", [" ", "\u200b", "\u00a0\ufeff"])
def test_a_customers_name_can_be_seen(blank):
    """A parcel for nobody does not arrive."""
    customer = PURCHASE["customer"] | {"name": blank}
    with pytest.raises(InvalidError, match=r"customer\.name: "):
        decode(Purchase, json.dumps(PURCHASE | {"customer": customer}))


NOW = datetime(2026, 1, 31, 8, 15, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def shop_at(now):
    """The shop's service, with nothing recorded, at a time."""
    return shop_of(app(in_memory(clock=lambda: now)))


@pytest.mark.parametrize(
    "age",
    [timedelta(), MINUTE / 2, 10 * MINUTE, -MINUTE / 2],
    ids=["new", "30 s", "hidden by Azure", "by a clock that is ahead"],
)
async def test_an_order_that_was_just_accepted_is_known_by_its_id(age):
    """Before it is recorded: nobody who was given an id is told that there is no such order."""
    order_id = order_ids(1)()
    found = await shop_at(order_time(order_id) + age).follow(order_id)
    assert (found.order_id, found.process_state, found.steps) == (order_id, "Accepted", [])
    assert found.placed_at == order_time(order_id)


@pytest.mark.parametrize("age", [12 * MINUTE, -12 * MINUTE], ids=["old", "made up"])
async def test_an_order_that_is_not_recorded_in_time_is_unknown(age):
    order_id = order_ids(1)()
    with pytest.raises(UnknownOrderError):
        await shop_at(order_time(order_id) + age).follow(order_id)


async def test_an_id_that_nobody_has_made_is_no_order():
    """Newcomer B4: it is of this moment and well-formed, and was accepted nowhere."""
    order_id = order_ids(1)()
    other = "0" if order_id[-1] != "0" else "1"
    with pytest.raises(UnknownOrderError):
        await shop_at(order_time(order_id)).follow(order_id[:-1] + other)


@pytest.mark.parametrize("ulid", ["7" + "Z" * 25, "Z" * 26])
async def test_a_time_that_nobody_lives_to_see_is_no_order(ulid):
    with pytest.raises(UnknownOrderError):
        await shop_at(NOW).follow(f"b00-{ulid}")


def test_a_step_that_is_being_done_for_the_second_time_says_so():
    """A front end can tell the customer why it takes longer."""
    order = claimed()
    (step,) = order.in_state(UnderWay)
    assert not is_tried_again(order, step)
    again = steps.running(attempt=2)
    assert is_tried_again(order, again)
    waiting = steps.waiting(again)
    assert is_tried_again(order, waiting)
    assert not is_tried_again(order, steps.new())
    assert not is_tried_again(orders.in_error(steps=[waiting, steps.failed("other")]), waiting)
    assert [shown.trying_again for shown in status(order).steps] == [False]
    assert [shown.trying_again for shown in status(orders.with_steps(order, again)).steps] == [True]


def test_only_operators_say_which_order_goes_first():
    """Anybody may place an order, but not before others."""
    with pytest.raises(InvalidError, match="priority"):
        decode(Purchase, json.dumps(PURCHASE | {"priority": "high"}))
    urgent = decode(OperatorPurchase, json.dumps(PURCHASE | {"priority": "high"}))
    order_id = order_ids(1)()
    assert made(urgent, order_id).priority == "high"
    assert made(decode(Purchase, json.dumps(PURCHASE)), order_id).priority == "normal"


def made(purchase, order_id):
    """The message of a purchase."""
    return submission(purchase, Beginning(), prices(purchase), order_id, NOW)
