"""Where Azure Functions begins: business, settings -> adapters -> services -> functions."""

import azure.functions as func

from adapters.azure import connect
from adapters.settings import Settings
from composition import operating, processing
from composition.base import Base
from edge.logs import show_fields
from shop.business import SHOP

show_fields()
settings = Settings.read()
base = Base(SHOP, settings, connect(settings))
app = func.FunctionApp()
for blueprint in (*processing.blueprints(base), *operating.blueprints(base)):
    app.register_functions(blueprint)
