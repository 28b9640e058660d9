"""The app of the shop: business, settings -> adapters -> services -> functions."""

from bootstrap import bootstrap, functions
from engine.azure.connect import connect
from engine.azure.settings import Settings
from engine.pages.triggers import BusinessPage
from engine.runtime.logs import show_fields
from shop import triggers
from shop.business import PAGE, SHOP
from shop.rules import notice
from shop.service import ShopService

show_fields()
settings = Settings.read(SHOP.agents)
engine = bootstrap(settings, SHOP, connect(settings))
shop = ShopService(customers=engine.customers)
page = BusinessPage(path="shop", title="Shop", folder=PAGE, notice=notice(settings.addresses))
app = functions(engine, triggers.routes(shop), page)
