"""Every setting that the app reads is set, and what the templates name exists."""

import json
from collections import Counter

import pytest
from deploying import AGENTS
from pydantic_core import PydanticUndefined

from adapters.settings import Settings
from core.credentials import SCOPE
from entrypoints.http import MAX_BODY_BYTES
from local.ports import Ports
from local.servicebus_config import ROOT
from local.settings import app_settings

PLATFORM = {
    "AzureWebJobsStorage__blobServiceUri", "AzureWebJobsStorage__credential", "AzureWebJobsStorage__clientId",
    "AzureFunctionsJobHost__extensions__queues__maxPollingInterval",
    "AzureWebJobsDisableHomepage", "FUNCTIONS_REQUEST_BODY_SIZE_LIMIT",
    "APPLICATIONINSIGHTS_CONNECTION_STRING", "APPLICATIONINSIGHTS_AUTHENTICATION_STRING",
    "StateStorage__credential", "ServiceBus__credential",
}  # fmt: skip
"""Read by the Functions host, not by the app."""
SIGN_IN = "OVERRIDE_USE_MI_FIC_ASSERTION_CLIENTID"
"""Read by the platform's sign-in."""
KEYS = {"StateStorage", "ServiceBus", "EVENT_GRID_KEY"}
"""The other way to connect, for emulators; in Azure there are no keys."""
OF_SERVICES = {each.address for each in AGENTS}
ALL = {field.alias for field in Settings.model_fields.values() if field.alias} | OF_SERVICES
"""What the app reads, for itself and for its agents."""


def test_service_bus_queues_have_the_properties_of_the_file(deployed):
    """What queues.json says of a queue reaches Azure, whatever it is."""
    provisioned = {
        each.name: each.properties
        for each in deployed.resources
        if each.type.endswith("namespaces/queues")
    }
    for queue in json.loads((ROOT / "infra/queues.json").read_text())["serviceBusQueues"]:
        wanted = {name: value for name, value in queue.items() if name != "name"}
        assert {name: provisioned[queue["name"]].get(name) for name in wanted} == wanted


def test_event_grid_delivers_to_the_queue_that_the_app_reads(deployed, functions):
    """Alerts come back to the function that records them."""
    [subscription] = [
        each for each in deployed.resources if each.type.endswith("eventSubscriptions")
    ]
    destination = subscription.properties["deliveryWithResourceIdentity"]["destination"][
        "properties"
    ]
    assert destination["queueName"] == functions["alerts_record"]["queueName"]
    assert destination["queueMessageTimeToLiveInSeconds"] == -1


def test_nothing_is_deployed_twice(deployed):
    """Two resources with one id would overwrite each other. (Storage services are there by themselves.)"""
    ids = Counter(each.id for each in deployed.resources)
    assert [name for name, count in ids.items() if count > 1] == []


@pytest.mark.proves("WRK-5")
def test_every_setting_is_set_and_read(deployed):
    """What the app reads is set in Azure, but for the keys; what is set is read by the app or by the platform."""
    [settings] = [each.properties for each in deployed.resources if each.name == "appsettings"]
    with_sign_in = {SIGN_IN} if deployed.given.get("operatorSignInClientId") else set()
    given = set() if deployed.given.get("simulatedServices") else OF_SERVICES
    assert set(settings) == (ALL - KEYS - given) | PLATFORM | with_sign_in


def test_every_setting_of_a_service_can_be_given():
    """Its address, and for whom a token is wanted: each goes by its own name, from azd to the app."""
    parameters = json.loads((ROOT / "infra/main.parameters.json").read_text())["parameters"]
    passed = parameters["serviceSettings"]["value"]
    assert set(passed) == OF_SERVICES | {name + SCOPE for name in OF_SERVICES}
    assert all(value == f"${{{name}=}}" for name, value in passed.items())


USUAL = {
    "STEP_TIMEOUT_SECONDS": "60",
    "FAILURE_THRESHOLD": "3",
    "COOLDOWN_SECONDS": "600",
    "CLOCK_TOLERANCE_SECONDS": "2",
    "LEASE_SECONDS": "30",
    "BUCKETS": "8",
    "REMOTE_CALL_TIMEOUT_SECONDS": "10",
    "AGENT_MARGIN_SECONDS": "1",
    "CALLS_IN_FLIGHT": "{}",
    "CALLS_PER_SECOND": "{}",
    "CALLS_PER_PROCESS": "100",
    "CIRCUIT_ORDERS": "10",
    "CIRCUIT_OPEN_SECONDS": "30",
    "LONGEST_RETRY_AFTER_SECONDS": "600",
    "UNKNOWN_NAME_TRIES": "24",
    "LONGEST_UPGRADE_SECONDS": "86400",
    "NOTICE_TRIES": "8",
    "LONGEST_PENDING_SECONDS": "900",
    "LONGEST_WITHOUT_SWEEP_SECONDS": "300",
    "REPLY_TO_PREFIX": "status-",
    "SIMULATOR_ENABLED": "False",
    "RETENTION_DAYS": "0",
}
"""What each setting is unless somebody says otherwise. They go together: an attempt lasts longer than a call, say."""
CHOSEN = {"SIMULATOR_ENABLED", "RETENTION_DAYS"}
"""Of these, whoever deploys chooses by a parameter of the template."""
OF_AZURE = {"STEP_TIMEOUT_SECONDS": "180"}
"""What is otherwise there: a message waited for up to two minutes until an instance took it (functions-host 10706)."""


def test_a_setting_is_in_azure_what_it_is_where_nobody_sets_it(deployed):
    """And both are what is written here: one that is changed is changed in all three places."""
    fields = {field.alias: field for field in Settings.model_fields.values() if field.alias}
    defaults = {
        name: field.get_default(call_default_factory=True) for name, field in fields.items()
    }
    unset = (None, PydanticUndefined)
    assert {
        name: str(default) for name, default in defaults.items() if default not in unset
    } == USUAL
    [settings] = [each.properties for each in deployed.resources if each.name == "appsettings"]
    in_azure = {name: settings[name] for name in USUAL}
    assert in_azure == USUAL | OF_AZURE | {name: settings[name] for name in CHOSEN}


def test_the_host_in_azure_asks_its_queues_once_a_second(deployed):
    """Ten times as seldom as here, for each look is paid; a new order waits for as long at most."""
    [settings] = [each.properties for each in deployed.resources if each.name == "appsettings"]
    name = "AzureFunctionsJobHost__extensions__queues__maxPollingInterval"
    assert settings[name] == "00:00:01"


def test_the_app_accepts_its_settings(deployed, monkeypatch):
    """The app starts with what Azure sets; a value that only Azure knows stands for itself."""
    [settings] = [each.properties for each in deployed.resources if each.name == "appsettings"]
    for name in ALL:
        monkeypatch.delenv(name, raising=False)
    given = dict.fromkeys(OF_SERVICES, "https://service.example.com")
    for name, value in (given | settings).items():
        monkeypatch.setenv(name, known(str(value)))
    read = Settings.read(AGENTS)
    assert read.state_storage is None
    assert str(read.simulator_enabled) == str(bool(deployed.given.get("simulatedServices")))


def known(value):
    """An address that exists after the deployment only, as some address of that kind."""
    return (
        value
        if "<" not in value
        else value.split("<", 1)[0] + "https://example.com"[8 * value.startswith("https") :]
    )


def test_every_function_in_the_templates_exists(deployed, functions):
    """Instances are kept ready for HTTP and for all that an order goes through, if at all, and for nothing else."""
    [site] = [each for each in deployed.resources if each.type == "Microsoft.Web/sites"]
    ready = [
        each["name"]
        for each in site.properties["functionAppConfig"]["scaleAndConcurrency"]["alwaysReady"]
    ]
    way = {
        f"function:{name}"
        for name, trigger in functions.items()
        if trigger["type"] in ("queueTrigger", "serviceBusTrigger")
        and not name.startswith(("given_up_", "alerts_"))
    }
    assert len(way) > 4
    wanted = {"http"} | way if deployed.given.get("alwaysReadyInstances") else set()
    assert (set(ready), len(ready)) == (wanted, len(wanted))


def test_embedded_settings_are_read_too(functions):
    """What the embedded stack sets is read by the app, by a trigger or by the host."""
    read = ALL | {"AzureWebJobsStorage", "OPERATOR_KEY"}
    assert set(app_settings(Ports(), "", "", AGENTS)) <= read
    connections = {each["connection"] for each in functions.values() if "connection" in each}
    assert connections <= read


def test_the_platform_takes_no_larger_body_than_the_app(deployed):
    """What the app would refuse never reaches its memory."""
    [settings] = [each.properties for each in deployed.resources if each.name == "appsettings"]
    assert int(settings["FUNCTIONS_REQUEST_BODY_SIZE_LIMIT"]) == MAX_BODY_BYTES
