"""The app of this business: business, settings -> adapters -> services -> functions."""

from adapters.azure import connect
from adapters.settings import Settings
from bootstrap import bootstrap, functions
from entrypoints.logs import show_fields
from rental.business import RENTAL

show_fields()
settings = Settings.read(RENTAL.agents)
app = functions(bootstrap(settings, RENTAL, connect(settings)))
