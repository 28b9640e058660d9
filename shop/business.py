"""The business of this deployment: a shop for tea."""

from pathlib import Path

from core.business import Agent, Business
from core.workflow import Workflows
from shop.payload import PAYLOAD
from shop.workflows import ORDER, ORDER_1, RETURN

DECLINED = "card declined"

PROVIDER = "psp"
"""The payment provider, to which both agents for payments are a way."""

AGENTS = (
    Agent(name="payment", offers="payment", address="PAYMENT_URL", provider=PROVIDER, refusal=DECLINED),
    Agent(
        name="payment-backup",
        offers="payment",
        address="PAYMENT_BACKUP_URL",
        optional=True,
        provider=PROVIDER,
        refusal=DECLINED,
    ),
    Agent(name="inventory", offers="inventory", address="INVENTORY_URL", refusal="out of stock"),
    Agent(name="shipping", offers="shipping", address="SHIPPING_URL", refusal="address not deliverable"),
)
"""The backup is another way to the payment provider, for when the first one fails; it knows the same keys."""

SHOP = Business(
    workflows=Workflows(ORDER_1, ORDER, RETURN), default_workflow=ORDER.name, agents=AGENTS, payload=PAYLOAD
)

PAGE = Path(__file__).parent / "page"
"""The files of the page on which customers order, and follow their orders."""
