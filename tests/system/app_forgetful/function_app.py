"""The shop, whose services forget an idempotency key after a day."""

from dataclasses import replace
from datetime import timedelta

import shop.business
from development.business import load_app

agents = [replace(agent, keys_last=timedelta(days=1)) for agent in shop.business.SHOP.agents]
shop.business.SHOP = replace(shop.business.SHOP, agents=agents)
app = load_app("shop.business:SHOP")
