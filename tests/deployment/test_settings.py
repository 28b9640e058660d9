"""Every setting that the app reads is set, and what the templates name exists."""

import json
from collections import Counter
from urllib.parse import unquote

import pytest
from bicep_model import Template
from deploying import ADDRESSES, AGENTS, GIVEN, SETTINGS
from pydantic_core import PydanticUndefined

from adapters.settings import Settings
from core.messages import DEAD_LETTERS
from development.servicebus_config import ROOT, config
from development.settings import app_settings
from entrypoints.http import MAX_BODY_BYTES
from local.ports import Ports

PLATFORM = {
    "AzureWebJobsStorage__blobServiceUri", "AzureWebJobsStorage__accountName",
    "AzureWebJobsStorage__credential", "AzureWebJobsStorage__clientId",
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
OF_APP = {field.alias for field in Settings.model_fields.values() if field.alias}
ALL = OF_APP | set(SETTINGS)
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


def test_what_service_bus_gives_up_comes_to_the_one_function_that_keeps_it(deployed, functions):
    """From each queue that the app receives from; what expires there is given up too, and is never lost.

    The queue has to be there before any can forward to it. It forwards nothing, so what fails in it stays.
    """
    queues = [each for each in deployed.resources if each.type.endswith("namespaces/queues")]
    forwards = {each.name: each.properties.get("forwardDeadLetteredMessagesTo") for each in queues}
    received = {
        each["queueName"] for each in functions.values() if each["type"] == "serviceBusTrigger"
    }
    assert {name for name, to in forwards.items() if to == DEAD_LETTERS} == received - {
        DEAD_LETTERS
    }
    assert {to for to in forwards.values() if to} == {DEAD_LETTERS}
    assert functions["given_up_dead_letters"]["queueName"] == DEAD_LETTERS
    [last] = [each for each in queues if each.name == DEAD_LETTERS]
    assert last.properties["deadLetteringOnMessageExpiration"] is True
    text = (ROOT / "infra/modules/service-bus.bicep").read_text()
    assert (
        "forwardDeadLetteredMessagesTo: startsWith(queue.name, ownersPrefix) ? null : deadLetters.name"
        in text
    )


def test_the_embedded_broker_and_the_emulator_forward_what_azure_forwards(deployed):
    """Each queue to the same one, or to none."""
    [namespace] = config()["UserConfig"]["Namespaces"]
    here = {
        each["Name"]: each["Properties"]["ForwardDeadLetteredMessagesTo"] or None
        for each in namespace["Queues"]
    }
    there = {
        each.name: each.properties.get("forwardDeadLetteredMessagesTo")
        for each in deployed.resources
        if each.type.endswith("namespaces/queues")
    }
    assert here == there


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
    """What the app reads for itself is set in Azure, but for the keys; what is set is read by the app or by the platform.

    Of the agents it sets the addresses of simulated services; whoever deploys gives the others.
    """
    [settings] = [each.properties for each in deployed.resources if each.name == "appsettings"]
    with_sign_in = {SIGN_IN} if deployed.given.get("operatorSignInClientId") else set()
    played = set(ADDRESSES) if deployed.given.get("simulatedServices") else set()
    assert set(settings) == (OF_APP - KEYS) | played | PLATFORM | with_sign_in


def test_every_setting_of_a_service_can_be_given():
    """Its address, and whatever it is shown: each goes by its own name, from azd to the app."""
    parameters = json.loads((ROOT / "infra/main.parameters.json").read_text())["parameters"]
    passed = parameters["serviceSettings"]["value"]
    assert set(ADDRESSES) <= set(passed)
    assert set(passed) == set(SETTINGS)
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
    "OPERATOR_SIGN_IN": "False",
    "OPERATOR_ROLE": "",
    "LOG_LINK": "",
    "RUNBOOK_URL": "",
    "SIMULATOR_ENABLED": "False",
    "RETENTION_DAYS": "0",
}
"""What each setting is unless somebody says otherwise. They go together: an attempt lasts longer than a call, say."""
CHOSEN = {"SIMULATOR_ENABLED", "RETENTION_DAYS", "OPERATOR_SIGN_IN", "OPERATOR_ROLE", "LOG_LINK"}
"""These follow from a parameter of the template, or from what is deployed with the app."""
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


def test_the_host_finds_its_storage_by_address_and_by_name(deployed):
    """By its address alone it was seen to fail at its start: Azure/azure-functions-host, issue 11787 (deployment.md 4)."""
    [settings] = [each.properties for each in deployed.resources if each.name == "appsettings"]
    [account] = [each for each in deployed.resources if each.name.startswith("sthost")]
    assert settings["AzureWebJobsStorage__accountName"] == account.name
    assert account.name in str(settings["AzureWebJobsStorage__blobServiceUri"])


def test_the_host_in_azure_asks_its_queues_once_a_second(deployed):
    """Ten times as seldom as here, for each look is paid; a new order waits for as long at most."""
    [settings] = [each.properties for each in deployed.resources if each.name == "appsettings"]
    name = "AzureFunctionsJobHost__extensions__queues__maxPollingInterval"
    assert settings[name] == "00:00:01"


def test_the_app_accepts_its_settings(deployed, monkeypatch):
    """The app starts with what Azure sets; simulated services need nothing else, and others what their agents read."""
    [settings] = [each.properties for each in deployed.resources if each.name == "appsettings"]
    for name in ALL:
        monkeypatch.delenv(name, raising=False)
    played = deployed.given.get("simulatedServices")
    given = dict.fromkeys([] if played else SETTINGS, "https://service.example.com")
    for name, value in (given | settings).items():
        monkeypatch.setenv(name, known(str(value)))
    read = Settings.read(AGENTS)
    assert read.state_storage is None
    assert read.simulator_enabled == bool(played)


def known(value):
    """An address that exists after the deployment only, as some address of that kind."""
    if "<" not in value:
        return value
    return "https://example.com" + value.partition(">")[2]


def ready(template):
    """For what instances are kept ready."""
    [site] = [each for each in template.resources if each.type == "Microsoft.Web/sites"]
    scale = site.properties["functionAppConfig"]["scaleAndConcurrency"]
    return sorted(each["name"] for each in scale["alwaysReady"])


def way_of_an_order(functions):
    """Whatever of these an order goes through."""
    way = {
        f"function:{name}"
        for name, trigger in functions.items()
        if trigger["type"] in ("queueTrigger", "serviceBusTrigger")
        and not name.startswith(("given_up_", "alerts_"))
    }
    assert len(way) > 4
    return sorted(way | {"http"})


def test_every_function_in_the_templates_exists(deployed, functions):
    """Instances are kept ready for HTTP and for all that an order goes through, if at all, and for nothing else."""
    wanted = deployed.given.get("alwaysReadyInstances")
    assert ready(deployed) == (way_of_an_order(functions) if wanted else [])


def test_nothing_is_kept_ready_for_an_agent_that_is_not_there(functions, required_functions):
    """It may do without its service, and has no address: an instance for it would be paid for nothing."""
    needed = [agent.address for agent in AGENTS if agent.address and not agent.optional]
    for addresses, there in ((ADDRESSES, functions), (needed, required_functions)):
        given = dict.fromkeys(ADDRESSES, "") | dict.fromkeys(addresses, "https://x.example.com")
        template = Template(
            ROOT / "infra/main.bicep",
            GIVEN | {"alwaysReadyInstances": 1, "serviceSettings": given},
        )
        assert ready(template) == way_of_an_order(there)


def test_embedded_settings_are_read_too(functions):
    """What the embedded stack sets is read by the app, by a trigger or by the host."""
    read = ALL | {"AzureWebJobsStorage", "LOCAL_FUNCTION_KEY"}
    assert set(app_settings(Ports(), "", "", AGENTS)) <= read
    connections = {each["connection"] for each in functions.values() if "connection" in each}
    assert connections <= read


def test_the_platform_takes_no_larger_body_than_the_app(deployed):
    """What the app would refuse never reaches its memory."""
    [settings] = [each.properties for each in deployed.resources if each.name == "appsettings"]
    assert int(settings["FUNCTIONS_REQUEST_BODY_SIZE_LIMIT"]) == MAX_BODY_BYTES


def test_the_console_finds_the_log_of_an_order_in_the_portal(deployed):
    """By the query that the portal puts into a link of its own, in the resource that has the log."""
    [settings] = [each.properties for each in deployed.resources if each.name == "appsettings"]
    [insights] = [each for each in deployed.resources if each.type.endswith("/components")]
    link = unquote(settings["LOG_LINK"])
    assert link.startswith("https://portal.azure.com/#view/")
    assert f"/resourceId/{insights.id}/source/" in link
    assert '/query/traces | where message has "{orderId}" | order by' in link
    assert "{orderId}" in settings["LOG_LINK"]
    assert set(settings["LOG_LINK"]).isdisjoint(' "|')
