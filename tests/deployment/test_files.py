"""Files that others read: azd, the Functions host, Core Tools, Docker, GitHub. Each against a schema."""

import json
import os
import re
import subprocess
import sys
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

import jsonschema
import pytest
import yaml
from pydantic import TypeAdapter

from development.servicebus_config import ROOT, emulator_config, queues
from engine.azure.settings import Settings
from engine.declarations.workflow import LONGEST_TIMEOUT
from engine.runtime.functions import BATCH_SECONDS, FUNCTION_SECONDS, PATIENCE_SECONDS
from operations.api.retention import RUN_TIME
from tests.support.deployed_package import AZURE_PYTHON

SCHEMAS = Path(__file__).parent / "schemas"
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml"))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def check(content, schema):
    """Hold content against a schema, which has to be one itself."""
    schema = json.loads((SCHEMAS / f"{schema}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    faults = [
        f"{error.json_path}: {error.message}"
        for error in jsonschema.Draft202012Validator(schema).iter_errors(content)
    ]
    assert faults == []


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        ("azure.yaml", "azure"),
        ("host.json", "host"),
        ("local.settings.template.json", "local-settings"),
    ],
)
def test_a_file_fits_its_schema(path, schema):
    """No name is misspelt, no value is of the wrong kind."""
    check(yaml.safe_load((ROOT / path).read_text()), schema)


def test_the_emulators_configuration_fits_its_schema():
    """Config.json, as it is made from the queues in infra/, keeps within the limits of Microsoft's emulator."""
    check(emulator_config(), "servicebus-config")


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("vendor.compose-spec", [ROOT / "tools/development/compose.yaml"]),
        ("vendor.github-workflows", WORKFLOWS),
        ("vendor.dependabot", [ROOT / ".github/dependabot.yml"]),
        ("vendor.github-issue-forms", FORMS),
    ],
    ids=["compose", "workflows", "dependabot", "issues"],
)
def test_a_file_fits_its_owners_schema(schema, paths):
    """The schemas that Docker and GitHub publish."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *paths]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


OUTAGE = timedelta(minutes=5)
"""While which nothing valid may wear out its deliveries."""


def test_a_run_of_retention_ends_before_the_host_ends_it():
    """With half a minute for what it has begun."""
    assert RUN_TIME + timedelta(seconds=30) <= timedelta(seconds=FUNCTION_SECONDS)


BETWEEN_DELIVERIES = timedelta(milliseconds=35)
"""The pause after which Azure delivers a message again while a worker is replaced (host.md 6)."""
REPLACEMENT = timedelta(seconds=50)
"""How long a new worker process may take to load the app."""


@pytest.mark.proves("FLT-7")
def test_an_outage_of_minutes_wears_out_no_message():
    """A handler waits, gives its message back, and gets it again: for an hour with orders, which nobody sends again."""
    of_storage = json.loads((ROOT / "host.json").read_text())["extensions"]["queues"]
    pause = TypeAdapter(timedelta).validate_python(of_storage["visibilityTimeout"])
    patience = timedelta(seconds=PATIENCE_SECONDS)
    assert of_storage["maxDequeueCount"] * (patience + pause) >= 12 * OUTAGE
    for queue in queues()["serviceBusQueues"]:
        assert (queue["maxDeliveryCount"] - 1) * patience > OUTAGE
        assert queue["maxDeliveryCount"] * BETWEEN_DELIVERIES > REPLACEMENT
        assert TypeAdapter(timedelta).validate_python(queue["lockDuration"]) > patience
        assert patience < timedelta(seconds=BATCH_SECONDS)
    tries = Settings.model_fields["unknown_name_max_deliveries"]
    (most,) = [bound.le for bound in tries.metadata if hasattr(bound, "le")]
    assert most < of_storage["maxDequeueCount"], (
        "the platform would give up a message before the app says why"
    )
    assert timedelta(minutes=1) <= tries.default * pause <= OUTAGE, (
        "for as long as hosts of two versions run"
    )


SERVER = "Microsoft.AspNetCore.Hosting.Diagnostics"


def test_no_step_may_take_longer_than_the_host_lets_a_function_run():
    """An agent may be at it until complete-by, and a claim waits for the bus for as long as its request lives."""
    host, longest = (
        json.loads((ROOT / "host.json").read_text()),
        LONGEST_TIMEOUT + timedelta(seconds=15),
    )
    limits = host["functionTimeout"], host["extensions"]["serviceBus"]["maxAutoLockRenewalDuration"]
    assert all(TypeAdapter(timedelta).validate_python(limit) > longest for limit in limits)


def test_the_clients_of_the_host_do_not_log_their_calls():
    """Traces are never sampled, and a host that waits for messages makes ten calls a second.

    Azure/azure-functions-host issue 8973, Azure/azure-sdk-for-net issues 31967 and 40881: the categories of the
    SDKs, which count for all that begin with them. And its server would log each call's query, with the rights of links
    (Azure/azure-functions-host issue 11602).
    """
    levels = json.loads((ROOT / "host.json").read_text())["logging"]["logLevel"]
    quiet = ("Azure.Core", "Azure.Identity", "Azure.Messaging.ServiceBus", SERVER)
    assert levels == {"default": "Information"} | dict.fromkeys(quiet, "Warning")


@pytest.mark.proves("SUP-5")
def test_another_host_looks_for_the_timers_of_a_dead_one_as_often_as_azure_lets_it():
    """Its lock ends as soon as Azure lets it; Azure's own minutes would leave the orders without a sweep for longer."""
    singleton = json.loads((ROOT / "host.json").read_text())["singleton"]
    facts = json.loads((ROOT / "tests/data/azure_host/timers.json").read_text())
    names = ("listenerLockPeriod", "listenerLockRecoveryPollingInterval")
    assert singleton == {name: facts[name]["least"] for name in names}


def test_azd_finds_its_service():
    """The service in azure.yaml is the tag of the site, and its project the folder with the app."""
    azure = yaml.safe_load((ROOT / "azure.yaml").read_text())
    [(name, service)] = azure["services"].items()
    assert f"'azd-service-name': '{name}'" in (ROOT / "infra/modules/app.bicep").read_text()
    assert (ROOT / service["project"] / "function_app.py").is_file()
    assert (ROOT / azure["infra"]["path"] / f"{azure['infra']['module']}.bicep").is_file()


OF_HOOKS = {"MONTHLY_BUDGET"}
"""What hooks alone read, and no template."""


def test_the_pipeline_deploys_with_every_choice():
    """Each variable of a deployment is handed on, from `azd env` to the repository, and from there to the workflow.

    What may be used by whoever reads it is a secret there, as in the templates.
    """
    chosen = set(
        re.findall(r"[$][{]([A-Z0-9_]+)", (ROOT / "infra/main.parameters.json").read_text())
    )
    pipeline = yaml.safe_load((ROOT / "azure.yaml").read_text())["pipeline"]
    secrets = set(pipeline["secrets"])
    assert {"OPERATOR_WEBHOOKS", "TEAMS_WEBHOOK_URL", "SLACK_WEBHOOK_URL", "SMTP_URL"} <= secrets
    handed_on = {*pipeline["variables"], *secrets}
    [job] = yaml.safe_load((ROOT / ".github/workflows/azure-dev.yml").read_text())["jobs"].values()
    of_azd = {"AZURE_ENV_NAME", "AZURE_LOCATION"}
    assert handed_on == (chosen - of_azd) | OF_HOOKS
    assert set(job["env"]) == chosen | OF_HOOKS | {
        "AZURE_CLIENT_ID",
        "AZURE_TENANT_ID",
        "AZURE_SUBSCRIPTION_ID",
    }
    for name, value in job["env"].items():
        assert value == f"${{{{ {'secrets' if name in secrets else 'vars'}.{name} }}}}"


def test_the_pipeline_shows_what_it_will_change_and_tries_what_it_deployed():
    """One run at a time for an environment, which may ask somebody first; then the whole way of an order."""
    workflow = yaml.safe_load((ROOT / ".github/workflows/azure-dev.yml").read_text())
    [job] = workflow["jobs"].values()
    assert workflow["concurrency"]["cancel-in-progress"] is False
    assert job["environment"] == "${{ inputs.environment }}"
    ran = [step["run"].split("\n")[0] for step in job["steps"] if "run" in step]
    azd = [line for line in ran if line.startswith("azd ")]
    assert [line.split("--")[0].split()[1] for line in azd[1:]] == ["provision"] * 2 + ["deploy"]
    assert "--preview" in azd[1]
    assert "operations" in ran[-1] + job["steps"][-1]["run"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_what_they_were(path):
    """Each by its commit, since a tag can be moved; the tag stands beside it for people."""
    used = re.findall(r"uses: (.*)", path.read_text())
    assert used
    assert [
        action for action in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", action)
    ] == []


NPM = {"dependencies", "devDependencies"}


def manifests():
    """Yield the ecosystem and the folder of each file that names packages from elsewhere."""
    yield from (("github-actions", "/"), ("devcontainers", "/"))
    for parent, inner, names in os.walk(ROOT):
        inner[:] = [name for name in inner if not name.startswith(".") and name != "node_modules"]
        at = f"/{Path(parent).relative_to(ROOT)}".removesuffix(".")
        yield from ((ecosystem, at) for ecosystem in ecosystems(Path(parent), names))


def ecosystems(folder, names):
    """Return how the packages are fetched that the files of a folder name; a package of npm may name none."""
    texts = [(folder / name).read_text() for name in names if name.endswith(".txt")]
    manifest = json.loads((folder / "package.json").read_text()) if "package.json" in names else {}
    found = {
        "npm": NPM & manifest.keys(),
        "pip": "pyproject.toml" in names or any("--hash=" in text for text in texts),
        "docker-compose": any(re.match(r"(docker-)?compose.*\.ya?ml$", name) for name in names),
        "docker": any("Dockerfile" in name for name in names),
    }
    return [ecosystem for ecosystem, is_there in found.items() if is_there]


def test_dependabot_knows_every_folder_with_a_manifest():
    """A folder that it does not know keeps its versions for ever, and nobody hears of it."""
    watched = [
        (update["package-ecosystem"], folder)
        for update in yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]
        for folder in update.get("directories") or [update["directory"]]
    ]
    assert sorted(watched) == sorted(manifests())


def test_the_audit_covers_every_lock_of_npm():
    """Of the deployed app, of the tests and of the tools alike."""
    [line] = re.findall(
        r"for folder in (.*); do npm audit", (ROOT / ".github/workflows/checks.yml").read_text()
    )
    assert sorted(f"/{folder}" for folder in line.split()) == sorted(
        folder for ecosystem, folder in manifests() if ecosystem == "npm"
    )


def test_the_dev_container_has_what_the_three_ways_need():
    """Azure's Python, Docker, azd, and the Core Tools of the workflow; the editor knows the same extensions."""
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    assert container["image"].endswith(f":1-{AZURE_PYTHON}-bookworm")
    assert {"docker-in-docker", "azd", "azure-cli", "node"} == {
        re.search(r"([\w-]+):\d+$", feature).group(1)  # type: ignore[union-attr]
        for feature in container["features"]
    }
    core_tools = re.compile(r"azure-functions-core-tools@\d+\.\d+\.\d+")
    [installed] = core_tools.findall(container["postCreateCommand"])
    assert core_tools.findall((ROOT / ".github/workflows/checks.yml").read_text()) == [installed]
    wanted = container["customizations"]["vscode"]["extensions"]
    assert json.loads((ROOT / ".vscode/extensions.json").read_text())["recommendations"] == wanted
    editor = json.loads((ROOT / ".vscode/settings.json").read_text())
    assert (editor["azureFunctions.projectLanguage"], editor["azureFunctions.pythonVenv"]) == (
        "Python",
        ".venv",
    )


def test_the_editor_starts_modules_that_exist_and_attaches_to_this_machine():
    """What it asks a person for is declared."""
    launch = json.loads((ROOT / ".vscode/launch.json").read_text())
    of_request = {"launch": [], "attach": []}
    for configuration in launch["configurations"]:
        of_request[configuration["request"]].append(configuration)
    modules = [configuration["module"] for configuration in of_request["launch"]]
    assert modules
    assert [name for name in modules if not find_spec(name)] == []
    assert {configuration["connect"]["host"] for configuration in of_request["attach"]} == {
        "127.0.0.1"
    }
    used = set(re.findall(r"[$]{input:(\w+)}", json.dumps(launch["configurations"])))
    assert used == {given["id"] for given in launch["inputs"]}
