"""Hosts that run the sample app, and queues for them on the shared services."""

import itertools
from contextlib import ExitStack

import pytest
from azure.servicebus import ServiceBusClient
from azure.storage.blob import ContainerClient
from azure.storage.queue import QueueServiceClient

from functions_alone.host.singleton import CONTAINER
from functions_alone.tests.support.bus_queue import BusQueue
from functions_alone.tests.support.bus_queues import OF_ONE_TEST
from functions_alone.tests.support.host_process import LISTED_ORIGINS, HostProcess

_queue_numbers = itertools.count()
_host_ids = itertools.count()


@pytest.fixture(scope="session")
def settings(services):
    """What every host needs to start."""
    names = {
        "WORK_QUEUE": "unused",
        "SINGLES": "unused",
        "BATCHES": "unused",
        "TEXTS": "unused",
        "TEXTS_TOGETHER": "unused",
        "TICK": "0 0 0 1 1 *",
    }
    storage = dict.fromkeys(("Storage", "AzureWebJobsStorage"), services.storage_connection_string)
    return storage | {"Bus": services.service_bus_connection_string, **names}


@pytest.fixture(scope="session")
def storage_queue(services):
    """Make Storage Queues by name; each has a poison queue, not yet created."""
    with ExitStack() as opened:
        service = QueueServiceClient.from_connection_string(services.storage_connection_string)
        opened.enter_context(service)

        def make(name):
            queue = opened.enter_context(service.get_queue_client(name))
            queue.create_queue()
            queue.poison = opened.enter_context(service.get_queue_client(f"{name}-poison"))
            return queue

        yield make


@pytest.fixture(scope="session")
def shared_queue(storage_queue):
    """The Storage Queue of the shared host."""
    return storage_queue("shared")


@pytest.fixture(scope="session")
def text_queue(storage_queue):
    """The Storage Queue whose messages the shared host hands over as texts."""
    return storage_queue("texts")


@pytest.fixture(scope="session")
def _everything(tmp_path_factory, settings, shared_queue, text_queue):
    """One host with all functions, for the tests that do not end it."""
    own = {
        "WORK_QUEUE": "shared",
        "SINGLES": "singles",
        "BATCHES": "batches",
        "TEXTS": "texts",
        "TEXTS_TOGETHER": "texts-together",
        "TICK": "00:00:00.05",
    }
    own |= {"LOCAL_QUEUE_LOCK_SECONDS": "2", "AzureWebJobsDisableHomepage": "true"}
    own |= {"Host__CORS": ", ".join(LISTED_ORIGINS)}
    host = HostProcess(tmp_path_factory.mktemp("host"), settings | own)
    yield host.ready()
    host.stop()


@pytest.fixture
def host(_everything):
    """The shared host, with nothing seen and nothing logged."""
    assert _everything.call("/reset", "POST").status == 200
    _everything.log_start = _everything.log.stat().st_size
    return _everything


@pytest.fixture
def start_host(tmp_path, settings):
    """Start hosts with the HTTP functions that tell what was seen, and those named; they share the locks of timers."""
    own_locks = {"AzureFunctionsWebHost__hostid": f"test{next(_host_ids)}"}
    with ExitStack() as at_exit:

        def start(functions, **more):
            host = HostProcess(
                tmp_path, settings | own_locks | more, functions=f"seen_of,{functions}"
            )
            at_exit.callback(host.stop)
            return host.ready()

        yield start


@pytest.fixture
def work_queue(storage_queue):
    """A Storage Queue of this test alone."""
    return storage_queue(f"work{next(_queue_numbers)}")


@pytest.fixture
def lease_of(services):
    """Say in which state the lease on a timer's lock is."""
    with ContainerClient.from_connection_string(
        services.storage_connection_string, CONTAINER
    ) as container:
        yield (
            lambda name: (
                container.get_blob_client(f"locks/{name}").get_blob_properties().lease.state
            )
        )


@pytest.fixture(scope="module")
def bus_queue(services):
    """Open Service Bus queues by name; what is sent to them goes through one client of the file."""
    with (
        ExitStack() as opened,
        ServiceBusClient.from_connection_string(services.service_bus_connection_string) as client,
    ):
        senders = {}

        def get(name):
            if name not in senders:
                senders[name] = opened.enter_context(client.get_queue_sender(name, keep_alive=None))
            return BusQueue(services, senders[name])

        yield get


@pytest.fixture(scope="session")
def _own_names():
    return iter(OF_ONE_TEST)


@pytest.fixture
def own_bus_queue(bus_queue, _own_names):
    """A Service Bus queue of this test alone."""
    return bus_queue(next(_own_names))


@pytest.fixture
def other_bus_queue(bus_queue, _own_names):
    """A second one."""
    return bus_queue(next(_own_names))
