"""Rules that every template keeps, whatever its parameters."""

import json
import re
from collections import Counter

import pycep
import pytest
from bicep_model import Template
from bicep_syntax import read
from deploying import GIVEN

from local.servicebus_config import ROOT

INFRA = ROOT / "infra"
FILES = sorted(INFRA.rglob("*.bicep"))
UNTAGGED = ("Microsoft.Authorization/", "Microsoft.Web/sites/", "Microsoft.Network/virtualNetworks/subnets")
"""Types that have no tags, besides parts of a tagged resource."""
PREFIXES = {
    "Microsoft.Resources/resourceGroups": "rg-", "Microsoft.ManagedIdentity/userAssignedIdentities": "id-",
    "Microsoft.Storage/storageAccounts": "st", "Microsoft.ServiceBus/namespaces": "sb-",
    "Microsoft.EventGrid/topics": "evgt-", "Microsoft.Web/serverfarms": "plan-", "Microsoft.Web/sites": "func-",
    "Microsoft.OperationalInsights/workspaces": "log-", "Microsoft.Insights/components": "appi-",
    "Microsoft.Insights/actionGroups": "ag-", "Microsoft.Network/virtualNetworks": "vnet-",
    "Microsoft.Network/privateEndpoints": "pep-", "Microsoft.DocumentDB/databaseAccounts": "cosmos-",
}  # fmt: skip
"""Azure's own recommended abbreviations."""
NOT_ON_FLEX = {
    "ftpsState", "linuxFxVersion", "netFrameworkVersion", "use32BitWorkerProcess", "preWarmedInstanceCount",
    "functionsRuntimeScaleMonitoringEnabled",
}  # fmt: skip
"""Properties of `siteConfig` that other plans have."""
SECRETS = re.compile(r"listKeys|listAccountSas|listSecrets|AccountKey|SharedAccessKey|@secure", re.IGNORECASE)


def of_type(template, kind):
    return [each for each in template.resources if each.type == kind]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_two_parsers_read_the_same(path):
    """pycep-parser takes the file too, and finds the same declarations: none is nested, where it would be lost."""
    theirs = pycep.BicepParser().parse(text=path.read_text())
    ours = read(path)
    plural = {"param": "parameters", "var": "variables", "resource": "resources", "module": "modules"}
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
    used = {each.detail.rpartition("/")[2] for path in FILES for each in read(path) if each.kind == "module"}
    assert {path.name for path in FILES} - used == {"main.bicep"}


def test_no_secret_is_read_or_passed():
    """No template asks for a key, and no parameter or output is one."""
    for path in FILES:
        assert not SECRETS.search(path.read_text()), path


def test_every_parameter_is_described_and_can_be_set():
    """Each has a description, and azd passes each; those that have no default are asked for or are always there."""
    parameters = {each.name: each for each in read(INFRA / "main.bicep") if each.kind == "param"}
    assert [name for name, each in parameters.items() if "description" not in each.decorators] == []
    passed = json.loads((INFRA / "main.parameters.json").read_text())["parameters"]
    assert set(passed) == set(parameters)
    required = {name for name, each in parameters.items() if each.value is None}
    assert required == set(GIVEN)
    for name, each in passed.items():
        assert re.fullmatch(r"\$\{[A-Z_]+(=[\w.-]*)?\}", each["value"])
        assert ("=" in each["value"]) == (name not in required)


def test_defaults_of_azd_are_those_of_the_template():
    """Who sets nothing gets the same from both."""
    for name, each in json.loads((INFRA / "main.parameters.json").read_text())["parameters"].items():
        if name not in GIVEN:
            [parameter] = [one for one in read(INFRA / "main.bicep") if one.name == name and one.kind == "param"]
            default = parameter.value[1]
            text = str(default).lower() if isinstance(default, bool) else str(default)
            assert each["value"].partition("=")[2].rstrip("}") == text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("environmentName", ""), ("environmentName", "x" * 41), ("operatorEmail", ""), ("redundancy", "local"),
        ("alwaysReadyInstances", -1), ("maximumInstances", 1), ("instanceMemoryMB", 1024), ("sweepMissingMinutes", 7),
        ("networkIsolation", "yes"), ("location", ""),
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
    assert {each.name: each.properties["allow"] for each in passwords} == {"ftp": False, "scm": False}
    [packages] = [site.properties["functionAppConfig"]["deployment"]["storage"]["authentication"]]
    assert packages["type"] == "UserAssignedIdentity"


def test_the_site_names_nothing_that_flex_consumption_refuses(deployed):
    """Resource Manager rejects the whole deployment otherwise (51021)."""
    [site] = of_type(deployed, "Microsoft.Web/sites")
    assert NOT_ON_FLEX.isdisjoint(site.properties["siteConfig"])


def test_no_setting_is_a_secret(deployed):
    """Every connection goes by identity."""
    [settings] = [each.properties for each in deployed.resources if each.name == "appsettings"]
    assert [
        name for name, value in settings.items() if re.search(r"key|secret|password", f"{name}={value}", re.IGNORECASE)
    ] == []
    for connection in ("AzureWebJobsStorage", "StateStorage", "ServiceBus"):
        assert settings[f"{connection}__credential"] == "managedidentity"
        assert "userAssignedIdentities" in str(settings[f"{connection}__clientId"])


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
                versions.setdefault(kind.split("/")[0] if "Storage" in kind else kind, set()).add(version)
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
    kinds = ("Storage/storageAccounts", "ServiceBus/namespaces", "EventGrid/topics", "DocumentDB/databaseAccounts")
    for each in (each for each in deployed.resources if each.type.endswith(kinds)):
        assert bool(endpoints[each.id]) == isolated, each
        closed = each.properties["publicNetworkAccess"] == "Disabled"
        denied = each.properties.get("networkAcls", {}).get("defaultAction") == "Deny"
        assert (closed or denied) == isolated, each
    [bus] = of_type(deployed, "Microsoft.ServiceBus/namespaces")
    assert bus.config["sku"]["name"] == ("Premium" if isolated else "Standard")


def test_private_endpoints_resolve_to_zones_that_exist(deployed):
    """Each has its name in a zone that is linked to the network."""
    zones = {each.id for each in of_type(deployed, "Microsoft.Network/privateDnsZones")}
    linked = {each.parent.id for each in of_type(deployed, "Microsoft.Network/privateDnsZones/virtualNetworkLinks")}
    assert linked == zones
    groups = of_type(deployed, "Microsoft.Network/privateEndpoints/privateDnsZoneGroups")
    assert len(groups) == len(of_type(deployed, "Microsoft.Network/privateEndpoints"))
    for each in groups:
        assert each.properties["privateDnsZoneConfigs"][0]["properties"]["privateDnsZoneId"] in zones


@pytest.mark.proves("WRK-4")
@pytest.mark.parametrize(
    ("redundancy", "sku"), [("zone", "Standard_ZRS"), ("geo", "Standard_GRS"), ("geo-zone", "Standard_GZRS")]
)
def test_state_is_as_redundant_as_asked(redundancy, sku):
    """The account of the orders; the host's own has zones, but where a region may have none."""
    template = Template(INFRA / "main.bicep", GIVEN | {"redundancy": redundancy})
    accounts = of_type(template, "Microsoft.Storage/storageAccounts")
    skus = {each.name.startswith("ststate"): each.config["sku"]["name"] for each in accounts}
    assert skus == {True: sku, False: "Standard_LRS" if redundancy == "geo" else "Standard_ZRS"}


@pytest.mark.proves("WRK-4")
@pytest.mark.parametrize(("redundancy", "backups"), [("zone", "Zone"), ("geo", "Geo"), ("geo-zone", "Geo")])
def test_orders_in_cosmos_db_are_in_several_zones_always(redundancy, backups):
    """In one region; a second one, if any, has the backups."""
    template = Template(INFRA / "main.bicep", GIVEN | {"redundancy": redundancy, "cosmosForTables": True})
    [account] = of_type(template, "Microsoft.DocumentDB/databaseAccounts")
    assert [each["isZoneRedundant"] for each in account.properties["locations"]] == [True]
    assert account.properties["backupPolicy"]["periodicModeProperties"]["backupStorageRedundancy"] == backups


def test_sign_in_leaves_open_what_needs_no_key(functions):
    """With sign-in for operators, exactly the routes that anybody may call are left out of it, but for the console.

    Its page holds nothing, but a browser that opens it is sent to sign in, and its calls are let through from then on.
    """
    template = Template(INFRA / "main.bicep", GIVEN | {"operatorSignInClientId": "an-id", "simulatedServices": True})
    [sign_in] = [each.properties for each in template.resources if each.name == "authsettingsV2"]
    assert sign_in["globalValidation"]["requireAuthentication"] is True
    open_paths = [path.replace("*", ".*") for path in sign_in["globalValidation"]["excludedPaths"]]
    for name, trigger in functions.items():
        if trigger["type"] == "httpTrigger" and not name.startswith("simulator_"):
            route = re.sub(r"\{[^}]*\?\}", "", trigger["route"])
            is_open = any(re.fullmatch(path, f"/{route}") for path in open_paths)
            anybody = "anonymous" in trigger["authLevel"].lower() and name != "web_console"
            assert is_open == anybody, name


def test_alerts_reach_the_operators(deployed):
    """Every rule is on, and sends to the group that has the operators' address."""
    [group] = of_type(deployed, "Microsoft.Insights/actionGroups")
    assert [each["emailAddress"] for each in group.properties["emailReceivers"]] == [GIVEN["operatorEmail"]]
    rules = of_type(deployed, "Microsoft.Insights/metricAlerts") + of_type(
        deployed, "Microsoft.Insights/scheduledQueryRules"
    )
    assert len(rules) >= 5
    for rule in rules:
        assert rule.properties["enabled"] is True
        assert group.id in json.dumps(rule.properties["actions"])
