"""What the shop makes of a purchase."""

import hashlib
import hmac

import pytest

from core.errors import InvalidError
from shop.rules import LARGEST_TOTAL, Purchase, check, fingerprint

PURCHASE = {"customer": {"name": "Ada", "email": "ada@example.com"}, "items": [{"sku": "TEA-SENCHA", "quantity": 2}]}


def test_a_fingerprint_tells_purchases_apart_and_not_whose_they_are():
    """Under one key, the same content gives the same; without the key, it cannot be made from the content."""
    purchase = Purchase.model_validate(PURCHASE)
    other = Purchase.model_validate(PURCHASE | {"customer": {"name": "Ada", "email": "ada@example.org"}})
    assert fingerprint(purchase, "k") == fingerprint(Purchase.model_validate(PURCHASE), "k")
    assert fingerprint(purchase, "k") != fingerprint(other, "k")
    assert fingerprint(purchase, "k") != fingerprint(purchase, "k\udc80")
    content, long_key = purchase.model_dump_json().encode(), "k" * 200
    assert fingerprint(purchase, "k") != hashlib.sha256(content).hexdigest()
    stored = hashlib.sha256(long_key.encode()).digest()
    assert fingerprint(purchase, long_key) not in {hmac.digest(stored, content, f"sha{n}").hex() for n in (256, 512)}


def of(*quantities):
    """A purchase of rooibos, of which 500 cost 4900.00, in several lines."""
    items = [{"sku": "TEA-ROOIBOS", "quantity": quantity} for quantity in quantities]
    return Purchase.model_validate(PURCHASE | {"items": items})


def test_an_order_has_a_largest_total():
    """However it is spread over lines: nobody orders teapots for millions without being asked."""
    check(of(500, 10))  # 4998.00
    with pytest.raises(InvalidError, match=f"5007.80 EUR together; an order takes {LARGEST_TOTAL} at most"):
        check(of(500, 11))
