"""Every setting that the app reads is set, and what the templates name exists."""

import json
from urllib.parse import unquote

import pytest
from pydantic_core import PydanticUndefined

from development.servicebus_config import ROOT, agents_file, config, queues
from development.settings import app_settings
from engine.azure.settings import Settings
from engine.domain.messages import DEAD_LETTERS
from engine.http.responses import MAX_BODY_BYTES
from functions_alone.ports import Ports
from tests.support.deployed_resources import declared
from tests.support.deploying import ADDRESSES, AGENTS, SETTINGS

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
EMBEDDED = {"LOCAL_SLOWDOWN_FILE"}
"""Set by `make run` alone."""
CHANNELS = {
    "MAIL_ENDPOINT", "MAIL_SENDER", "ALERT_RECIPIENTS", "TEAMS_WEBHOOK_URL", "SLACK_WEBHOOK_URL",
    "SMTP_URL", "SMTP_SENDER",
}  # fmt: skip
"""They are set where a channel to people is on, which none is in these sets: test_bicep.py."""
OF_APP = {field.alias for field in Settings.model_fields.values() if field.alias}
ALL = OF_APP | set(SETTINGS)
"""What the app reads, for itself and for its agents."""


def test_service_bus_queues_have_the_properties_of_the_file(deployed):
    """What the files say of a queue reaches Azure, whatever it is."""
    provisioned = {queue.name: queue.properties for queue in deployed.of_type("namespaces/queues")}
    for queue in queues()["serviceBusQueues"]:
        wanted = {name: value for name, value in queue.items() if name != "name"}
        assert {name: provisioned[queue["name"]].get(name) for name in wanted} == wanted


def test_what_service_bus_gives_up_comes_to_the_one_function_that_keeps_it(
    deployed, functions, template
):
    """From each queue that the app receives from; what expires there is given up too, and is never lost.

    The queue has to be there before any can forward to it. It forwards nothing, so what fails in it stays.
    """
    queues = deployed.of_type("namespaces/queues")
    forwards = {
        queue.name: queue.properties.get("forwardDeadLetteredMessagesTo") for queue in queues
    }
    received = {
        function["queueName"]
        for function in functions.values()
        if function["type"] == "serviceBusTrigger"
    }
    assert {name for name, to in forwards.items() if to == DEAD_LETTERS} == received - {
        DEAD_LETTERS
    }
    assert {to for to in forwards.values() if to} == {DEAD_LETTERS}
    assert functions["given_up_dead_letters"]["queueName"] == DEAD_LETTERS
    [last] = [queue for queue in queues if queue.name == DEAD_LETTERS]
    assert last.properties["deadLetteringOnMessageExpiration"] is True
    [forwarding] = [
        resource
        for resource in declared(template)
        if resource.copy.get("name") == "queues" and resource.module == "service-bus"
    ]
    assert any("variables('deadLetterName')" in dependency for dependency in forwarding.depends_on)


def test_the_embedded_broker_and_the_emulator_forward_what_azure_forwards(deployed):
    """Each queue to the same one, or to none."""
    [namespace] = config()["UserConfig"]["Namespaces"]
    here = {
        queue["Name"]: queue["Properties"]["ForwardDeadLetteredMessagesTo"] or None
        for queue in namespace["Queues"]
    }
    there = {
        queue.name: queue.properties.get("forwardDeadLetteredMessagesTo")
        for queue in deployed.of_type("namespaces/queues")
    }
    assert here == there


def test_event_grid_delivers_to_the_queue_that_the_app_reads(deployed, functions):
    """Alerts come back to the function that records them."""
    subscription = deployed.one("topics/eventSubscriptions")
    destination = subscription.properties["deliveryWithResourceIdentity"]["destination"][
        "properties"
    ]
    assert destination["queueName"] == functions["alerts_record"]["queueName"]
    assert destination["queueMessageTimeToLiveInSeconds"] == -1


@pytest.mark.proves("WRK-5")
def test_every_setting_is_set_and_read(deployed):
    """What the app reads for itself is set in Azure, but for the keys; what is set is read by the app or by the platform.

    Of the agents it sets the addresses of simulated services; whoever deploys gives the others.
    """
    settings = deployed.settings
    with_sign_in = {SIGN_IN} if "operatorSignInClientId" in deployed.parameters else set()
    played = set(ADDRESSES) if deployed.is_simulated else set()
    assert set(settings) == (OF_APP - KEYS - CHANNELS - EMBEDDED) | played | PLATFORM | with_sign_in


def test_every_setting_of_a_service_can_be_given():
    """Its address, and whatever it is shown: the hook puts them together, and azd passes them to the template.

    If there is nothing to pass, or an empty secret in a workflow, the template takes its default.
    """
    parameters = json.loads((ROOT / "infra/main.parameters.json").read_text())["parameters"]
    assert parameters["serviceSettings"]["value"] == "${SERVICE_SETTINGS=null}"
    declared_names = [setting["name"] for setting in agents_file()["settings"]]
    assert set(ADDRESSES) <= set(declared_names)
    assert declared_names == list(SETTINGS)


USUAL = {
    "STEP_TIMEOUT_SECONDS": "60",
    "FAILURE_THRESHOLD": "3",
    "COOLDOWN_SECONDS": "600",
    "MAX_RETRY_PAUSE_SECONDS": "300",
    "MAX_UNBEGUN_ATTEMPTS": "12",
    "CLOCK_TOLERANCE_SECONDS": "2",
    "LEASE_SECONDS": "30",
    "BUCKETS": "8",
    "REMOTE_CALL_TIMEOUT_SECONDS": "10",
    "REPLY_MARGIN_SECONDS": "1",
    "CALLS_IN_FLIGHT": "{}",
    "MAX_CONCURRENT_CALLS": "100",
    "CIRCUIT_ORDERS": "10",
    "CIRCUIT_OPEN_SECONDS": "30",
    "LONGEST_RETRY_AFTER_SECONDS": "600",
    "UNKNOWN_NAME_MAX_DELIVERIES": "24",
    "MIXED_VERSION_SECONDS": "86400",
    "NOTICE_TRIES": "8",
    "MAX_SILENCE_SECONDS": "3600",
    "PENDING_ALERT_SECONDS": "900",
    "SWEEP_ALERT_SECONDS": "300",
    "PUBLIC_CALLS_PER_MINUTE": "300",
    "TRUSTED_PROXIES": "",
    "ALERT_INTERVAL_SECONDS": "600",
    "ALERT_OPERATIONS_PER_SECOND": "50",
    "ALERT_RULES": "[]",
    "REPLY_TO_PREFIX": "status-",
    "OPERATOR_SIGN_IN": "False",
    "OPERATOR_ROLE": "",
    "LOG_LINK": "",
    "RUNBOOK_URL": "",
    "APP_LANGUAGE": "en",
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
        name: ", ".join(default) if isinstance(default, tuple) else str(default)
        for name, default in defaults.items()
        if default not in unset
    } == USUAL
    settings = deployed.settings
    in_azure = {name: settings[name] for name in USUAL}
    assert in_azure == USUAL | OF_AZURE | {name: settings[name] for name in CHOSEN}


def test_the_host_finds_its_storage_by_address_and_by_name(deployed):
    """By its address alone it was seen to fail at its start: Azure/azure-functions-host, issue 11787 (deployment.md 4)."""
    settings = deployed.settings
    account = deployed.one("storageAccounts", "sthost")
    assert settings["AzureWebJobsStorage__accountName"] == account.name
    address = f"<{account.id}.primaryEndpoints.blob>"
    assert settings["AzureWebJobsStorage__blobServiceUri"] == address


def test_the_host_in_azure_asks_its_queues_once_a_second(deployed):
    """Ten times as seldom as here, for each look is paid; a new order waits for as long at most."""
    settings = deployed.settings
    name = "AzureFunctionsJobHost__extensions__queues__maxPollingInterval"
    assert settings[name] == "00:00:01"


def test_the_app_accepts_its_settings(deployed, monkeypatch):
    """The app starts with what Azure sets; simulated services need nothing else, and others what their agents read."""
    settings = deployed.settings
    for name in ALL:
        monkeypatch.delenv(name, raising=False)
    played = deployed.is_simulated
    given = dict.fromkeys([] if played else SETTINGS, "https://service.example.com")
    for name, value in (given | settings).items():
        monkeypatch.setenv(name, known(value))
    read = Settings.read(AGENTS)
    assert read.state_storage is None
    assert read.simulator_enabled is played


RESOLVED = {
    "TEAMS_WEBHOOK_URL": "https://teams.example.com/run?sig=secret",
    "SLACK_WEBHOOK_URL": "https://slack.example.com/services/secret",
    "SMTP_URL": "smtps://user:password@mail.example.com:465",
    "MAIL_SENDER": "DoNotReply@orders.azurecomm.net",
}
"""What the app reads where the template has references to a Key Vault, or what Azure makes."""


def test_the_app_accepts_the_settings_of_channels(deployments, monkeypatch):
    """And sends over each that the template switches on, by the rules that were chosen."""
    deployed = deployments["channels"]
    given = dict.fromkeys(SETTINGS, "https://service.example.com") | deployed.settings | RESOLVED
    for name, value in given.items():
        monkeypatch.setenv(name, known(value))
    read = Settings.read(AGENTS)
    assert set(read.channels.on) == {"mail", "teams", "slack", "smtp"}
    rules = [rule.channel for rule in read.alert_rules]
    assert rules == [rule["channel"] for rule in deployed.option("monitoring", "alertRules")]


def known(value):
    """An address that exists after the deployment only, as some address of that kind."""
    if "<" not in value:
        return value
    return "https://example.com" + value.partition(">")[2]


def ready(deployed):
    """For what instances are kept ready."""
    scale = deployed.site.properties["functionAppConfig"]["scaleAndConcurrency"]
    return sorted(scaled["name"] for scaled in scale["alwaysReady"])


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
    wanted = deployed.option("app", "alwaysReadyInstances")
    assert ready(deployed) == (way_of_an_order(functions) if wanted else [])


def test_nothing_is_kept_ready_for_an_agent_that_is_not_there(
    deployments, functions, required_functions
):
    """It may do without its service, and has no address: an instance for it would be paid for nothing."""
    needed = {agent.address for agent in AGENTS if agent.address and not agent.optional}
    for name, addresses, there in (
        ("restricted", set(ADDRESSES), functions),
        ("vault", needed, required_functions),
    ):
        deployed = deployments[name]
        given = {name for name, value in deployed.parameters["serviceSettings"].items() if value}
        assert (given & set(ADDRESSES), deployed.is_simulated) == (addresses, False)
        assert ready(deployed) == way_of_an_order(there)


def test_embedded_settings_are_read_too(functions):
    """What the embedded stack sets is read by the app, by a trigger or by the host."""
    read = ALL | {"AzureWebJobsStorage", "LOCAL_FUNCTION_KEY"}
    assert set(app_settings(Ports(), "", "", AGENTS)) <= read
    connections = {
        function["connection"] for function in functions.values() if "connection" in function
    }
    assert connections <= read


def test_the_platform_takes_no_larger_body_than_the_app(deployed):
    """What the app would refuse never reaches its memory."""
    settings = deployed.settings
    assert int(settings["FUNCTIONS_REQUEST_BODY_SIZE_LIMIT"]) == MAX_BODY_BYTES


def test_the_console_finds_the_log_of_an_order_in_the_portal(deployed):
    """By the query that the portal puts into a link of its own, in the resource that has the log."""
    settings = deployed.settings
    insights = deployed.one("/components")
    link = unquote(settings["LOG_LINK"])
    assert link.startswith("https://portal.azure.com/#view/")
    assert f"/resourceId/{insights.id}/source/" in link
    assert '/query/traces | where message has "{orderId}" | order by' in link
    assert "{orderId}" in settings["LOG_LINK"]
    assert set(settings["LOG_LINK"]).isdisjoint(' "|')
