"""Rules that the template keeps, whatever its parameters and options."""

import json
import re
from collections import Counter

import pytest

from bench.concurrency import chosen
from development import snapshots
from development.compiler import DEPLOYMENT
from development.parameters import OPTIONS
from development.servicebus_config import ROOT
from tests.support.deployed_resources import (
    ROLE_ASSIGNMENT,
    declared,
    modules,
    type_and_name,
)
from tests.support.deploying import ADDRESSES, AGENTS

INFRA = ROOT / "infra"
UNTAGGED = (
    "Microsoft.Authorization/",
    "Microsoft.Insights/diagnosticSettings",
)
"""Types that have no tags, besides parts of a tagged resource."""
PREFIXES = {
    "Microsoft.Resources/resourceGroups": "rg-", "Microsoft.ManagedIdentity/userAssignedIdentities": "id-",
    "Microsoft.Storage/storageAccounts": "st", "Microsoft.ServiceBus/namespaces": "sb-",
    "Microsoft.EventGrid/topics": "evgt-", "Microsoft.Web/serverfarms": "plan-", "Microsoft.Web/sites": "func-",
    "Microsoft.OperationalInsights/workspaces": "log-", "Microsoft.Insights/components": "appi-",
    "Microsoft.Insights/actionGroups": "ag-", "Microsoft.Network/virtualNetworks": "vnet-",
    "Microsoft.Network/privateEndpoints": "pep-", "Microsoft.KeyVault/vaults": "kv-",
    "Microsoft.Communication/communicationServices": "acs-", "Microsoft.Communication/emailServices": "acs-",
}  # fmt: skip
"""Azure's own recommended abbreviations."""
NAMES = {
    "Microsoft.Authorization/locks": (1, 90, r"[^<>%&\\?/]+"),
    "Microsoft.Communication/communicationServices": (1, 63, r"[A-Za-z0-9-]+"),
    "Microsoft.Communication/emailServices": (1, 63, r"[A-Za-z0-9-]+"),
    "Microsoft.EventGrid/topics": (3, 50, r"[A-Za-z0-9-]+"),
    "Microsoft.EventGrid/topics/eventSubscriptions": (3, 64, r"[A-Za-z0-9-]+"),
    "Microsoft.Insights/actionGroups": (1, 260, r"[^:<>+/&%\\?|]*[^:<>+/&%\\?|. ]"),
    "Microsoft.Insights/components": (1, 260, r"[^%&\\?/]*[^%&\\?/. ]"),
    "Microsoft.Insights/diagnosticSettings": (1, 260, r"[^<>*%&:\\?+/#|]+"),
    "Microsoft.Insights/metricAlerts": (1, 260, r"[^*#&+:<>?@%{}\\/|]*[^*#&+:<>?@%{}\\/|. ]"),
    "Microsoft.Insights/scheduledQueryRules": (1, 260, r"[^*<>%{}&:\\?/#|]*[^*<>%{}&:\\?/#|. ]"),
    "Microsoft.Insights/webtests": (1, 260, r"[^<>%&\\?/]*[^<>%&\\?/. ]"),
    "Microsoft.Insights/workbooks": (36, 36, r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    "Microsoft.KeyVault/vaults": (3, 24, r"(?!.*--)[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]"),
    "Microsoft.ManagedIdentity/userAssignedIdentities": (3, 128, r"[A-Za-z0-9][\w-]*"),
    "Microsoft.Network/privateDnsZones": (1, 63, r"[A-Za-z0-9][\w.-]*"),
    "Microsoft.Network/privateDnsZones/virtualNetworkLinks": (1, 80, r"[A-Za-z0-9][\w.-]*\w"),
    "Microsoft.Network/privateEndpoints": (2, 64, r"[A-Za-z0-9][\w.-]*\w"),
    "Microsoft.Network/privateEndpoints/privateDnsZoneGroups": (1, 80, r"[A-Za-z0-9][\w.-]*\w"),
    "Microsoft.Network/virtualNetworks": (2, 64, r"[A-Za-z0-9][\w.-]*\w"),
    "Microsoft.Network/virtualNetworks/subnets": (1, 80, r"[A-Za-z0-9][A-Za-z0-9.-]*[A-Za-z0-9]"),
    "Microsoft.OperationalInsights/workspaces": (4, 63, r"[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9]"),
    "Microsoft.OperationalInsights/workspaces/tables": (1, 63, r"[A-Za-z]\w*"),
    "Microsoft.Resources/resourceGroups": (1, 90, r"[\w.()-]*[\w()-]"),
    "Microsoft.ServiceBus/namespaces": (6, 50, r"[A-Za-z][A-Za-z0-9-]*(?<!-sb)(?<!-mgmt)(?<!-)"),
    "Microsoft.ServiceBus/namespaces/queues": (1, 260, r"[A-Za-z0-9]([\w./~-]*[A-Za-z0-9])?"),
    "Microsoft.Storage/storageAccounts": (3, 24, r"[a-z0-9]+"),
    "Microsoft.Storage/storageAccounts/blobServices/containers": (3, 63, r"(?!.*--)[a-z0-9][a-z0-9-]*[a-z0-9]"),
    "Microsoft.Storage/storageAccounts/queueServices/queues": (3, 63, r"(?!.*--)[a-z0-9][a-z0-9-]*[a-z0-9]"),
    "Microsoft.Storage/storageAccounts/tableServices/tables": (3, 63, r"(?!tables$)[A-Za-z][A-Za-z0-9]*"),
    "Microsoft.Web/serverfarms": (1, 60, r"[A-Za-z0-9-]+"),
    "Microsoft.Web/sites": (2, 60, r"[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9]"),
}  # fmt: skip
"""The least and most characters of a name, and which: learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules.

A subnet has no underscore, which Flex Consumption refuses.
"""
FIXED_NAMES = {
    "Microsoft.Communication/emailServices/domains": {"AzureManagedDomain"},
    "Microsoft.Storage/storageAccounts/blobServices": {"default"},
    "Microsoft.Storage/storageAccounts/queueServices": {"default"},
    "Microsoft.Storage/storageAccounts/tableServices": {"default"},
    "Microsoft.Web/sites/basicPublishingCredentialsPolicies": {"ftp", "scm"},
    "Microsoft.Web/sites/config": {"appsettings", "authsettingsV2"},
}
"""Parts whose names Azure has chosen."""
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
SECURE = {
    "serviceSettings", "channelSettings", "operatorWebhooks", "teamsWebhookUrl", "slackWebhookUrl", "smtpUrl",
}  # fmt: skip
"""The parameters that may hold a secret."""


def test_every_output_of_a_module_is_used(template):
    """By one of those that deploy the module. The linter finds what else is declared and not used."""
    used = {}
    for outer, name, inner in modules(template):
        text = json.dumps(outer)
        for output in inner.get("outputs", {}):
            place = (json.dumps(inner), output)
            used[place] = used.get(place, False) or f"('{name}').outputs.{output}." in text
    assert len(used) > 20
    assert [output for (_, output), is_used in used.items() if not is_used] == []


def test_every_file_is_used(contents):
    """What lies in these folders is read by the template, or by azd."""
    read = contents[snapshots.SOURCES]["files"]
    found = [
        path.relative_to(ROOT).as_posix()
        for pattern in ("*.bicep", "*.json", "*.kql")
        for path in INFRA.rglob(pattern)
        if path.parent.name != "hooks"
    ]
    assert set(found) - set(read) == {"infra/main.parameters.json"}


def test_no_secret_is_read_or_passed(template):
    """No template asks for a key; what may be one (settings of services, addresses of webhooks) no deployment shows."""
    assert not SECRETS.search(json.dumps(template))
    everywhere = [template, *(inner for _, _, inner in modules(template))]
    for resource in everywhere:
        for name, parameter in resource.get("parameters", {}).items():
            is_secure = parameter.get("type", "").lower().startswith("secure")
            assert is_secure == (name in SECURE), name


def test_settings_of_services_reach_the_app_as_they_are(deployments):
    """Those without a value are left out; a reference to Key Vault is resolved as the app's own identity."""
    deployed = deployments["vault"]
    given = deployed.parameters["serviceSettings"]
    assert given.items() - deployed.settings.items() == {("AN_EMPTY_ONE", "")}
    assert "AN_EMPTY_ONE" not in deployed.settings
    site = deployed.site
    assert site.properties["keyVaultReferenceIdentity"] == settings_identity(site)


def roles_on(deployed, principal):
    """The names of the roles of a principal, by the type of what they are on."""
    names = {role: name for name, role in MICROSOFTS.items()}
    found = {}
    for resource in deployed.of_type(ROLE_ASSIGNMENT):
        if principal in resource.properties["principalId"]:
            role = names[resource.properties["roleDefinitionId"].rpartition("/")[2]]
            kind, _ = type_and_name(resource.scope_id)
            found.setdefault(kind, set()).add(role)
    return found


def test_a_vault_holds_what_services_ask_for_and_the_app_may_read_it(any_deployed):
    """As the identity that resolves the references; by roles alone, and with isolation over a private endpoint."""
    endpoints = [
        resource.properties["privateLinkServiceConnections"][0]["properties"]["groupIds"]
        for resource in any_deployed.of_type("Network/privateEndpoints")
    ]
    if not any_deployed.option("data", "keyVault"):
        assert any_deployed.of_type("KeyVault/vaults") == []
        assert ["vault"] not in endpoints
        return
    vault = any_deployed.one("KeyVault/vaults")
    isolated = any_deployed.is_isolated
    assert vault.properties["enableRbacAuthorization"] is True
    assert vault.properties["publicNetworkAccess"] == ("Disabled" if isolated else "Enabled")
    assert vault.tags["azd-env-name"] == "test"
    assert roles_on(any_deployed, "/id-app-")[vault.type] == {"keyVaultSecretsUser"}
    assert (["vault"] in endpoints) == isolated


def test_a_developer_may_do_what_the_app_does_if_that_is_wanted(any_deployed):
    """To run it on a machine of their own, on the data in Azure; and may put secrets into the vault, if there is one."""
    wanted = {
        "Microsoft.Storage/storageAccounts": {
            "storageTableDataContributor",
            "storageQueueDataContributor",
            "storageBlobDataContributor",
        },
        "Microsoft.ServiceBus/namespaces": {"serviceBusDataSender", "serviceBusDataReceiver"},
        "Microsoft.EventGrid/topics": {"eventGridDataSender"},
    }
    if any_deployed.of_type("KeyVault/vaults"):
        wanted["Microsoft.KeyVault/vaults"] = {"keyVaultSecretsOfficer"}
    is_there = "developerPrincipalId" in any_deployed.parameters
    assert roles_on(any_deployed, snapshots.DEVELOPER) == (wanted if is_there else {})


SERVICE = "Microsoft.Communication/communicationServices"


def test_the_app_may_mail_through_one_service_alone_if_that_is_wanted(any_deployed):
    """The role allows much, so its scope is that service, whose keys are off; without the option there is nothing."""
    wanted = any_deployed.option("monitoring", "mail")
    role = MICROSOFTS["communicationAndEmailServiceOwner"]
    given = [
        (resource.scope_id, resource.properties["principalId"])
        for resource in any_deployed.of_type(ROLE_ASSIGNMENT)
        if resource.properties["roleDefinitionId"].endswith(role)
    ]
    if not wanted:
        found = [
            resource
            for resource in any_deployed.resources
            if "Microsoft.Communication/" in resource.type
        ]
        assert (found, given) == ([], [])
        return
    service, mail = any_deployed.one(SERVICE), any_deployed.one("/emailServices")
    assert [scope for scope, _ in given] == [service.id]
    assert "userAssignedIdentities/id-app-" in given[0][1]
    assert service.properties["disableLocalAuth"] is True
    domain = any_deployed.one("/emailServices/domains")
    assert domain.parent_id == mail.id
    assert service.properties["linkedDomains"] == [domain.id]
    assert domain.properties["domainManagement"] == "AzureManaged"
    kept = any_deployed.option("monitoring", "mailDataLocation")
    assert {resource.properties["dataLocation"] for resource in (service, mail)} == {kept}


CHANNELS = {
    "mail": {"MAIL_ENDPOINT", "MAIL_SENDER", "ALERT_RECIPIENTS"},
    "smtpUrl": {"SMTP_URL", "SMTP_SENDER", "ALERT_RECIPIENTS"},
    "teamsWebhookUrl": {"TEAMS_WEBHOOK_URL"},
    "slackWebhookUrl": {"SLACK_WEBHOOK_URL"},
}
"""The settings that switch on a channel to people, by the option or parameter that sets them."""


def test_a_channel_to_people_has_settings_if_it_is_on(any_deployed):
    """Those of the others are not there, so the app leaves these channels alone."""
    is_on = {name: bool(any_deployed.parameters.get(name)) for name in CHANNELS}
    is_on["mail"] = any_deployed.option("monitoring", "mail")
    wanted = set().union(*(CHANNELS[name] for name, on in is_on.items() if on))
    assert set(any_deployed.settings) & set().union(*CHANNELS.values()) == wanted


def settings_identity(site):
    """The identity as which the app calls everything, but for the one that fetches its package."""
    packages = site.properties["functionAppConfig"]["deployment"]["storage"]["authentication"]
    [identity] = set(site.identity["userAssignedIdentities"]) - {
        packages["userAssignedIdentityResourceId"]
    }
    return identity


def test_simulated_services_are_at_the_address_of_the_app(deployments):
    """Whatever address is given: an agent that is forgotten here would call a real service."""
    deployed = deployments["isolated-vault"]
    host = snapshots.STAND_INS["reference('site').defaultHostName"]
    assert ADDRESSES.keys() <= deployed.parameters["serviceSettings"].keys()
    for agent in AGENTS:
        address = f"https://{host}/simulator/{agent.name}"
        assert deployed.settings[agent.address] == address


def test_every_parameter_is_described_and_can_be_set(template):
    """Each has a description, and azd passes each; those that have no default are asked for or are always there."""
    parameters = template["parameters"]
    described = [name for name, item in parameters.items() if item["metadata"].get("description")]
    assert described == list(parameters)
    passed = json.loads((INFRA / "main.parameters.json").read_text())["parameters"]
    assert set(passed) == set(parameters)
    required = {name for name, item in parameters.items() if "defaultValue" not in item}
    assert required == set(snapshots.REQUIRED)
    for name, item in passed.items():
        assert re.fullmatch(r"\$\{[A-Z0-9_]+(=[\w.-]*)?\}", item["value"])
        assert ("=" in item["value"]) == (name not in required)


def test_every_option_is_described_and_has_a_value(template):
    """Each file has exactly the values of its type."""
    for file, kind in OPTIONS.items():
        properties = template["definitions"][kind]["properties"]
        values = json.loads((INFRA / f"options/{file}.json").read_text())
        assert set(values) == set(properties)
        assert all(item["metadata"]["description"] for item in properties.values())
    assert {path.stem for path in (INFRA / "options").iterdir()} == set(OPTIONS)


def test_defaults_of_azd_are_those_of_the_template(template):
    """Who sets nothing gets the same from both; for an object azd passes nothing."""
    passed = json.loads((INFRA / "main.parameters.json").read_text())["parameters"]
    for name, item in passed.items():
        if name not in snapshots.REQUIRED:
            default = template["parameters"][name]["defaultValue"]
            text = str(default).lower() if isinstance(default, bool) else str(default or "")
            text = "0" if default == 0 and not isinstance(default, bool) else text
            text = "null" if default == {} else text
            assert item["value"].partition("=")[2].rstrip("}") == text


def test_keys_are_off(any_deployed):
    """Nobody gets in with a key, a password or over plain HTTP; blobs are never public."""
    for account in any_deployed.of_type("Microsoft.Storage/storageAccounts"):
        assert account.properties["allowSharedKeyAccess"] is False
        assert account.properties["allowBlobPublicAccess"] is False
        assert account.properties["supportsHttpsTrafficOnly"] is True
        assert account.properties["minimumTlsVersion"] == "TLS1_2"
    assert any_deployed.one("Microsoft.Insights/components").properties["DisableLocalAuth"] is True
    for kind in ("ServiceBus/namespaces", "EventGrid/topics"):
        assert any_deployed.one(kind).properties["disableLocalAuth"] is True
    properties = any_deployed.site.properties
    assert properties["httpsOnly"] is True
    passwords = any_deployed.of_type("sites/basicPublishingCredentialsPolicies")
    assert {resource.name: resource.properties["allow"] for resource in passwords} == {
        "ftp": False,
        "scm": False,
    }
    packages = properties["functionAppConfig"]["deployment"]["storage"]["authentication"]
    assert packages["type"] == "UserAssignedIdentity"
    assert (
        properties["siteConfig"]["minTlsVersion"]
        == properties["siteConfig"]["scmMinTlsVersion"]
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
    ("sites", "func-"): {"siteConfig.scmIpSecurityRestrictionsUseMain": False},  # or `deployFrom` has no effect
    ("config", "authsettingsV2"): {
        "platform.enabled": True,
        "globalValidation.unauthenticatedClientAction": "RedirectToLoginPage",
        "globalValidation.redirectToProvider": "azureactivedirectory",
        "httpSettings.requireHttps": True,
        "identityProviders.azureActiveDirectory.enabled": True,
        "identityProviders.azureActiveDirectory.registration.clientId": snapshots.SIGN_IN,
        "identityProviders.azureActiveDirectory.registration.openIdIssuer": (
            f"https://login.microsoftonline.com/{DEPLOYMENT['tenantId']}/v2.0"  # `common` would let in everybody of Azure
        ),
        "identityProviders.azureActiveDirectory.registration.clientSecretSettingName": (
            "OVERRIDE_USE_MI_FIC_ASSERTION_CLIENTID"  # no secret: the app's identity vouches
        ),
        "identityProviders.azureActiveDirectory.validation.allowedAudiences": [f"api://{snapshots.SIGN_IN}"],
        "login.tokenStore.enabled": False,
    },
    ("subnets", "app"): {"delegations.0.properties.serviceName": "Microsoft.App/environments"},
}  # fmt: skip
"""What deploys with another value too, and then does not work, or lets in whom it should not; by type and name."""


@pytest.mark.parametrize(("kind", "name"), KEPT)
def test_what_would_deploy_and_be_wrong_is_as_it_is_written_here(deployments, kind, name):
    """Nothing else here would notice a change of these."""
    found = deployments["demonstration"].one(f"/{kind}", name).properties
    assert {path: at(found, path) for path in KEPT[kind, name]} == KEPT[kind, name]


def at(properties, path):
    """The value at a path, whose parts are names or places in a list."""
    for part in path.split("."):
        properties = properties[int(part) if part.isdigit() else part]
    return properties


def test_the_site_names_nothing_that_flex_consumption_refuses(any_deployed):
    """Resource Manager rejects the whole deployment otherwise (51021)."""
    assert NOT_ON_FLEX.isdisjoint(any_deployed.site.properties["siteConfig"])


def test_no_setting_is_a_secret(deployed):
    """Every connection goes by identity."""
    settings = deployed.settings
    assert [
        name
        for name, value in settings.items()
        if re.search(r"key|secret|password", f"{name}={value}", re.IGNORECASE)
    ] == []
    for connection in ("AzureWebJobsStorage", "StateStorage", "ServiceBus"):
        assert settings[f"{connection}__credential"] == "managedidentity"
        assert "userAssignedIdentities/id-app-" in settings[f"{connection}__clientId"]
    telemetry = settings["APPLICATIONINSIGHTS_AUTHENTICATION_STRING"]
    assert re.fullmatch(
        r"ClientId=<.*/id-app-\w+\.clientId>;Authorization=AAD", telemetry
    )  # else nothing is logged


def test_everything_is_tagged_and_named_as_usual(any_deployed):
    """azd finds its resources by tag, people by name."""
    for resource in any_deployed.resources:
        if not resource.is_part and not resource.type.startswith(UNTAGGED):
            assert resource.tags["azd-env-name"] == "test", resource
        if resource.type in PREFIXES:
            assert resource.name.startswith(PREFIXES[resource.type]), resource


def test_azure_takes_every_name(any_deployed):
    """By its length and characters; Azure refuses another only when the rest is half deployed."""
    for resource in any_deployed.resources:
        if resource.type in FIXED_NAMES:
            assert resource.name in FIXED_NAMES[resource.type], resource
        elif resource.type != ROLE_ASSIGNMENT:
            least, most, characters = NAMES[resource.type]
            assert least <= len(resource.name) <= most, resource
            assert re.fullmatch(characters, resource.name), resource


def test_a_role_assignment_is_named_by_all_that_it_consists_of(template):
    """By a formula of scope, principal and role: Azure refuses to change one of these in an assignment that is there.

    The principal of the topic is known too late, so its id stands for it.
    """
    found = [
        declaration.content
        for declaration in declared(template)
        if declaration.type == ROLE_ASSIGNMENT
    ]
    assert found
    for content in found:
        principal, role = (
            content["properties"][name][1:-1] for name in ("principalId", "roleDefinitionId")
        )
        of_topic = re.fullmatch(
            r"reference\((resourceId\(.*?\)\)), .*\.identity\.principalId", principal
        )
        role = role.removesuffix(")").partition("roleDefinitions', ")[2]
        named_by = of_topic[1] if of_topic else principal
        assert content["name"] == f"[guid({content['scope'][1:-1]}, {named_by}, {role})]"


def test_the_longest_name_of_an_environment_fits(template):
    """It is part of the name of the resource group alone."""
    longest = template["parameters"]["environmentName"]["maxLength"]
    _, most, _ = NAMES["Microsoft.Resources/resourceGroups"]
    assert len(PREFIXES["Microsoft.Resources/resourceGroups"]) + longest <= most
    names = [
        declaration
        for declaration in declared(template)
        if "environmentName" in declaration.content["name"]
    ]
    assert {declaration.type for declaration in names} == {"Microsoft.Resources/resourceGroups"}


def test_one_api_version_for_every_type(template):
    """The same resource is never described in two versions."""
    versions = {}
    for declaration in declared(template):
        kind = declaration.type
        versions.setdefault(kind.split("/")[0] if "Storage" in kind else kind, set()).add(
            declaration.content["apiVersion"]
        )
    assert {kind: found for kind, found in versions.items() if len(found) > 1} == {}


def test_isolation_leaves_no_public_endpoint(any_deployed):
    """With it every service has a private endpoint and shuts its public one; without it there is no network at all."""
    endpoints = Counter(
        resource.properties["privateLinkServiceConnections"][0]["properties"][
            "privateLinkServiceId"
        ]
        for resource in any_deployed.of_type("Network/privateEndpoints")
    )
    isolated = any_deployed.is_isolated
    assert bool(any_deployed.site.properties.get("virtualNetworkSubnetId")) == isolated
    assert bool(any_deployed.of_type("Network/virtualNetworks")) == isolated
    kinds = ("Storage/storageAccounts", "ServiceBus/namespaces", "EventGrid/topics")
    for resource in (resource for kind in kinds for resource in any_deployed.of_type(kind)):
        assert bool(endpoints[resource.id]) == isolated, resource
        closed = resource.properties["publicNetworkAccess"] == "Disabled"
        denied = resource.properties.get("networkAcls", {}).get("defaultAction") == "Deny"
        assert (closed or denied) == isolated, resource
    bus = any_deployed.one("ServiceBus/namespaces")
    assert bus.sku["name"] == ("Premium" if isolated else "Standard")


def loop_of(template, module, symbol):
    """What deploys one after another, or all at the same time."""
    [loop] = [
        declaration
        for declaration in declared(template)
        if (declaration.module, declaration.copy.get("name")) == (module, symbol)
    ]
    return loop


ONE_AFTER_ANOTHER = {"mode": "serial", "batchSize": 1}


def test_private_endpoints_are_made_one_after_another(template):
    """Azure refuses two at the same time on one account."""
    loop = loop_of(template, "private-endpoints", "endpoints")
    assert ONE_AFTER_ANOTHER.items() <= loop.copy.items()
    declaring = {
        declaration.module
        for declaration in declared(template)
        if declaration.type == "Microsoft.Network/privateEndpoints"
    }
    assert declaring == {loop.content["name"]}


ZONE_OF = {
    "blob": "privatelink.blob.core.windows.net",
    "queue": "privatelink.queue.core.windows.net",
    "table": "privatelink.table.core.windows.net",
    "namespace": "privatelink.servicebus.windows.net",
    "topic": "privatelink.eventgrid.azure.net",
    "vault": "privatelink.vaultcore.azure.net",
}
"""By what an endpoint leads to: learn.microsoft.com/azure/private-link/private-endpoint-dns."""


def test_private_endpoints_resolve_to_zones_that_exist(any_deployed):
    """Each has its name in its zone, which is linked to the network; the vault's too, if there is one."""
    zones = {resource.id for resource in any_deployed.of_type("Network/privateDnsZones")}
    linked = {resource.parent_id for resource in any_deployed.of_type("virtualNetworkLinks")}
    assert linked == zones
    groups = any_deployed.of_type("privateEndpoints/privateDnsZoneGroups")
    assert len(groups) == len(any_deployed.of_type("Network/privateEndpoints"))
    for resource in groups:
        [zone] = resource.properties["privateDnsZoneConfigs"]
        endpoint = any_deployed.with_id(resource.parent_id).properties
        [to] = endpoint["privateLinkServiceConnections"][0]["properties"]["groupIds"]
        assert zone["properties"]["privateDnsZoneId"] in zones
        assert zone["properties"]["privateDnsZoneId"].endswith(f"/{ZONE_OF[to]}")


@pytest.mark.proves("WRK-4")
@pytest.mark.parametrize(
    ("name", "redundancy", "sku"),
    [
        ("default", "zone", "Standard_ZRS"),
        ("restricted", "geo", "Standard_GRS"),
        ("demonstration", "geo-zone", "Standard_GZRS"),
    ],
)
def test_state_is_as_redundant_as_the_settings_say(deployments, name, redundancy, sku):
    """The account of the orders; the host's own has zones, but where a region may have none."""
    assert deployments[name].parameters.get("redundancy", "zone") == redundancy
    accounts = deployments[name].of_type("Microsoft.Storage/storageAccounts")
    skus = {resource.name.startswith("ststate"): resource.sku["name"] for resource in accounts}
    assert skus == {True: sku, False: "Standard_LRS" if redundancy == "geo" else "Standard_ZRS"}


def test_what_has_the_orders_cannot_be_deleted_by_mistake_if_that_is_wanted(deployments):
    """The account of the tables and queues; not so unless asked, for `azd down` would fail."""
    lock = deployments["restricted"].one("Microsoft.Authorization/locks")
    assert lock.properties["level"] == "CanNotDelete"
    assert lock.scope_id == deployments["restricted"].one("storageAccounts", "ststate").id
    assert deployments["default"].of_type("Microsoft.Authorization/locks") == []


def test_event_grid_gets_its_subscription_when_its_roles_are_known(template):
    """They take minutes to be known, and Event Grid refuses a subscription until then: so that one is made last."""
    depends = {
        declaration.symbol: declaration.depends_on
        for declaration in declared(template)
        if not declaration.module
    }
    assert {"site", "alerts"} <= set(depends["eventSubscription"])
    given_early = [
        declaration
        for declaration in declared(template)
        if declaration.module == "event-grid" and declaration.type == ROLE_ASSIGNMENT
    ]
    assert [
        declaration
        for declaration in given_early
        if "identity.principalId" in json.dumps(declaration.content)
    ]
    assert "eventGrid" in depends["site"]


def test_what_azure_refuses_at_the_same_time_is_made_one_after_another(template):
    """Two changes of a storage account; and a table of a workspace that is not active yet (deployment.md 11 and 17)."""
    state = {
        declaration.type.rpartition("/")[2]: json.dumps(declaration.depends_on)
        for declaration in declared(template)
        if declaration.module == "state-storage"
    }
    assert "tableServices'" in state["queueServices"]
    assert "queueServices'" in state["blobServices"]
    [tables] = [declaration for declaration in declared(template) if declaration.symbol == "tables"]
    assert "publisher" in tables.depends_on


def test_the_outputs_have_what_the_hooks_need(deployed):
    """azd keeps an answer to its own question where no hook finds it, but every output (deployment.md 10)."""
    needed = {
        *("AZURE_RESOURCE_GROUP", "AZURE_TENANT_ID", "APP_NAME", "APP_URL", "OPERATOR_EMAIL"),
        *("DEPLOYED_PYTHON_VERSION", "DEPLOYED_REDUNDANCY", "DEPLOYED_NETWORK_ISOLATION"),
    }
    assert needed <= set(deployed.outputs)


def test_everything_that_is_logged_comes_to_one_workspace(any_deployed):
    """Whose tables the alerts query; and the portal shows the test from outside beside the rest."""
    workspace = any_deployed.one("OperationalInsights/workspaces")
    insights = any_deployed.one("Insights/components")
    assert insights.properties["WorkspaceResourceId"] == workspace.id
    assert any_deployed.one("diagnosticSettings").properties["workspaceId"] == workspace.id
    assert f"hidden-link:{insights.id}" in any_deployed.one("Insights/webtests").tags


def test_without_a_client_id_nothing_of_a_sign_in_is_left(deployments):
    """Neither a provider nor a redirection: azd would leave alone what the template leaves out (deployment.md 6)."""
    found = deployments["default"].one("/config", "authsettingsV2").properties
    assert (found["platform"], found["identityProviders"]) == ({"enabled": False}, {})
    rules = found["globalValidation"]
    assert rules["requireAuthentication"] is False
    assert rules["unauthenticatedClientAction"] == "AllowAnonymous"


def test_an_instance_takes_many_http_calls_at_a_time(deployed):
    """As many as one core does in time, as `make concurrency` has measured it.

    Azure's own number is one for Python, so a page of thirty modules would start as many instances.
    learn.microsoft.com/azure/azure-functions/functions-concurrency, "HTTP trigger concurrency".
    """
    measured = (ROOT / "tools/bench/measured/concurrency/one-core.jsonl").read_text().splitlines()
    scale = functions_of(deployed)["scaleAndConcurrency"]
    number = chosen([json.loads(line) for line in measured])
    assert scale["triggers"] == {"http": {"perInstanceConcurrency": number}}


def functions_of(deployed):
    """How the app runs and scales."""
    return deployed.site.properties["functionAppConfig"]


def test_the_length_of_a_queue_is_read_with_a_right_on_the_namespace(any_deployed):
    """On a queue alone it was seen not to be enough: Azure/azure-functions-host, issue 8261."""
    owner = MICROSOFTS["serviceBusDataOwner"]
    scopes = [
        type_and_name(resource.scope_id)[0]
        for resource in any_deployed.of_type(ROLE_ASSIGNMENT)
        if resource.properties["roleDefinitionId"].endswith(owner)
    ]
    wanted = any_deployed.option("app", "scaleByQueueLength")
    assert scopes == (["Microsoft.ServiceBus/namespaces"] if wanted else [])


def test_alerts_go_to_everybody_who_is_named(deployments):
    """Each by mail or by a webhook of their own; each under a name of its own."""
    deployed = deployments["restricted"]
    group = deployed.one("Insights/actionGroups").properties
    given = deployed.parameters["operatorEmail"]
    assert given.count("ada@example.com") == 2  # names of receivers must differ (deployment.md 21)
    mails = ["ada@example.com", "grace@example.com"]
    assert [item["emailAddress"] for item in group["emailReceivers"]] == mails
    hooks = deployed.parameters["operatorWebhooks"].split(",")
    assert [item["serviceUri"] for item in group["webhookReceivers"]] == hooks
    receivers = [*group["emailReceivers"], *group["webhookReceivers"]]
    assert len({item["name"] for item in receivers}) == len(receivers) == 4
    assert all(item["useCommonAlertSchema"] for item in receivers)


def site_config(deployed):
    """How the site may be reached."""
    return deployed.site.properties["siteConfig"]


def test_calls_may_be_limited_to_one_entry_point(deployments):
    """By Azure's addresses and the id of that one; without it, anybody may call."""
    deployed = deployments["restricted"]
    shut = site_config(deployed)
    assert shut["ipSecurityRestrictionsDefaultAction"] == "Deny"
    [rule] = shut["ipSecurityRestrictions"]
    assert (rule["tag"], rule["ipAddress"]) == ("ServiceTag", "AzureFrontDoor.Backend")
    assert rule["headers"] == {"x-azure-fdid": [deployed.parameters["frontDoorId"]]}
    usual = site_config(deployments["default"])
    assert usual["ipSecurityRestrictions"] == []
    assert usual["ipSecurityRestrictionsDefaultAction"] == "Allow"


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("restricted", "203.0.113.0/24"),
        ("isolated-vault", "203.0.113.7/32"),
        ("tuned", "2001:db8::7/128"),
    ],
)
def test_new_versions_may_be_let_in_from_one_place_alone(deployments, name, place):
    """A range, or one address, which Azure takes as a range alone (deployment.md 15). Whoever may call the app may still call it."""
    shut = site_config(deployments[name])
    assert shut["scmIpSecurityRestrictionsDefaultAction"] == "Deny"
    assert [rule["ipAddress"] for rule in shut["scmIpSecurityRestrictions"]] == [place]
    behind_afd = "frontDoorId" in deployments[name].parameters
    assert shut["ipSecurityRestrictionsDefaultAction"] == ("Deny" if behind_afd else "Allow")
    usual = site_config(deployments["default"])
    assert usual["scmIpSecurityRestrictionsDefaultAction"] == "Allow"


def test_pages_of_other_sites_may_call_if_they_are_listed(deployments):
    """None unless told otherwise; and never with what a browser knows of a caller."""
    listed = {name: resource.option("app", "corsOrigins") for name, resource in deployments.items()}
    assert listed["restricted"] != listed["default"]
    for name, origins in listed.items():
        cors = {"allowedOrigins": origins, "supportCredentials": False}
        assert site_config(deployments[name])["cors"] == cors


def test_who_reads_the_orders_is_logged(deployments):
    """On the service of the tables; unless that is not wanted. It is deployed switched off then (deployment.md 8)."""
    wanted = {
        name: resource.option("monitoring", "accessLog") for name, resource in deployments.items()
    }
    assert (wanted["default"], wanted["tuned"]) == (True, False)
    for name, is_on in wanted.items():
        log = deployments[name].one("Microsoft.Insights/diagnosticSettings")
        assert type_and_name(log.scope_id)[0] == TABLE_SERVICE
        categories = {
            resource["category"]: resource["enabled"] for resource in log.properties["logs"]
        }
        assert categories == dict.fromkeys(("StorageRead", "StorageWrite", "StorageDelete"), is_on)


def test_no_client_can_keep_an_alert_fired_and_so_mute_it(deployments):
    """An order of the same cause tells again, and one of another cause by itself; lines are never late for a rule."""
    rules = {
        resource.name.rpartition("-")[0]: resource.properties
        for resource in deployments["default"].of_type(QUERY_RULES)
    }
    [criterion] = rules["order-events"]["criteria"]["allOf"]
    assert [(resource["name"], resource["values"]) for resource in criterion["dimensions"]] == [
        ("cause", ["*"])
    ]
    assert "| extend cause =" in criterion["query"]
    assert rules["order-events"]["autoMitigate"] is False
    assert all(rule["autoMitigate"] for name, rule in rules.items() if name != "order-events")
    for name, rule in rules.items():
        assert rule["skipQueryValidation"] is True
        if name != "log-nearly-full":
            assert rule["evaluationFrequency"] == "PT5M"
            assert rule["windowSize"] in ("PT10M", "PT15M", "PT30M")


MICROSOFTS = {
    "communicationAndEmailServiceOwner": "09976791-48a7-449e-bb21-39d1a415f350",
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


def test_every_role_is_the_one_that_it_is_called():
    """An id says nothing to a reader: with another one the templates deploy, and the right is missing."""
    assert json.loads((INFRA / "roles.json").read_text()) == MICROSOFTS


def test_no_role_is_given_twice(any_deployed):
    """Of a principal, a role and a scope Azure takes one assignment, whatever its name: the second fails."""
    given = Counter(
        (
            resource.properties["principalId"],
            resource.properties["roleDefinitionId"],
            resource.scope_id,
        )
        for resource in any_deployed.of_type(ROLE_ASSIGNMENT)
    )
    assert given
    assert [resource for resource, count in given.items() if count > 1] == []


def test_nothing_is_deployed_twice(any_deployed):
    """Two resources of one type and name in one place would overwrite each other."""
    found = Counter(
        (resource.type.lower(), resource.full_name.lower(), resource.scope_id.lower())
        for resource in any_deployed.resources
    )
    assert [resource for resource, count in found.items() if count > 1] == []
    assert len({resource.id.lower() for resource in any_deployed.resources}) == found.total()


def test_warnings_of_bicep_are_errors():
    """Of the linter by its configuration; of the compiler, which has no such setting, by `make bicep`, which CI runs."""
    rules = json.loads((INFRA / "bicepconfig.json").read_text())["analyzers"]["core"]["rules"]
    assert {rule["level"] for rule in rules.values()} == {"error"}
    assert {"no-unused-params", "no-unused-vars", "use-parent-property"} <= set(rules)
    assert "make bicep" in (ROOT / ".github/workflows/checks.yml").read_text()


@pytest.mark.proves("OPR-5")
def test_sign_in_leaves_open_what_needs_no_key(deployments, functions):
    """With sign-in for operators, exactly the routes that anybody may call are left out of it, but for the console.

    Its page holds nothing, but a browser that opens it is sent to sign in, and its calls are let through from then on.
    """
    sign_in = deployments["demonstration"].one("sites/config", "authsettingsV2").properties
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
def test_the_app_believes_who_signed_in_where_the_platform_asks_and_only_there(any_deployed):
    """Both follow from one parameter: without a sign-in anybody could send the headers that it sets.

    Without a client id sign-in is deployed switched off, or it would stay on (deployment.md 6).
    """
    signs_in = "operatorSignInClientId" in any_deployed.parameters
    role = any_deployed.option("app", "operatorRole") if signs_in else ""
    settings = any_deployed.settings
    assert settings["OPERATOR_SIGN_IN"] == str(signs_in).lower()
    assert settings["OPERATOR_ROLE"] == role
    properties = any_deployed.one("sites/config", "authsettingsV2").properties
    assert properties["platform"]["enabled"] is signs_in
    assert properties["globalValidation"]["requireAuthentication"] is signs_in
    assert ("azureActiveDirectory" in properties["identityProviders"]) == signs_in
    assert (snapshots.SIGN_IN in json.dumps(properties)) == signs_in


def test_alerts_reach_the_operators(any_deployed):
    """Every rule is on, unless it has nothing to look at, and sends to the group that has the operators' address."""
    group = any_deployed.one("Microsoft.Insights/actionGroups")
    mails = [item["emailAddress"] for item in group.properties["emailReceivers"]]
    assert set(mails) == set(any_deployed.parameters["operatorEmail"].replace(" ", "").split(","))
    hooks = any_deployed.parameters.get("operatorWebhooks", "")
    assert ",".join(item["serviceUri"] for item in group.properties["webhookReceivers"]) == hooks
    rules = any_deployed.of_type("Insights/metricAlerts") + any_deployed.of_type(QUERY_RULES)
    assert len(rules) >= 5
    wanted = any_deployed.option("monitoring", "availabilityTest")
    is_on = wanted and "frontDoorId" not in any_deployed.parameters
    limited = any_deployed.option("monitoring", "dailyLogGigabytes") > 0
    needs = {"unavailable": is_on, "log-nearly-full": limited}
    for rule in rules:
        assert rule.properties["enabled"] is needs.get(rule.name.rpartition("-")[0], True), rule
        assert group.id in json.dumps(rule.properties["actions"])
