"""The shop, whose services forget an idempotency key after a day."""

from dataclasses import replace
from datetime import timedelta
from importlib import import_module

import shop.business

agents = [replace(each, keys_last=timedelta(days=1)) for each in shop.business.SHOP.agents]
shop.business.SHOP = replace(shop.business.SHOP, agents=agents)
app = import_module("shop.function_app").app
