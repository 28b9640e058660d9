"""What settings reach of the app that is made from them."""

import json

import azure.functions as func
import pytest

from adapters.memory import in_memory
from adapters.settings import Settings, SettingsError
from composition import operating, processing
from composition.base import Base
from edge.functions import answering
from local.host.index import index_functions
from local.host.settings import AppSettings
from local.ports import Ports
from local.settings import app_settings

EVERY_SEVEN = "*/7 * * * * *"


@pytest.fixture
def settings(monkeypatch):
    """The app settings, as both the app and its host read them."""
    values = app_settings(Ports(), "key", "key") | {
        "SUPERVISOR_SCHEDULE": EVERY_SEVEN,
        "CALLS_IN_FLIGHT": json.dumps({"payment": 3}),
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    return values


def indexed(base, settings):
    """The functions as the embedded host sees them, by name."""
    app = func.FunctionApp()
    for blueprint in processing.blueprints(base):
        app.register_functions(blueprint)
    found = index_functions(app.get_functions(), AppSettings(values=settings), None)
    return {function.name: function for function in found}


def test_every_function_always_answers(settings):
    """What is cancelled within it is turned into an ordinary failure, first of all."""
    base, app = Base(Settings.read(), in_memory()), func.FunctionApp()
    for blueprint in (*processing.blueprints(base), *operating.blueprints(base)):
        app.register_functions(blueprint)
    plain = {each.get_function_name(): each.get_user_function().__code__ for each in app.get_functions()}
    assert len(plain) > 30
    assert [
        name for name, code in plain.items() if code is not answering(test_every_function_always_answers).__code__
    ] == []


@pytest.mark.proves("SUP-1")
async def test_how_often_the_supervisor_sweeps_is_a_setting(settings):
    """The timer has the schedule of the setting, whatever that is, and sweeps."""
    base = Base(Settings.read(), in_memory())
    sweep = indexed(base, settings)["supervisor_sweep"]
    assert sweep.trigger.schedule == EVERY_SEVEN
    await sweep.handler(None)
    assert (await base.parts.sweeps.last()).instance == base.settings.instance_id


@pytest.mark.proves("SUP-1")
def test_without_the_schedule_of_the_supervisor_the_app_does_not_start(settings, monkeypatch):
    """A timer without one would never come."""
    monkeypatch.delenv("SUPERVISOR_SCHEDULE")
    with pytest.raises(SettingsError, match="SUPERVISOR_SCHEDULE"):
        Settings.read()


@pytest.mark.proves("AGT-10", "WRK-2")
def test_how_much_may_be_asked_of_a_service_is_a_setting(settings):
    """By agent; those that are not named have what is usual."""
    base = Base(Settings.read(), in_memory())
    payment, inventory = (processing._agent(base, name).limits for name in ("payment", "inventory"))
    assert (payment.in_flight, inventory.in_flight) == (3, processing.CALLS_IN_FLIGHT)
