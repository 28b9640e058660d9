"""The business of this deployment: the shop's workflows, and the agents that carry out their steps."""

import workflows
from core.business import Agent, Business

DECLINED = "card declined"

AGENTS = (
    Agent(name="payment", offers="payment", address="PAYMENT_URL", refusal=DECLINED),
    Agent(name="payment-backup", offers="payment", address="PAYMENT_BACKUP_URL", optional=True, refusal=DECLINED),
    Agent(name="inventory", offers="inventory", address="INVENTORY_URL", refusal="out of stock"),
    Agent(name="shipping", offers="shipping", address="SHIPPING_URL", refusal="address not deliverable"),
)
"""The backup is another way to the payment provider, for when the first one fails; it knows the same keys."""

SHOP = Business(workflows=workflows.ALL, agents=AGENTS)
