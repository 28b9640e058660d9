"""The package while it runs, with requirements.txt and nothing else installed: each of its functions works.

What it was seen to use is provisioned and nothing else is; its roles are the narrowest that allow its calls.
"""

import asyncio
import json
import re
from collections import defaultdict
from itertools import combinations

import pytest

from development.servicebus_config import ROOT
from development.stack import AppStackConfig
from engine.domain.messages import DEAD_LETTERS
from functions_alone.host.singleton import CONTAINER
from functions_alone.ports import Ports
from functions_alone.tests.support.waiting import eventually
from tests.support.client import QUICK, Client
from tests.support.deployed_package import DeployedStack, clean_python, tools
from tests.support.deployed_resources import ROLE_ASSIGNMENT, type_and_name
from tests.support.deploying import (
    AGENTS,
    BUSINESS,
    AtWork,
    call_every_route,
    do_everything,
    everything,
    in_time,
)
from tests.support.recording import Call, calls_in

OFTEN = {"STALL_DETECTOR_SCHEDULE": "* * * * * *", "FAILURE_THRESHOLD": "20"}
"""Timers come soon, and no order is given up because the machine is slow."""
BUILT_IN = {
    "table": {
        "storageTableDataReader": {"entities/read"},
        "storageTableDataContributor": {
            "tables/write", "tables/delete",
            "entities/read", "entities/write", "entities/delete", "entities/add/action", "entities/update/action",
        },
    },
    "queue": {
        "storageQueueDataReader": {"queues/read", "messages/read"},
        "storageQueueDataMessageSender": {"messages/add/action"},
        "storageQueueDataMessageProcessor": {"messages/read", "messages/process/action"},
        "storageQueueDataContributor": {
            "queues/read", "queues/write", "queues/delete",
            "messages/read", "messages/write", "messages/delete", "messages/process/action",
        },
    },
    "blob": {
        "storageBlobDataReader": {"containers/read", "blobs/read"},
        "storageBlobDataContributor": {
            "containers/read", "containers/write", "containers/delete",
            "blobs/read", "blobs/write", "blobs/delete", "blobs/move/action", "blobs/add/action",
        },
        "storageBlobDataOwner": {
            "containers/read", "containers/write", "containers/delete", "containers/acl",
            "blobs/read", "blobs/write", "blobs/delete", "blobs/move/action", "blobs/add/action", "blobs/owner",
        },
    },
    "bus": {
        "serviceBusDataSender": {"send/action"},
        "serviceBusDataReceiver": {"receive/action"},
        "serviceBusDataOwner": {"send/action", "receive/action", "manage"},
    },
    "topic": {"eventGridDataSender": {"events/send/action"}},
}  # fmt: skip
"""What Azure's built-in roles allow, as far as it matters here."""

ALLOWED_BY = {
    ("table", "GET"): [{"entities/read"}],
    ("table", "POST"): [{"entities/add/action"}, {"entities/write"}],
    ("table", "PUT"): [{"entities/write"}, {"entities/add/action", "entities/update/action"}],
    ("table", "DELETE"): [{"entities/delete"}],
    ("queue", "GET comp"): [{"queues/read"}],
    ("queue", "PUT"): [{"queues/write"}],
    ("queue", "POST messages"): [{"messages/add/action"}, {"messages/write"}],
    ("queue", "GET messages peekonly"): [{"messages/read"}],
    ("queue", "GET messages"): [{"messages/process/action"}, {"messages/read", "messages/delete"}],
    ("queue", "PUT messages"): [{"messages/write"}],
    ("queue", "DELETE messages"): [{"messages/process/action"}, {"messages/delete"}],
    ("blob", "PUT blob"): [{"blobs/write"}],
    ("blob", "PUT container"): [{"containers/write"}],
    ("bus", "send"): [{"send/action"}],
    ("bus", "receive"): [{"receive/action"}],
    ("topic", "POST"): [{"events/send/action"}],
}
"""The permissions that a call needs: any one of these sets (the reference of each operation of the services)."""

HOST_ON_TRIGGER_QUEUE = ("GET comp", "GET messages", "PUT messages", "DELETE messages")
"""What the real Functions host does for a queue trigger; a retry is an update. It reads the length to scale."""

ELSEWHERE = {
    ("account", "host"): {"storageBlobDataOwner"},
    ("telemetry", ""): {"monitoringMetricsPublisher"},
}
"""What the host needs for itself, by Azure's documentation: its own account, and to publish telemetry."""

APP, DEPLOYER = "userAssignedIdentities/id-app-", "userAssignedIdentities/id-deploy-"
SIMULATED = "simulator"
"""The table that only the simulated services need."""

SERVICES = {
    "Microsoft.Storage/storageAccounts/tableServices/tables": "table",
    "Microsoft.Storage/storageAccounts/queueServices/queues": "queue",
    "Microsoft.Storage/storageAccounts/blobServices/containers": "blob",
    "Microsoft.ServiceBus/namespaces/queues": "bus",
}


def place_of(scope_id):
    """The service and name of what a role is assigned on."""
    kind, name = type_and_name(scope_id)
    if kind in SERVICES:
        return SERVICES[kind], name
    whole = {
        "Microsoft.EventGrid/topics": ("topic", ""),
        "Microsoft.ServiceBus/namespaces": ("bus", ""),
        "Microsoft.Insights/components": ("telemetry", ""),
        "Microsoft.Storage/storageAccounts": (
            "account",
            "host" if name.startswith("sthost") else "state",
        ),
    }
    return whole[kind]


def assigned(deployed, identity):
    """The names of the roles that an identity has, by what they are assigned on."""
    names = template_roles()
    found = defaultdict(set)
    for assignment in deployed.of_type(ROLE_ASSIGNMENT):
        if identity in assignment.properties["principalId"]:
            role = names[assignment.properties["roleDefinitionId"].rpartition("/")[2]]
            place = place_of(assignment.scope_id)
            assert role not in found[place], f"{role} is assigned twice on {assignment.scope_id}"
            found[place].add(role)
    return dict(found)


def template_roles():
    """The names of the roles that the templates use, by id."""
    return {
        role: name for name, role in json.loads((ROOT / "infra/roles.json").read_text()).items()
    }


def needed(calls):
    """The narrowest roles for these calls, by what they are done to."""
    by_place = defaultdict(set)
    for call in calls:
        by_place[call.service, call.resource].add(call.what)
    return {place: narrowest(place[0], whats) for place, whats in by_place.items()}


def narrowest(service, whats):
    """Of all sets of built-in roles that allow these calls, the one with the fewest permissions."""
    roles = BUILT_IN[service]
    sets = [set(some) for size in range(1, len(roles) + 1) for some in combinations(roles, size)]
    enough = [
        some
        for some in sets
        if allows(set().union(*(roles[name] for name in some)), service, whats)
    ]
    assert enough, f"no built-in role allows {whats} on a {service}"
    return min(enough, key=lambda some: (sum(len(roles[name]) for name in some), len(some)))


def allows(permissions, service, whats):
    return all(any(way <= permissions for way in ALLOWED_BY[service, what]) for what in whats)


pytestmark = pytest.mark.soak
"""Every call of the deployed package is made and compared with the roles: twenty seconds of CPU."""


@pytest.fixture(scope="module")
async def at_work(package, functions, tmp_path_factory):
    """What the package did, on a clean Python, when it had to do everything that it can do."""
    if BUSINESS.sample is None:
        pytest.skip("the business has no sample order, so nothing can be done for it")
    data, calls = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("calls")
    ports = Ports.free()
    settings = QUICK | everything(ports) | OFTEN | {"CALLS_FOLDER": str(calls)}
    config = AppStackConfig.for_tests(
        data, ports=ports, settings=settings, app=package, agents=AGENTS
    )
    python = await asyncio.to_thread(clean_python)
    async with DeployedStack(config, python, tools(tmp_path_factory.mktemp("tools"))) as stack:

        def ran():
            return set(re.findall(r"function (\w+) succeeded", stack.hosts[0].output()))

        async def all_ran():
            assert in_time(functions) <= ran()
            return ran()

        client = Client(stack)
        try:
            await do_everything(stack, client)
            await call_every_route(client, functions)
            succeeded = await eventually(all_ran)
        finally:
            await client.close()
    return AtWork(succeeded, calls_in(calls))


@pytest.fixture
def calls(at_work):
    """Every call of the app and its host to Azure's services while it does everything that it can do.

    The timers' locks are in the host's own account, which here is the app's too: see ELSEWHERE.
    """
    return {call for call in at_work.calls if call.resource != CONTAINER}


@pytest.fixture
def every_call(calls, functions):
    """What the app and the embedded host did, and what Azure's host does besides for each queue trigger."""
    queues = [
        function["queueName"]
        for function in functions.values()
        if function["type"] == "queueTrigger"
    ]
    assert queues
    return calls | {
        *(Call("queue", queue, what) for queue in queues for what in HOST_ON_TRIGGER_QUEUE),
        *(
            Call("queue", f"{queue}-poison", "POST messages")
            for queue in queues
            if not queue.endswith("-poison")
        ),
    }


def test_every_function_runs_from_the_package(at_work, functions):
    """Orders end as they should, and each function has worked.

    All but timers whose schedule is no setting: they would not come in time.
    """
    assert in_time(functions) <= at_work.functions


@pytest.mark.proves("WRK-5")
def test_the_app_may_do_what_it_does_and_nothing_else(deployed, every_call):
    """On each resource exactly the narrowest roles that allow the calls; no role on anything that is never called."""
    expected = needed(every_call) | ELSEWHERE
    if not deployed.is_simulated:
        del expected["table", SIMULATED]
    assert assigned(deployed, APP) == expected


def test_what_the_app_is_cannot_change_the_code_that_runs(deployed):
    """Another identity keeps the packages, in an account on which the app's has no role."""
    assert assigned(deployed, DEPLOYER) == {("blob", "packages"): {"storageBlobDataContributor"}}
    packages = deployed.site.properties["functionAppConfig"]["deployment"]["storage"]
    assert DEPLOYER in packages["authentication"]["userAssignedIdentityResourceId"]
    account = deployed.one("storageAccounts", "stpack")
    assert packages["value"] == f"<{account.id}.primaryEndpoints.blob>packages"


def test_roles_that_azure_may_turn_out_to_want_are_an_option(deployments):
    """On the account instead of each table, for transactions; on the namespace, for scaling."""
    wide = assigned(deployments["tuned"], APP)
    assert wide["account", "state"] == {"storageTableDataContributor"}
    assert [place for place in wide if place[0] == "table"] == []
    assert wide["bus", ""] == {"serviceBusDataOwner"}
    assert "serviceBusDataSender" in wide["bus", f"{AGENTS[0].name}-requests"]
    assert wide["bus", "status-example"] == {"serviceBusDataSender"}


def test_event_grid_may_deliver_and_nothing_else(deployed):
    """The topic's own identity may add to the queue of its subscription, and keep what it cannot deliver."""
    subscription = deployed.one("topics/eventSubscriptions")
    delivered = subscription.properties["deliveryWithResourceIdentity"]["destination"]["properties"]
    undelivered = subscription.properties["deadLetterWithResourceIdentity"][
        "deadLetterDestination"
    ]["properties"]
    assert assigned(deployed, "EventGrid/topics") == needed(
        {
            Call("queue", delivered["queueName"], "POST messages"),
            Call("blob", undelivered["blobContainerName"], "PUT blob"),
        }
    )


def test_nobody_else_has_a_role(deployed):
    """Every assignment is for the app's identity or the topic's, of a type that needs no look-up in the directory."""
    for assignment in deployed.of_type(ROLE_ASSIGNMENT):
        who = assignment.properties["principalId"]
        assert "userAssignedIdentities/id-" in who or "EventGrid/topics/evgt-" in who
        assert assignment.properties["principalType"] == "ServicePrincipal"


def provisioned(deployed, suffix):
    """The names of all resources of a type."""
    return {resource.name for resource in deployed.of_type(suffix)}


@pytest.mark.proves("WRK-5")
def test_every_table_is_there_and_used(deployed, calls):
    """The simulated services' table only where they are."""
    used = {call.resource for call in calls if call.service == "table"}
    if not deployed.is_simulated:
        used.remove(SIMULATED)
    assert provisioned(deployed, "tableServices/tables") == used


@pytest.mark.proves("WRK-5")
def test_every_storage_queue_is_there_and_used(deployed, calls):
    """Poison queues too: the app may not create queues."""
    assert provisioned(deployed, "queueServices/queues") == {
        call.resource for call in calls if call.service == "queue"
    }


@pytest.mark.proves("WRK-5")
def test_every_service_bus_queue_is_there_and_used(deployed, calls, functions):
    """Each is sent to but that of dead letters, which Service Bus fills; each is received from but those of whoever submits, whose names begin as the settings say."""
    queues = provisioned(deployed, "namespaces/queues")
    prefix = deployed.settings["REPLY_TO_PREFIX"]
    own = {queue for queue in queues if not queue.startswith(prefix)}
    sent = {call.resource for call in calls if call[::2] == ("bus", "send")}
    assert sent == queues - {DEAD_LETTERS}
    assert {call.resource for call in calls if call[::2] == ("bus", "receive")} == own
    triggers = {
        function["queueName"]
        for function in functions.values()
        if function["type"] == "serviceBusTrigger"
    }
    assert triggers == own


@pytest.mark.proves("WRK-5")
def test_every_container_is_there_and_used(deployed, calls):
    """By the app, by Event Grid for what it cannot deliver, or for deployed packages."""
    subscription = deployed.one("topics/eventSubscriptions")
    dead_letters = subscription.properties["deadLetterWithResourceIdentity"][
        "deadLetterDestination"
    ]["properties"]
    storage = deployed.site.properties["functionAppConfig"]["deployment"]["storage"]
    packages = storage["value"].rpartition(">")[2]
    used = {call.resource for call in calls if call.service == "blob"}
    assert provisioned(deployed, "blobServices/containers") == used | {
        dead_letters["blobContainerName"],
        packages,
    }
