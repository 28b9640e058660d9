"""Rules that every template keeps, whatever its parameters."""

import functools
import json
import re
from collections import Counter

import pycep
import pytest
from bicep_model import Template
from bicep_syntax import read
from deploying import AGENTS, GIVEN

from bench.concurrency import chosen
from development.servicebus_config import ROOT

INFRA = ROOT / "infra"
FILES = sorted(INFRA.rglob("*.bicep"))
UNTAGGED = (
    "Microsoft.Authorization/",
    "Microsoft.Insights/diagnosticSettings",
    "Microsoft.Network/virtualNetworks/subnets",
    "Microsoft.Web/sites/",
)
"""Types that have no tags, besides parts of a tagged resource."""
PREFIXES = {
    "Microsoft.Resources/resourceGroups": "rg-", "Microsoft.ManagedIdentity/userAssignedIdentities": "id-",
    "Microsoft.Storage/storageAccounts": "st", "Microsoft.ServiceBus/namespaces": "sb-",
    "Microsoft.EventGrid/topics": "evgt-", "Microsoft.Web/serverfarms": "plan-", "Microsoft.Web/sites": "func-",
    "Microsoft.OperationalInsights/workspaces": "log-", "Microsoft.Insights/components": "appi-",
    "Microsoft.Insights/actionGroups": "ag-", "Microsoft.Network/virtualNetworks": "vnet-",
    "Microsoft.Network/privateEndpoints": "pep-", "Microsoft.KeyVault/vaults": "kv-",
}  # fmt: skip
"""Azure's own recommended abbreviations."""
NOT_ON_FLEX = {
    "ftpsState", "linuxFxVersion", "netFrameworkVersion", "use32BitWorkerProcess", "preWarmedInstanceCount",
    "functionsRuntimeScaleMonitoringEnabled",
}  # fmt: skip
"""Properties of `siteConfig` that other plans have."""
TABLE_SERVICE = "Microsoft.Storage/storageAccounts/tableServices"
QUERY_RULES = "Microsoft.Insights/scheduledQueryRules"
SECRETS = re.compile(
    r"listKeys|listAccountSas|listSecrets|AccountKey|SharedAccessKey", re.IGNORECASE
)


def of_type(template, kind):
    return [each for each in template.resources if each.type == kind]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_two_parsers_read_the_same(path):
    """pycep-parser takes the file too, and finds the same declarations: none is nested, where it would be lost."""
    theirs = pycep.BicepParser().parse(text=path.read_text())
    ours = read(path)
    plural = {
        "param": "parameters",
        "var": "variables",
        "resource": "resources",
        "module": "modules",
    }
    for kind, section in plural.items():
        assert set(theirs.get(section, {})) == {each.name for each in ours if each.kind == kind}
    assert set(theirs.get("outputs", {})) == {each.name for each in ours if each.kind == "output"}
    assert not re.search(r"^[ \t]+resource ", path.read_text(), re.MULTILINE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_nothing_is_declared_in_vain(path):
    """Every parameter and variable is used in its file, and every output of a module by the main template."""
    text, main = path.read_text(), (INFRA / "main.bicep").read_text()
    for each in read(path):
        if each.kind in ("param", "var"):
            assert len(re.findall(rf"\b{each.name}\b", text)) > 1, each.name
        if each.kind == "output" and path.name != "main.bicep":
            assert f".outputs.{each.name}" in main, each.name


def test_every_file_is_used():
    """Each module is deployed by some other file."""
    used = {
        each.detail.rpartition("/")[2]
        for path in FILES
        for each in read(path)
        if each.kind == "module"
    }
    assert {path.name for path in FILES} - used == {"main.bicep"}


def test_no_secret_is_read_or_passed():
    """No template asks for a key; what may be one (settings of services, addresses of webhooks) no deployment shows."""
    for path in FILES:
        assert not SECRETS.search(path.read_text()), path
        for each in (each for each in read(path) if each.kind == "param"):
            secrets = {"serviceSettings", "operatorWebhooks"}
            assert ("secure" in each.decorators) == (each.name in secrets), path


def test_settings_of_services_reach_the_app_as_they_are():
    """Those without a value are left out; a reference to Key Vault is resolved as the app's own identity."""
    reference = "@Microsoft.KeyVault(SecretUri=https://vault.example.com/secrets/key)"
    given = {"PAYMENT_URL": "https://pay", "PAYMENT_KEY": reference, "SHIPPING_URL_SCOPE": ""}
    template = Template(INFRA / "main.bicep", GIVEN | {"serviceSettings": given})
    [settings] = [each.properties for each in template.resources if each.name == "appsettings"]
    assert given.items() - settings.items() == {("SHIPPING_URL_SCOPE", "")}
    assert "SHIPPING_URL_SCOPE" not in settings
    [site] = of_type(template, "Microsoft.Web/sites")
    assert site.properties["keyVaultReferenceIdentity"] == settings_identity(site)


def roles_on(template, principal):
    """The names of the roles of a principal, by the type of what they are on."""
    names = {role: name for name, role in MICROSOFTS.items()}
    found = {}
    for each in of_type(template, "Microsoft.Authorization/roleAssignments"):
        if principal in str(each.properties["principalId"]):
            role = names[each.properties["roleDefinitionId"].rpartition("/")[2]]
            found.setdefault(each.scope.type, set()).add(role)
    return found


@pytest.mark.parametrize("isolated", [False, True])
def test_a_vault_holds_what_services_ask_for_and_the_app_may_read_it(isolated):
    """As the identity that resolves the references; by roles alone, and with isolation over a private endpoint."""
    given = {"keyVault": True, "networkIsolation": isolated}
    template = whole(**given)
    [vault] = of_type(template, "Microsoft.KeyVault/vaults")
    assert vault.properties["enableRbacAuthorization"] is True
    assert vault.properties["publicNetworkAccess"] == ("Disabled" if isolated else "Enabled")
    assert 3 <= len(vault.name) <= 24
    assert vault.config["tags"]["azd-env-name"] == "test"
    assert roles_on(template, "/id-app-")[vault.type] == {"keyVaultSecretsUser"}
    endpoints = [
        each.properties["privateLinkServiceConnections"][0]["properties"]["groupIds"]
        for each in of_type(template, "Microsoft.Network/privateEndpoints")
    ]
    assert (["vault"] in endpoints) == isolated
    assert of_type(whole(networkIsolation=isolated), vault.type) == []


@pytest.mark.parametrize("vault", [False, True])
def test_a_developer_may_do_what_the_app_does_if_that_is_wanted(vault):
    """To run it on a machine of their own, on the data in Azure; and may put secrets into the vault, if there is one."""
    template = whole(developerPrincipalId="a-person", keyVault=vault)
    wanted = {
        "Microsoft.Storage/storageAccounts": {
            "storageTableDataContributor",
            "storageQueueDataContributor",
            "storageBlobDataContributor",
        },
        "Microsoft.ServiceBus/namespaces": {"serviceBusDataSender", "serviceBusDataReceiver"},
        "Microsoft.EventGrid/topics": {"eventGridDataSender"},
    }
    of_vault = {"Microsoft.KeyVault/vaults": {"keyVaultSecretsOfficer"}} if vault else {}
    assert roles_on(template, "a-person") == wanted | of_vault
    assert roles_on(whole(keyVault=vault), "a-person") == {}


def settings_identity(site):
    """The identity as which the app calls everything, but for the one that fetches its package."""
    packages = site.properties["functionAppConfig"]["deployment"]["storage"]["authentication"]
    [identity] = set(site.config["identity"]["userAssignedIdentities"]) - {
        str(packages["userAssignedIdentityResourceId"])
    }
    return identity


def test_simulated_services_are_at_the_address_of_the_app():
    """Whatever address is given: an agent that is forgotten here would call a real service."""
    given = dict.fromkeys((agent.address for agent in AGENTS), "https://service.example.com")
    template = Template(
        INFRA / "main.bicep", GIVEN | {"simulatedServices": True, "serviceSettings": given}
    )
    [settings] = [each.properties for each in template.resources if each.name == "appsettings"]
    [site] = of_type(template, "Microsoft.Web/sites")
    for agent in AGENTS:
        address = f"https://<{site.id}.properties.defaultHostName>/simulator/{agent.name}"
        assert settings[agent.address] == address


def test_every_parameter_is_described_and_can_be_set():
    """Each has a description, and azd passes each; those that have no default are asked for or are always there."""
    parameters = {each.name: each for each in read(INFRA / "main.bicep") if each.kind == "param"}
    assert [name for name, each in parameters.items() if "description" not in each.decorators] == []
    passed = json.loads((INFRA / "main.parameters.json").read_text())["parameters"]
    assert set(passed) == set(parameters)
    required = {name for name, each in parameters.items() if each.value is None}
    assert required == set(GIVEN)
    for name, each in passed.items():
        for value in values_of(each):
            assert re.fullmatch(r"\$\{[A-Z0-9_]+(=[\w.-]*)?\}", value)
            assert ("=" in value) == (name not in required)


def values_of(parameter):
    """What azd passes for a parameter: one text, or those of an object."""
    value = parameter["value"]
    return [value] if isinstance(value, str) else list(value.values())


def test_defaults_of_azd_are_those_of_the_template():
    """Who sets nothing gets the same from both; an object has nothing in it."""
    parameters = {each.name: each for each in read(INFRA / "main.bicep") if each.kind == "param"}
    passed = json.loads((INFRA / "main.parameters.json").read_text())["parameters"]
    for name, each in passed.items():
        if name not in GIVEN and each["value"] != {}:
            default = parameters[name].value[1]
            text = str(default).lower() if isinstance(default, bool) else str(default or "")
            text = "0" if default == 0 and not isinstance(default, bool) else text
            assert {value.partition("=")[2].rstrip("}") for value in values_of(each)} == {text}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("environmentName", ""), ("environmentName", "x" * 41), ("operatorEmail", ""), ("redundancy", "local"),
        ("alwaysReadyInstances", -1), ("maximumInstances", 0), ("httpConcurrency", 0), ("updateStrategy", "Slots"), ("instanceMemoryMB", 1024), ("sweepMissingMinutes", 7),
        ("networkIsolation", "yes"), ("location", ""), ("pythonVersion", "3.9"), ("monthlyBudget", -1),
    ],
)  # fmt: skip
def test_wrong_parameters_are_refused(name, value):
    """Before anything is deployed."""
    with pytest.raises(ValueError, match=name):
        Template(INFRA / "main.bicep", GIVEN | {name: value})


def test_keys_are_off(deployed):
    """Nobody gets in with a key, a password or over plain HTTP; blobs are never public."""
    for account in of_type(deployed, "Microsoft.Storage/storageAccounts"):
        assert account.properties["allowSharedKeyAccess"] is False
        assert account.properties["allowBlobPublicAccess"] is False
        assert account.properties["supportsHttpsTrafficOnly"] is True
        assert account.properties["minimumTlsVersion"] == "TLS1_2"
    for each in of_type(deployed, "Microsoft.Insights/components"):
        assert each.properties["DisableLocalAuth"] is True
    local = ("ServiceBus/namespaces", "EventGrid/topics", "DocumentDB/databaseAccounts")
    for each in (each for each in deployed.resources if each.type.endswith(local)):
        assert each.properties["disableLocalAuth"] is True
    [site] = of_type(deployed, "Microsoft.Web/sites")
    assert site.properties["httpsOnly"] is True
    passwords = of_type(deployed, "Microsoft.Web/sites/basicPublishingCredentialsPolicies")
    assert {each.name: each.properties["allow"] for each in passwords} == {
        "ftp": False,
        "scm": False,
    }
    packages = site.properties["functionAppConfig"]["deployment"]["storage"]["authentication"]
    assert packages["type"] == "UserAssignedIdentity"
    assert (
        site.properties["siteConfig"]["minTlsVersion"]
        == site.properties["siteConfig"]["scmMinTlsVersion"]
        == "1.2"
    )


OPEN, CLOSED = "AzureServices", "None"
KEPT = {
    ("storageAccounts", "ststate"): {
        "networkAcls.bypass": OPEN,  # or Event Grid delivers no alert (MicrosoftDocs/azure-docs issue 105746)
        "allowCrossTenantReplication": False,
        "defaultToOAuthAuthentication": True,
    },
    ("storageAccounts", "sthost"): {"networkAcls.bypass": CLOSED, "allowCrossTenantReplication": False},
    ("storageAccounts", "stpack"): {"networkAcls.bypass": CLOSED, "allowCrossTenantReplication": False},
    ("namespaces", "sb-"): {"minimumTlsVersion": "1.2"},
    ("topics", "evgt-"): {
        "inputSchema": "CloudEventSchemaV1_0",  # what the relay sends; another one is refused
        "minimumTlsVersionAllowed": "1.2",
    },
    ("eventSubscriptions", "operator-alerts"): {
        "eventDeliverySchema": "CloudEventSchemaV1_0",  # what `alerts_record` reads
        "retryPolicy.maxDeliveryAttempts": 30,
        "retryPolicy.eventTimeToLiveInMinutes": 24 * 60,
    },
    ("workspaces", "log-"): {"features.disableLocalAuth": True},
    ("config", "authsettingsV2"): {
        "platform.enabled": True,
        "globalValidation.unauthenticatedClientAction": "RedirectToLoginPage",
        "globalValidation.redirectToProvider": "azureactivedirectory",
        "httpSettings.requireHttps": True,
        "identityProviders.azureActiveDirectory.registration.clientId": "an-id",
        "identityProviders.azureActiveDirectory.registration.openIdIssuer": (
            "https://login.microsoftonline.com/<tenant>/v2.0"  # `common` would let in everybody of Azure
        ),
        "identityProviders.azureActiveDirectory.registration.clientSecretSettingName": (
            "OVERRIDE_USE_MI_FIC_ASSERTION_CLIENTID"  # no secret: the app's identity vouches
        ),
        "identityProviders.azureActiveDirectory.validation.allowedAudiences": ["api://an-id"],
        "login.tokenStore.enabled": False,
    },
    ("subnets", "app"): {"delegations.0.properties.serviceName": "Microsoft.App/environments"},
}  # fmt: skip
"""What deploys with another value too, and then does not work, or lets in whom it should not; by type and name."""


@pytest.mark.parametrize(("kind", "name"), KEPT)
def test_what_would_deploy_and_be_wrong_is_as_it_is_written_here(kind, name):
    """Nothing else here would notice a change of these."""
    template = whole(networkIsolation=True, operatorSignInClientId="an-id")
    [found] = [
        each.properties
        for each in template.resources
        if each.type.endswith(f"/{kind}") and each.name.startswith(name)
    ]
    assert {path: at(found, path) for path in KEPT[kind, name]} == KEPT[kind, name]


def at(properties, path):
    """The value at a path, whose parts are names or places in a list."""
    for part in path.split("."):
        properties = properties[int(part) if part.isdigit() else part]
    return properties


def test_the_app_is_on_the_plan_that_the_docs_are_about(deployed):
    """Flex Consumption; another one would take the properties of this one for none."""
    [plan] = of_type(deployed, "Microsoft.Web/serverfarms")
    assert plan.config["sku"] == {"name": "FC1", "tier": "FlexConsumption"}
    [site] = of_type(deployed, "Microsoft.Web/sites")
    assert (site.config["kind"], plan.properties["reserved"]) == ("functionapp,linux", True)


def test_the_site_names_nothing_that_flex_consumption_refuses(deployed):
    """Resource Manager rejects the whole deployment otherwise (51021)."""
    [site] = of_type(deployed, "Microsoft.Web/sites")
    assert NOT_ON_FLEX.isdisjoint(site.properties["siteConfig"])


def test_no_setting_is_a_secret(deployed):
    """Every connection goes by identity."""
    [settings] = [each.properties for each in deployed.resources if each.name == "appsettings"]
    assert [
        name
        for name, value in settings.items()
        if re.search(r"key|secret|password", f"{name}={value}", re.IGNORECASE)
    ] == []
    for connection in ("AzureWebJobsStorage", "StateStorage", "ServiceBus"):
        assert settings[f"{connection}__credential"] == "managedidentity"
        assert "userAssignedIdentities" in str(settings[f"{connection}__clientId"])
    telemetry = settings["APPLICATIONINSIGHTS_AUTHENTICATION_STRING"]
    assert re.fullmatch(r"ClientId=<.*>;Authorization=AAD", telemetry)  # else nothing is logged


def test_everything_is_tagged_and_named_as_usual(deployed):
    """azd finds its resources by tag, people by name."""
    for each in deployed.resources:
        if not each.parent and not each.type.startswith(UNTAGGED):
            assert each.config["tags"]["azd-env-name"] == "test", each
        if each.type in PREFIXES:
            assert each.name.startswith(PREFIXES[each.type]), each
    for account in of_type(deployed, "Microsoft.Storage/storageAccounts"):
        assert re.fullmatch(r"[a-z0-9]{3,24}", account.name)


def test_one_api_version_for_each_type():
    """The same resource is never described in two versions."""
    versions = {}
    for path in FILES:
        for each in read(path):
            if each.kind == "resource":
                kind, _, version = each.detail.partition("@")
                versions.setdefault(kind.split("/")[0] if "Storage" in kind else kind, set()).add(
                    version
                )
    assert {kind: found for kind, found in versions.items() if len(found) > 1} == {}


def test_isolation_leaves_no_public_door(deployed):
    """With it every service has a private endpoint and shuts its public one; without it there is no network at all."""
    endpoints = Counter(
        each.properties["privateLinkServiceConnections"][0]["properties"]["privateLinkServiceId"]
        for each in of_type(deployed, "Microsoft.Network/privateEndpoints")
    )
    [site] = of_type(deployed, "Microsoft.Web/sites")
    isolated = bool(deployed.given.get("networkIsolation"))
    assert bool(site.properties["virtualNetworkSubnetId"]) == isolated
    kinds = (
        "Storage/storageAccounts",
        "ServiceBus/namespaces",
        "EventGrid/topics",
        "DocumentDB/databaseAccounts",
    )
    for each in (each for each in deployed.resources if each.type.endswith(kinds)):
        assert bool(endpoints[each.id]) == isolated, each
        closed = each.properties["publicNetworkAccess"] == "Disabled"
        denied = each.properties.get("networkAcls", {}).get("defaultAction") == "Deny"
        assert (closed or denied) == isolated, each
    [bus] = of_type(deployed, "Microsoft.ServiceBus/namespaces")
    assert bus.config["sku"]["name"] == ("Premium" if isolated else "Standard")


def test_private_endpoints_are_made_one_after_another():
    """Azure refuses two at the same time on one account."""
    [loop] = [
        each for each in read(INFRA / "modules/private-endpoints.bicep") if each.kind == "module"
    ]
    assert loop.decorators["batchSize"] == ("value", 1)
    uses = [path.name for path in FILES if "'private-endpoint.bicep'" in path.read_text()]
    assert uses == ["private-endpoints.bicep"]


ZONE_OF = {
    "blob": "privatelink.blob.core.windows.net",
    "queue": "privatelink.queue.core.windows.net",
    "table": "privatelink.table.core.windows.net",
    "namespace": "privatelink.servicebus.windows.net",
    "topic": "privatelink.eventgrid.azure.net",
    "vault": "privatelink.vaultcore.azure.net",
}
"""By what an endpoint leads to: learn.microsoft.com/azure/private-link/private-endpoint-dns."""


def test_private_endpoints_resolve_to_zones_that_exist(deployed):
    """Each has its name in its zone, which is linked to the network; the vault's too, if there is one."""
    for template in (deployed, whole(networkIsolation=True, keyVault=True)):
        zones = {each.id for each in of_type(template, "Microsoft.Network/privateDnsZones")}
        linked = {
            each.parent.id
            for each in of_type(template, "Microsoft.Network/privateDnsZones/virtualNetworkLinks")
        }
        assert linked == zones
        groups = of_type(template, "Microsoft.Network/privateEndpoints/privateDnsZoneGroups")
        assert len(groups) == len(of_type(template, "Microsoft.Network/privateEndpoints"))
        for each in groups:
            [zone] = each.properties["privateDnsZoneConfigs"]
            [to] = each.parent.properties["privateLinkServiceConnections"][0]["properties"][
                "groupIds"
            ]
            assert zone["properties"]["privateDnsZoneId"] in zones
            assert zone["properties"]["privateDnsZoneId"].endswith(f"/{ZONE_OF[to]}")


@pytest.mark.proves("WRK-4")
@pytest.mark.parametrize(
    ("redundancy", "sku"),
    [("zone", "Standard_ZRS"), ("geo", "Standard_GRS"), ("geo-zone", "Standard_GZRS")],
)
def test_state_is_as_redundant_as_asked(redundancy, sku):
    """The account of the orders; the host's own has zones, but where a region may have none."""
    template = Template(INFRA / "main.bicep", GIVEN | {"redundancy": redundancy})
    accounts = of_type(template, "Microsoft.Storage/storageAccounts")
    skus = {each.name.startswith("ststate"): each.config["sku"]["name"] for each in accounts}
    assert skus == {True: sku, False: "Standard_LRS" if redundancy == "geo" else "Standard_ZRS"}


def test_what_has_the_orders_cannot_be_deleted_by_mistake_if_that_is_wanted():
    """The account of the tables and queues; not so unless asked, for `azd down` would fail."""
    [lock] = of_type(whole(lockState=True), "Microsoft.Authorization/locks")
    assert lock.properties["level"] == "CanNotDelete"
    assert lock.scope.name.startswith("ststate")
    assert of_type(whole(), "Microsoft.Authorization/locks") == []


def test_event_grid_is_asked_to_deliver_when_its_roles_are_known():
    """They take minutes to be known, and Event Grid refuses a subscription until then: so that one is made last."""
    statements = {each.name: each for each in read(INFRA / "main.bicep")}
    after = {key[1]: value for key, value in statements["eventSubscription"].value[1]}["dependsOn"]
    assert after == ("array", [("name", "app"), ("name", "alerts")])
    given_early = [
        each.name
        for each in read(INFRA / "modules/event-grid.bicep")
        if "roleAssignments" in each.detail
    ]
    assert {"topicDelivers", "topicKeepsUndelivered"} <= set(given_early)
    assert (
        "eventGrid.outputs"
        in (INFRA / "main.bicep").read_text().partition("module app ")[2].partition("module ")[0]
    )


def test_the_hooks_know_what_azd_has_asked_for():
    """azd keeps an answer to its own question where no hook finds it, but every output (deployment.md 10)."""
    outputs = [each.name for each in read(INFRA / "main.bicep") if each.kind == "output"]
    assert {"OPERATOR_EMAIL", "DEPLOYED_PYTHON_VERSION"} <= set(outputs)


def test_an_instance_takes_many_http_calls_at_a_time(deployed):
    """As many as one core does in time, as `python -m bench.concurrency` has measured it.

    Azure's own number is one for Python, so a page of thirty modules would start as many instances.
    learn.microsoft.com/azure/azure-functions/functions-concurrency, "HTTP trigger concurrency".
    """
    measured = (ROOT / "bench/measured/concurrency/one-core.jsonl").read_text().splitlines()
    scale = functions_of(deployed)["scaleAndConcurrency"]
    number = chosen([json.loads(line) for line in measured])
    assert scale["triggers"] == {"http": {"perInstanceConcurrency": number}}


def functions_of(template):
    """How the app runs and scales."""
    return of_type(template, "Microsoft.Web/sites")[0].properties["functionAppConfig"]


def test_a_new_version_lets_run_what_runs_if_that_is_wanted():
    """The default is the platform's; the other is in preview.

    learn.microsoft.com/azure/azure-functions/flex-consumption-site-updates
    """
    assert functions_of(whole())["siteUpdateStrategy"] == {"type": "Recreate"}
    rolling = functions_of(whole(updateStrategy="RollingUpdate"))["siteUpdateStrategy"]
    assert rolling == {"type": "RollingUpdate"}


@pytest.mark.parametrize("wanted", [False, True])
def test_the_app_is_in_several_zones_if_that_is_wanted(wanted):
    """The state has zones by itself; instances cost as always ready.

    learn.microsoft.com/azure/reliability/reliability-functions
    """
    [plan] = of_type(whole(zoneRedundantApp=wanted), "Microsoft.Web/serverfarms")
    assert plan.properties["zoneRedundant"] is wanted


def test_a_setting_that_is_given_takes_the_place_of_the_templates():
    """Whatever it is: settings are written as a whole, so that one set by hand is gone after the next deployment."""
    given = {"BUCKETS": "32", "AzureWebJobs.supervisor_sweep.Disabled": "true"}
    template = Template(INFRA / "main.bicep", GIVEN | {"appSettings": given})
    [settings] = [each.properties for each in template.resources if each.name == "appsettings"]
    assert given.items() <= settings.items()
    [usual] = [each.properties for each in whole().resources if each.name == "appsettings"]
    assert {name: settings[name] for name in usual} == usual | {"BUCKETS": "32"}


def test_the_length_of_a_queue_is_read_with_a_right_on_the_namespace():
    """On a queue alone it was seen not to be enough: Azure/azure-functions-host, issue 8261."""
    owner = MICROSOFTS["serviceBusDataOwner"]
    scopes = {
        wanted: [
            each.scope.type
            for each in of_type(
                whole(scaleByLength=wanted), "Microsoft.Authorization/roleAssignments"
            )
            if each.properties["roleDefinitionId"].endswith(owner)
        ]
        for wanted in (False, True)
    }
    assert scopes == {False: [], True: ["Microsoft.ServiceBus/namespaces"]}


def test_alerts_go_to_everybody_who_is_named():
    """Each by mail or by a webhook of their own; each under a name of its own."""
    given = {
        "operatorEmail": "ada@example.com, grace@example.com",
        "operatorWebhooks": "https://chat.example.com/one,https://chat.example.com/two",
    }
    template = Template(INFRA / "main.bicep", GIVEN | given)
    [group] = [each.properties for each in of_type(template, "Microsoft.Insights/actionGroups")]
    mails = ["ada@example.com", "grace@example.com"]
    assert [each["emailAddress"] for each in group["emailReceivers"]] == mails
    assert [each["serviceUri"] for each in group["webhookReceivers"]] == given[
        "operatorWebhooks"
    ].split(",")
    receivers = [*group["emailReceivers"], *group["webhookReceivers"]]
    assert len({each["name"] for each in receivers}) == 4
    assert all(each["useCommonAlertSchema"] for each in receivers)


def test_the_log_is_kept_as_long_as_the_docs_say():
    """Each table by itself: Application Insights' have 90 days otherwise, and the access log has the workspace's.

    learn.microsoft.com/azure/azure-monitor/logs/data-retention-configure
    """
    template = whole(logDays=45, accessLogDays=400)
    [workspace] = of_type(template, "Microsoft.OperationalInsights/workspaces")
    assert workspace.properties["retentionInDays"] == 400
    tables = of_type(template, "Microsoft.OperationalInsights/workspaces/tables")
    assert {"AppTraces", "AppRequests", "AppDependencies", "AppExceptions"} <= {
        each.name for each in tables
    }
    for each in tables:
        assert each.properties == {"retentionInDays": 45, "totalRetentionInDays": 45}
    [loop] = [each for each in read(INFRA / "modules/monitoring.bicep") if each.name == "tables"]
    assert loop.decorators["batchSize"] == ("value", 1)


@functools.cache
def whole(**given):
    """What is deployed with these parameters and no others."""
    return Template(INFRA / "main.bicep", GIVEN | given)


def site_config(template):
    """How the site may be reached."""
    return of_type(template, "Microsoft.Web/sites")[0].properties["siteConfig"]


def test_calls_may_be_let_in_through_one_front_door_alone():
    """By Azure's addresses and the id of that one; without it, anybody may call."""
    shut = site_config(whole(frontDoorId="an-id"))
    assert shut["ipSecurityRestrictionsDefaultAction"] == "Deny"
    [rule] = shut["ipSecurityRestrictions"]
    assert (rule["tag"], rule["ipAddress"]) == ("ServiceTag", "AzureFrontDoor.Backend")
    assert rule["headers"] == {"x-azure-fdid": ["an-id"]}
    assert site_config(whole())["ipSecurityRestrictions"] == []
    assert site_config(whole())["ipSecurityRestrictionsDefaultAction"] == "Allow"


def test_new_versions_may_be_let_in_from_one_place_alone():
    """Whoever may call the app may still call it."""
    shut = site_config(whole(deployFrom="203.0.113.7/32"))
    assert shut["scmIpSecurityRestrictionsDefaultAction"] == "Deny"
    assert [rule["ipAddress"] for rule in shut["scmIpSecurityRestrictions"]] == ["203.0.113.7/32"]
    assert shut["ipSecurityRestrictionsDefaultAction"] == "Allow"
    assert site_config(whole())["scmIpSecurityRestrictionsDefaultAction"] == "Allow"


def test_pages_of_other_sites_may_call_if_they_are_listed():
    """None unless told otherwise; and never with what a browser knows of a caller."""
    listed = site_config(whole(corsOrigins="https://tea.example, http://localhost:5173"))["cors"]
    assert listed["allowedOrigins"] == ["https://tea.example", "http://localhost:5173"]
    assert site_config(whole())["cors"]["allowedOrigins"] == []
    assert {
        site_config(each)["cors"]["supportCredentials"]
        for each in (whole(), whole(corsOrigins="*"))
    } == {False}


def test_who_reads_the_orders_is_logged(deployed):
    """On the service of the tables; unless that is not wanted."""
    [log] = of_type(deployed, "Microsoft.Insights/diagnosticSettings")
    assert log.scope.type == TABLE_SERVICE
    categories = {each["category"] for each in log.properties["logs"]}
    assert categories == {"StorageRead", "StorageWrite", "StorageDelete"}
    assert all(each["enabled"] for each in log.properties["logs"])
    assert of_type(whole(accessLog=False), "Microsoft.Insights/diagnosticSettings") == []


def test_finished_orders_are_removed_some_day_unless_somebody_wants_to_keep_them():
    """What anybody can add to must not grow for ever."""
    [settings] = [each.properties for each in whole().resources if each.name == "appsettings"]
    assert settings["RETENTION_DAYS"] == "365"


def test_no_client_can_keep_an_alert_fired_and_so_mute_it():
    """An order of the same cause tells again, and one of another cause by itself; lines are never late for a rule."""
    rules = {
        each.name.rpartition("-")[0]: each.properties for each in of_type(whole(), QUERY_RULES)
    }
    [criterion] = rules["order-events"]["criteria"]["allOf"]
    assert [(each["name"], each["values"]) for each in criterion["dimensions"]] == [
        ("cause", ["*"])
    ]
    assert "| extend cause =" in criterion["query"]
    assert rules["order-events"]["autoMitigate"] is False
    assert all(rule["autoMitigate"] for name, rule in rules.items() if name != "order-events")
    for rule in rules.values():
        assert rule["skipQueryValidation"] is True
        assert rule["evaluationFrequency"] == "PT5M"
        assert rule["windowSize"] in ("PT10M", "PT15M", "PT30M")


MICROSOFTS = {
    "eventGridDataSender": "d5a91429-5739-47e2-a06b-3470a27159e7",
    "keyVaultSecretsOfficer": "b86a8fe4-44ce-4948-aee5-eccb2c155cd7",
    "keyVaultSecretsUser": "4633458b-17de-408a-b874-0445c86b69e6",
    "monitoringMetricsPublisher": "3913510d-42f4-4e42-8a64-420c390055eb",
    "serviceBusDataOwner": "090c5cfd-751d-490a-894a-3ce6f1109419",
    "serviceBusDataReceiver": "4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0",
    "serviceBusDataSender": "69a216fc-b8fb-44d8-bc22-1f3c2cd27a39",
    "storageBlobDataContributor": "ba92f5b4-2d11-453d-a403-e96b0029c9fe",
    "storageBlobDataOwner": "b7e6dc6d-f1e8-4753-8033-0f276bb0955b",
    "storageQueueDataContributor": "974c5e8b-45b9-4653-ba55-5f855dd0fb88",
    "storageQueueDataMessageSender": "c6a89b2d-59bc-44d0-9896-0f6e12d7b80a",
    "storageTableDataContributor": "0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3",
}
"""Built-in roles, by Microsoft's list: learn.microsoft.com/azure/role-based-access-control/built-in-roles."""


def test_each_role_is_the_one_that_it_is_called():
    """An id says nothing to a reader: with another one the templates deploy, and the right is missing."""
    assert json.loads((INFRA / "roles.json").read_text()) == MICROSOFTS


def test_warnings_of_bicep_are_errors():
    """Of the linter by its configuration; of the compiler, which has no such setting, by the workflow."""
    rules = json.loads((INFRA / "bicepconfig.json").read_text())["analyzers"]["core"]["rules"]
    assert {rule["level"] for rule in rules.values()} == {"error"}
    assert "! grep ' : Warning ' said" in (ROOT / ".github/workflows/checks.yml").read_text()


@pytest.mark.proves("OPR-5")
def test_sign_in_leaves_open_what_needs_no_key(functions):
    """With sign-in for operators, exactly the routes that anybody may call are left out of it, but for the console.

    Its page holds nothing, but a browser that opens it is sent to sign in, and its calls are let through from then on.
    """
    template = Template(
        INFRA / "main.bicep", GIVEN | {"operatorSignInClientId": "an-id", "simulatedServices": True}
    )
    [sign_in] = [each.properties for each in template.resources if each.name == "authsettingsV2"]
    assert sign_in["globalValidation"]["requireAuthentication"] is True
    open_paths = [path.replace("*", ".*") for path in sign_in["globalValidation"]["excludedPaths"]]
    for name, trigger in functions.items():
        if trigger["type"] == "httpTrigger" and not name.startswith("simulator_"):
            route = re.sub(r"\{[^}]*\?\}", "", trigger["route"])
            is_open = any(re.fullmatch(path, f"/{route}") for path in open_paths)
            anybody = "anonymous" in trigger["authLevel"].lower() and name != "web_console"
            assert is_open == anybody, name
    for place, expected in (
        ("/api/workflows/claim", True),
        ("/api/operator/workflows/claim", False),
    ):
        is_open = any(re.fullmatch(path, f"{place}/orders") for path in open_paths)
        assert is_open == expected, place


@pytest.mark.proves("OPR-10")
@pytest.mark.parametrize(("client", "believed"), [("", "false"), ("an-id", "true")])
def test_the_app_believes_who_signed_in_where_the_platform_asks_and_only_there(client, believed):
    """Both follow from one parameter: without a sign-in anybody could send the headers that it sets."""
    template = whole(operatorSignInClientId=client, operatorRole="operator")
    [settings] = [each.properties for each in template.resources if each.name == "appsettings"]
    assert (settings["OPERATOR_SIGN_IN"], settings["OPERATOR_ROLE"]) == (believed, "operator")
    asked = [each for each in template.resources if each.name == "authsettingsV2"]
    assert bool(asked) == bool(client)


def test_alerts_reach_the_operators(deployed):
    """Every rule is on, and sends to the group that has the operators' address."""
    [group] = of_type(deployed, "Microsoft.Insights/actionGroups")
    assert [each["emailAddress"] for each in group.properties["emailReceivers"]] == [
        GIVEN["operatorEmail"]
    ]
    assert group.properties["webhookReceivers"] == []
    rules = of_type(deployed, "Microsoft.Insights/metricAlerts") + of_type(
        deployed, "Microsoft.Insights/scheduledQueryRules"
    )
    assert len(rules) >= 5
    for rule in rules:
        assert rule.properties["enabled"] is True
        assert group.id in json.dumps(rule.properties["actions"])
