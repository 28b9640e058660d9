"""The app that Azure Functions runs. Each part registers its functions here, by name."""

from engine.runtime import packed

packed.check()

from collections.abc import Sequence

import azure.functions as func

from agents.triggers import agent_functions
from bootstrap.demonstration import Demonstration
from bootstrap.engine import Engine, build_engine
from bootstrap.operations import Operations
from engine.azure.connect import connect
from engine.azure.settings import Settings
from engine.http.external_events import callback_routes
from engine.http.openapi import Route
from engine.http.public_api.triggers import endpoint_routes
from engine.pages.triggers import Pages, page_functions
from engine.runtime.api import http_functions
from engine.runtime.external_events import external_event_functions
from engine.runtime.logs import show_fields
from engine.words import catalogue
from operations.alerts.triggers import alert_functions, notification_functions
from operations.api.triggers import operator_routes, poison_functions, retention_functions
from operations.console.triggers import STATIC as CONSOLE
from operations.console.triggers import console_functions
from samples.simulator.triggers import simulator_functions
from scheduler.triggers import scheduler_functions
from submission.triggers import submission_functions
from supervisor.triggers import supervisor_functions

# isort: split
# The business of this deployment: `make declared ARGS="--deploy …"` exchanges these two lines.
from shop.business import SHOP as BUSINESS
from shop.triggers import page, routes


def functions(
    engine: Engine, operations: Operations, own_routes: Sequence[Route], pages: Pages
) -> func.FunctionApp:
    """Make the functions of the app, with the routes and the page of its business."""
    app = func.FunctionApp()
    app.register_functions(submission_functions(engine.submission))
    app.register_functions(scheduler_functions(engine.inbox, engine.agent_names))
    for agent in engine.agents:
        app.register_functions(agent_functions(engine.agent(agent), engine.unread))
    app.register_functions(supervisor_functions(engine.supervisor))
    if engine.business.waits_for_events:
        app.register_functions(external_event_functions(engine.external_event_inbox))
    app.register_functions(
        alert_functions(
            operations.incoming_alerts,
            engine.poison_store,
            operations.relay,
            operations.stall_detector,
            operations.channels_of,
        )
    )
    app.register_functions(notification_functions(operations.notifier))
    app.register_functions(retention_functions(operations.retention))
    app.register_functions(
        poison_functions(engine.poison_store, operations.storage_queues, engine.bus_queues)
    )
    calls = [
        *own_routes,
        *endpoint_routes(engine.customers, engine.business.endpoints),
        *(callback_routes(engine.callback_service) if engine.callback_urls else ()),
        *operator_routes(operations.services),
    ]
    app.register_functions(http_functions(calls, operations.sign_in, engine.call_limits))
    app.register_functions(console_functions(pages))
    # Where services are simulated, visitors look around. Elsewhere they are customers.
    app.register_functions(page_functions(pages, start=engine.settings.simulator_enabled))
    if engine.settings.simulator_enabled:
        demonstration = Demonstration(engine)
        app.register_functions(simulator_functions(demonstration.simulator, demonstration.samples))
    return app


show_fields()
settings = Settings.read(BUSINESS.agents)
catalogue.use(settings.language)
engine = build_engine(settings, BUSINESS, connect(settings))
pages = Pages.read([CONSOLE], page(settings.addresses))
app = functions(engine, Operations(engine), routes(engine.customers), pages)
