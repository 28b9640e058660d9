"""The app of this business: business, settings -> adapters -> services -> functions."""

from bootstrap import bootstrap, functions
from engine.azure.connect import connect
from engine.azure.settings import Settings
from engine.runtime.logs import show_fields
from samples.claims_with_approvals.business import GROWN

show_fields()
settings = Settings.read(GROWN.agents)
app = functions(bootstrap(settings, GROWN, connect(settings)))
