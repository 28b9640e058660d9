"""The app of this business: business, settings -> adapters -> services -> functions."""

from bootstrap import bootstrap, functions
from engine.azure.connect import connect
from engine.azure.settings import Settings
from engine.runtime.logs import show_fields
from samples.minimal.business import START

show_fields()
settings = Settings.read(START.agents)
app = functions(bootstrap(settings, START, connect(settings)))
