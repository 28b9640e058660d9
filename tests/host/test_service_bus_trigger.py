"""Service Bus: single messages and batches, settling, locks, outages."""

import pytest
from conftest import Broker, BusQueue, until


@pytest.fixture
def singles(host, broker, bus_client, senders):
    return BusQueue(host.queues["SINGLES"], broker, bus_client, senders)


@pytest.fixture
def batches(host, broker, bus_client, senders):
    return BusQueue(host.queues["BATCHES"], broker, bus_client, senders)


def test_a_single_message_with_all_its_properties(host, singles):
    """The function gets what the sender set; when it returns, the message is complete."""
    names = {"message_id": "id-1", "correlation_id": "c-1", "reply_to": "answers"}
    singles.send("hello", application_properties={"text": "t", "number": 3}, **names)
    [message] = host.wait_for("single", len)
    until(singles.is_empty, "the message to be completed")
    assert (message["id"], message["correlation"], message["reply_to"]) == ("id-1", "c-1", "answers")
    assert message["properties"] == {"text": "t", "number": 3}
    assert (message["body"], message["tries"]) == ("hello", 1)


def test_an_exception_abandons(host, singles):
    """A failed message comes again at once, until the queue's own count of tries sets it aside."""
    singles.send("fail")
    until(lambda: singles.dead() == 1, "the message to be dead-lettered")
    assert [message["tries"] for message in host.seen("single")] == [1, 2]
    assert host.logged("function from_bus failed") == 2


def test_no_more_run_at_once_than_allowed(host, singles):
    """maxConcurrentCalls 4 runs four of twelve, and a slow one does not hold up the others."""
    singles.send("gate", *["slow 0.05"] * 11)
    host.wait_for("single", lambda seen: len(seen) == 12)
    until(lambda: host.call("/seen/single").json()["running"] == 1, "all but the slow one to end")
    assert host.call("/seen/single").json()["highest"] == 4
    host.call("/gate", "POST")
    until(singles.is_empty, "all messages to be completed")


def test_a_batch_is_one_call(host, batches):
    """Cardinality many gives lists up to maxMessageBatchSize, each message with its own properties."""
    batches.send(*[f"m{i}" for i in range(50)], application_properties={"a": 1})
    seen = host.wait_for("batch", lambda seen: sum(len(b["bodies"]) for b in seen) == 50)
    until(batches.is_empty, "all messages to be completed")
    assert [body for batch in seen for body in batch["bodies"]] == [f"m{i}" for i in range(50)]
    assert max(len(batch["bodies"]) for batch in seen) == 20
    assert all(properties == {"a": 1} for batch in seen for properties in batch["properties"])


def test_an_exception_abandons_the_whole_batch(host, batches):
    """One bad message brings its batch back; what the queue's count of tries allows is tried again."""
    batches.send("good", "fail")
    until(lambda: batches.dead() == 2, "both to be dead-lettered")
    tries = [count for batch in host.seen("batch") for count in batch["tries"]]
    assert sorted(tries) == [1, 1, 2, 2]


def test_locks_of_single_messages_are_renewed_those_of_batches_are_lost(host, singles, batches):
    """A single message outlives its lock; a batch is not settled, says so in one line, and comes again."""
    singles.send("gate")
    batches.send("gate")
    host.wait_for("batch", lambda seen: [batch["tries"] for batch in seen] == [[1], [2]], "the lock to be lost")
    host.call("/gate", "POST")
    until(lambda: singles.is_empty() and batches.is_empty(), "the messages to be completed")
    assert len(host.seen("single")) == 1
    assert host.logged("not settled: MessageLockLostError") == host.logged("WARNING") == 1
    assert host.logged("Traceback") == 0


def test_broker_away_and_back(start_host, tmp_path):
    """The host starts without the broker, and says once that it is away and once that it is back."""
    broker = Broker(tmp_path)
    host = start_host("from_bus", Bus=broker.connection, SINGLES="q00")
    until(lambda: host.logged("service bus queue q00 is away") == 1, "the outage to be logged")
    broker.start()
    until(lambda: host.logged("service bus queue q00 is back") == 1, "the return to be logged")
    broker.stop()
    until(lambda: host.logged("service bus queue q00 is away") == 2, "the second outage to be logged")
    assert host.call("/seen/single").status == 200
    assert host.logged("Traceback") == 0
