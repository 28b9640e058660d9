"""The business of this deployment: a shop for tea."""

from pathlib import Path

from core.business import Agent, Business, Sample
from core.workflow import Workflows
from shop.catalogue import PRODUCTS
from shop.payload import PAYLOAD, skus
from shop.workflows import ORDER, ORDER_1, RETURN

DECLINED = "card declined"

PROVIDER = "psp"
"""The payment provider behind both payment agents."""

AGENTS = (
    Agent(
        name="payment", offers="payment", address="PAYMENT_URL", provider=PROVIDER, refusal=DECLINED
    ),
    Agent(
        name="payment-backup",
        offers="payment",
        address="PAYMENT_BACKUP_URL",
        optional=True,
        provider=PROVIDER,
        refusal=DECLINED,
    ),
    Agent(name="inventory", offers="inventory", address="INVENTORY_URL", refusal="out of stock"),
    Agent(
        name="shipping",
        offers="shipping",
        address="SHIPPING_URL",
        refusal="address not deliverable",
    ),
)
"""`payment-backup` is a second way to the same provider, which knows the same idempotency keys."""

SAMPLE = Sample(
    payload={
        "customer": {"name": "A sample", "email": "sample@example.com"},
        "items": [{"sku": PRODUCTS[0].sku, "quantity": 1, "unitPrice": PRODUCTS[0].price.amount}],
    }
)

SHOP = Business(
    workflows=Workflows(ORDER_1, ORDER, RETURN),
    default_workflow=ORDER.name,
    agents=AGENTS,
    payload=PAYLOAD,
    sample=SAMPLE,
    fault_marks={"sku": skus},
)

PAGE = Path(__file__).parent / "page"
"""The files of the page on which customers place and follow orders."""
