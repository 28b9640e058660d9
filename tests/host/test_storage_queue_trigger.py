"""Storage Queue: tries, poison, how many at once, locks, outages."""

import shutil
import signal

from azure.core.exceptions import ResourceNotFoundError
from azure.storage.queue import QueueClient
from conftest import SAMPLE_APP, Azurite, accepts, until


def is_empty(queue):
    return queue.get_queue_properties().approximate_message_count == 0


def poisoned(queue):
    try:
        return [message.content for message in queue.poison.peek_messages(max_messages=32)]
    except ResourceNotFoundError:
        return []


def test_a_message_is_handled_and_deleted(host, shared_queue):
    """The function gets body, number of tries and time; when it returns, the message is gone."""
    shared_queue.send_message("hello ä <x>")
    [message] = host.wait_for("queue", len)
    until(lambda: is_empty(shared_queue), "the message to be deleted")
    assert (message["body"], message["tries"]) == ("hello ä <x>", 1)
    assert message["inserted"].endswith("+00:00")


def test_after_too_many_tries_a_message_is_poison(host, shared_queue):
    """A function that always fails is called maxDequeueCount times, then the message is set aside."""
    shared_queue.send_message("fail")
    shared_queue.send_message("fine")
    until(lambda: poisoned(shared_queue) == ["fail"], "the poison queue")
    until(lambda: is_empty(shared_queue), "the message to leave its queue")
    tries = [message["tries"] for message in host.seen("queue") if message["body"] == "fail"]
    assert tries == [1, 2]
    assert host.logged("function from_queue failed") == 2


def test_no_more_run_at_once_than_allowed(host, shared_queue):
    """batchSize 4 with newBatchThreshold 0 fetches four, and more only when all have ended."""
    for _ in range(12):
        shared_queue.send_message("slow 0.05")
    host.wait_for("queue", lambda seen: len(seen) == 12)
    assert host.call("/seen/queue").json()["highest"] == 4


def test_a_lock_is_renewed_while_the_function_runs(host, shared_queue):
    """A call that takes longer than the lock keeps its message, and can still delete it."""
    shared_queue.send_message("slow 1.4")
    host.wait_for("queue", len)
    until(lambda: is_empty(shared_queue), "the message to be deleted")
    assert len(host.seen("queue")) == 1


def test_what_is_not_base64_is_poison_without_a_call(start_host, work_queue, tmp_path):
    """With messageEncoding base64 plain text never reaches the function."""
    app = shutil.copytree(SAMPLE_APP, tmp_path / "app")
    (app / "host.json").write_text('{"extensions": {"http": {"routePrefix": ""}}}')
    host = start_host("from_queue", app=app, WORK_QUEUE=work_queue.queue_name)
    work_queue.send_message("not base64!")
    work_queue.send_message("aGVsbG8=")
    until(lambda: poisoned(work_queue) == ["not base64!"], "the poison queue")
    [message] = host.wait_for("queue", len)
    assert message["body"] == "hello"


def test_a_killed_hosts_message_comes_back(start_host, work_queue):
    """The lock of a host that dies runs out after LOCAL_QUEUE_LOCK_SECONDS."""
    first = start_host("from_queue", WORK_QUEUE=work_queue.queue_name, LOCAL_QUEUE_LOCK_SECONDS="1")
    work_queue.send_message("gate")
    first.wait_for("queue", len)
    first.stop(signal.SIGKILL)
    second = start_host("from_queue", WORK_QUEUE=work_queue.queue_name, LOCAL_QUEUE_LOCK_SECONDS="1")
    [message] = second.wait_for("queue", len)
    assert message["tries"] == 2
    second.call("/gate", "POST")


def test_storage_away_and_back(start_host, tmp_path):
    """The host starts without storage, serves HTTP, and says once that storage is away and once that it is back."""
    azurite = Azurite(tmp_path / "azurite")
    host = start_host("from_queue", Storage=azurite.connection, WORK_QUEUE="work")
    until(lambda: host.logged("storage queue work is away") == 1, "the outage to be logged")
    azurite.start()
    try:
        with QueueClient.from_connection_string(azurite.connection, "work") as queue:
            queue.create_queue()
            queue.send_message("hello")
        host.wait_for("queue", len)
        assert host.logged("storage queue work is back") == 1
    finally:
        azurite.stop()
    until(lambda: host.logged("storage queue work is away") == 2, "the second outage to be logged")
    assert not accepts(azurite.port)
    assert host.call("/seen/queue").status == 200
    assert host.logged("Traceback") == 0
