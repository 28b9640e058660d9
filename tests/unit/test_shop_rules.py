"""What the shop makes of a purchase."""

import hashlib
import hmac

from shop.rules import Purchase, fingerprint

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
