"""Where Azure Functions begins: settings -> adapters -> services -> functions."""

import azure.functions as func

from adapters.azure import connect
from adapters.clock import order_ids, order_time
from adapters.settings import Settings
from bootstrap import bootstrap, functions
from core.business import Business
from entrypoints.logs import show_fields
from shop import triggers
from shop.business import SHOP
from shop.service import ShopService


def create(business: Business) -> func.FunctionApp:
    """Return the functions of the shop and of the engine that drives its orders."""
    settings = Settings.read(business.agents)
    engine = bootstrap(settings, business, connect(settings))
    shop = ShopService(
        store=engine.adapters.store,
        submissions=engine.adapters.submissions,
        keys=engine.adapters.keys,
        new_order_id=order_ids(settings.buckets),
        placed_at=order_time,
    )
    return functions(engine, triggers.blueprint(shop))


show_fields()
app = create(SHOP)
