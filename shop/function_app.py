"""The app of the shop: business, settings -> adapters -> services -> functions."""

from adapters.azure import connect
from adapters.clock import order_ids, order_time
from adapters.settings import Settings
from bootstrap import bootstrap, functions
from entrypoints.logs import show_fields
from shop import triggers
from shop.business import PAGE, SHOP
from shop.service import ShopService
from submission.service import QUEUE
from web.triggers import Page

show_fields()
settings = Settings.read(SHOP.agents)
engine = bootstrap(settings, SHOP, connect(settings))
shop = ShopService(
    store=engine.store,
    submissions=engine.storage_queues[QUEUE],
    keys=engine.submission_keys,
    clock=engine.adapters.clock,
    new_order_id=order_ids(settings.buckets),
    placed_at=order_time,
)
app = functions(engine, triggers.routes(shop), Page(path="shop", title="Shop", folder=PAGE))
