"""The app of this business: business, settings -> adapters -> services -> functions."""

from bootstrap import bootstrap, functions
from engine.azure.connect import connect
from engine.azure.settings import Settings
from engine.runtime.logs import show_fields
from rental.business import RENTAL

show_fields()
settings = Settings.read(RENTAL.agents)
app = functions(bootstrap(settings, RENTAL, connect(settings)))
