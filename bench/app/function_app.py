"""The production app with the workflows that are measured."""

from importlib import import_module

import shop.business
from bench.workflows import MEASURED

shop.business.SHOP = MEASURED
app = import_module("shop.function_app").app
