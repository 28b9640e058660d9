"""The app of this business: business, settings -> adapters -> services -> functions."""

from adapters.azure import connect
from adapters.settings import Settings
from bootstrap import bootstrap, functions
from entrypoints.logs import show_fields
from examples.start.business import START

show_fields()
settings = Settings.read(START.agents)
app = functions(bootstrap(settings, START, connect(settings)))
