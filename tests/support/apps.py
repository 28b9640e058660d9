"""The app as it is deployed, on the parts that a test gives it."""

from collections.abc import Sequence
from dataclasses import dataclass

import azure.functions as func
import pytest

from bootstrap.engine import Engine, build_engine
from bootstrap.operations import Operations
from development.business import DEPLOYED, named
from development.settings import app_settings
from engine.azure.channels.settings import ChannelSettings
from engine.azure.settings import Settings
from engine.declarations.business import AgentDefinition, Application
from engine.http.openapi import Route
from engine.pages.triggers import BusinessPage, Pages
from functions_alone.ports import Ports
from operations.console.triggers import STATIC as CONSOLE
from shop.business import SHOP
from shop.service import ShopService
from tests.support.builders import COOLDOWN, PAYLOAD, THRESHOLD, TIMEOUT, TOLERANCE, WORKFLOWS

IN_SECONDS = {"step_timeout": TIMEOUT, "cooldown": COOLDOWN, "clock_tolerance": TOLERANCE}
NO_CHANNELS = {
    name: field.get_default(call_default_factory=True)
    for name, field in ChannelSettings.model_fields.items()
}
"""Those of the embedded stack have stand-ins, which tests of one process have not."""
SETTINGS = Settings.model_validate(app_settings(Ports(), "key", "key", SHOP.agents)).model_copy(
    update={
        "instance_id": "i1",
        "failure_threshold": THRESHOLD,
        **NO_CHANNELS,
        **{f"{name}_seconds": time.total_seconds() for name, time in IN_SECONDS.items()},
    }
)
ALONE = {capability: (capability,) for capability in ("payment", "inventory", "shipping")}
"""One agent for each capability, of its name."""


@dataclass(frozen=True)
class App:
    """One process: its engine, and its operators' side."""

    engine: Engine
    operations: Operations


def bootstrap(settings, business, adapters) -> App:
    """The app of a business; raises `DeclarationError` and `SettingsError`."""
    engine = build_engine(settings, business, adapters)
    return App(engine, Operations(engine))


def functions(
    app: App, routes: Sequence[Route] = (), page: BusinessPage | None = None
) -> func.FunctionApp:
    """The functions of the app as the entry registers them, with the routes and the page of a business."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in app_settings(Ports(), "key", "key", named(DEPLOYED).agents).items():
            environment.setenv(name, value)
        from function_app import functions as registered  # noqa: PLC0415 - needs settings
    return registered(app.engine, app.operations, routes, Pages.read([CONSOLE], page))


def set_to(**fields) -> Settings:
    """The tests' settings, but for these."""
    assert fields.keys() <= Settings.model_fields.keys(), (
        fields.keys() - Settings.model_fields.keys()
    )
    return SETTINGS.model_copy(update=fields)


def app(parts, *, workflows=WORKFLOWS, offers=ALONE, declared=None, **settings) -> App:
    """The app with these settings, which have the names of the fields, instead of the tests' own.

    Its agents for the same are ways to one provider, unless what is declared says otherwise.
    """
    agents = [
        AgentDefinition(
            name=name,
            offers=capability,
            address=f"{name.replace('-', '_').upper()}_URL",
            **{"provider": capability} | (declared or {}),
        )
        for capability, names in offers.items()
        for name in names
    ]
    addresses = {agent.name: f"http://{agent.name}" for agent in agents}
    business = Application(
        workflows=workflows, default_workflow=workflows.all[0].name, agents=agents, payload=PAYLOAD
    )
    return bootstrap(set_to(addresses=addresses, **settings), business, parts)


def shop_of(made: App) -> ShopService:
    """The shop beside this app."""
    return ShopService(customers=made.engine.customers)
