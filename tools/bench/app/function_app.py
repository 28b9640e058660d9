"""The production app with the measured workflows."""

import shop.business
from bench.workflows import MEASURED
from development.business import load_app

shop.business.SHOP = MEASURED
app = load_app("shop.business:SHOP")
