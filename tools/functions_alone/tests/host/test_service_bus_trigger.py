"""Service Bus: single messages and batches, settling, locks."""

from datetime import timedelta
from decimal import Decimal

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusSubQueue
from azure.servicebus._pyamqp import _decode, _encode
from azure.servicebus.amqp import AmqpAnnotatedMessage

from functions_alone.tests.support.waiting import until


@pytest.fixture
def singles(host, bus_queue):
    return bus_queue("singles")


@pytest.fixture
def batches(host, bus_queue):
    return bus_queue("batches")


def is_empty(messages):
    return messages == 0


def test_a_single_message_with_all_its_properties(host, singles):
    """The function gets what the sender set; when it returns, the message is complete."""
    names = {"message_id": "id-1", "correlation_id": "c-1", "reply_to": "answers"}
    singles.send("hello", application_properties={"text": "t", "number": 3}, **names)
    [message] = host.wait_for("single")
    until(singles.under_way, is_empty)
    assert (message["id"], message["correlation"], message["reply_to"]) == (
        "id-1",
        "c-1",
        "answers",
    )
    assert message["properties"] == {"text": "t", "number": 3}
    assert (message["body"], message["tries"]) == ("hello", 1)


def test_an_exception_abandons(host, singles):
    """A failed message comes again at once, until the queue's own count of tries sets it aside."""
    singles.send("fail")
    until(singles.dead, lambda dead: dead == 1)
    assert [message["tries"] for message in host.seen("single")] == [1, 2]
    assert host.logged("function from_bus failed") == 2


def test_a_text_is_a_body_and_no_other_value_or_sequence(host, singles):
    """As Azure's extension binds them; what it cannot bind is abandoned, and does not reach the function."""
    singles.send_together([AmqpAnnotatedMessage(value_body="a text")])
    singles.send_together([AmqpAnnotatedMessage(value_body={"a": 1})])
    singles.send_together([AmqpAnnotatedMessage(sequence_body=[["a"]])])
    until(singles.dead, lambda dead: dead == 2)
    until(singles.under_way, is_empty)
    assert [message["body"] for message in host.seen("single")] == ["a text"]
    assert host.logged("a message cannot be read") == 4


DECIMAL128, CHAR = 0x94, 0x73
UNDECODABLE = {
    "decimal": {"price": Decimal("1.10")},
    "char": {"grade": {_encode.TYPE: "CHAR", _encode.VALUE: "A"}},
}
"""Application properties with a type that the SDK for Python cannot decode (azure-servicebus 7.15)."""


@pytest.fixture(params=UNDECODABLE)
def undecodable(request, monkeypatch):
    """A message that a host cannot decode. This process can send and receive it."""

    def encode_char(output, value, **_more):
        output += bytes([CHAR]) + value.encode("utf-32-be")

    monkeypatch.setitem(_encode._ENCODE_MAP, "CHAR", encode_char)
    decoders = list(_decode._DECODE_BY_CONSTRUCTOR)
    decoders[DECIMAL128] = lambda buffer, _depth=0: (buffer[16:], "a decimal")
    decoders[CHAR] = lambda buffer, _depth=0: (buffer[4:], "a char")
    monkeypatch.setattr(_decode, "_DECODE_BY_CONSTRUCTOR", decoders)
    name = request.param
    return ServiceBusMessage(f"undecodable {name}", application_properties=UNDECODABLE[name])


@pytest.fixture
def reasons(services):
    """Return the reasons for which a queue has dead-lettered a message."""

    def get(queue, sent):
        with (
            ServiceBusClient.from_connection_string(
                services.service_bus_connection_string
            ) as client,
            client.get_queue_receiver(
                queue.name, sub_queue=ServiceBusSubQueue.DEAD_LETTER
            ) as receiver,
        ):
            dead = receiver.peek_messages(1000, sequence_number=1)
        return [message.dead_letter_reason for message in dead if str(message) == str(sent)]

    return get


def test_a_message_that_cannot_be_decoded_costs_only_itself(host, singles, undecodable, reasons):
    """The broker dead-letters it after its deliveries; what runs beside it is settled once (real-behaviour.md P1)."""
    singles.send("gate 0", "gate 1", "gate 2")
    host.wait_for("single", lambda seen: len(seen) == 3)
    singles.send_together([undecodable, ServiceBusMessage("n")])
    until(singles.dead, lambda dead: dead == 1)
    host.open_gate()
    until(singles.under_way, is_empty)
    seen = host.seen("single")
    assert sorted(message["body"] for message in seen) == ["gate 0", "gate 1", "gate 2", "n"]
    assert {message["tries"] for message in seen} == {1}
    assert reasons(singles, undecodable) == ["MaxDeliveryCountExceeded"]
    assert host.logged("cannot be decoded") == 2
    assert host.logged("is away") == host.logged("not settled") == 0


def test_a_message_that_cannot_be_decoded_is_left_out_of_its_batch(
    host, batches, undecodable, reasons
):
    """The others of the batch reach the function and are settled once (real-behaviour.md P1)."""
    batches.send_together([ServiceBusMessage("n0"), undecodable, ServiceBusMessage("n1")])
    until(batches.dead, lambda dead: dead == 1)
    until(batches.under_way, is_empty)
    seen = host.seen("batch")
    assert [body for batch in seen for body in batch["bodies"]] == ["n0", "n1"]
    assert {count for batch in seen for count in batch["tries"]} == {1}
    assert reasons(batches, undecodable) == ["MaxDeliveryCountExceeded"]
    assert host.logged("is away") == host.logged("not settled") == 0


def test_no_more_run_at_once_than_allowed(host, singles):
    """maxConcurrentCalls 4 runs four of twelve, and a slow one does not hold up the others."""
    singles.send("gate", *["slow 0.05"] * 11)
    host.wait_for("single", lambda seen: len({message["id"] for message in seen}) == 12)
    assert (
        host.running("single")[1] == 4
    )  # of the slow one a lock may have been lost: how many run now is no claim
    host.open_gate()
    until(singles.under_way, is_empty)


def test_a_batch_is_one_call(host, batches):
    """Cardinality many gives lists up to maxMessageBatchSize, each message with its own properties."""
    batches.send(*[f"m{i}" for i in range(50)], application_properties={"a": 1})
    seen = host.wait_for("batch", lambda seen: sum(len(b["bodies"]) for b in seen) == 50)
    until(batches.under_way, is_empty)
    assert [body for batch in seen for body in batch["bodies"]] == [f"m{i}" for i in range(50)]
    assert max(len(batch["bodies"]) for batch in seen) == 20
    assert all(properties == {"a": 1} for batch in seen for properties in batch["properties"])


def test_one_batch_at_a_time(host, batches):
    """What comes while a batch is at work waits until it is settled."""
    batches.send("gate")
    host.wait_for("batch")
    batches.send("next")
    host.let_time_pass(0.3)
    assert host.running("batch") == (1, 1)
    host.open_gate()
    host.wait_for(
        "batch",
        lambda seen: [body for batch in seen for body in batch["bodies"]] == ["gate", "next"],
    )
    until(batches.under_way, is_empty)
    assert host.running("batch") == (0, 1)


def test_texts_that_are_missing_are_left_out_of_a_batch_and_the_others_move_up(host, batches):
    """As on Azure's host: whoever takes the ids of a batch by their places gets those of others."""
    several = [
        ServiceBusMessage(f"m{i}", correlation_id=correlation_id)
        for i, correlation_id in enumerate([None, "c-1", "", "c-3"])
    ]
    several[2].time_to_live = timedelta(minutes=1)
    batches.send_together(several)
    [batch] = host.wait_for("batch")
    until(batches.under_way, is_empty)
    assert batch["bodies"] == ["m0", "m1", "m2", "m3"]
    assert batch["correlations"] == ["c-1", "c-3", None, None]
    assert batch["expire"].index(min(batch["expire"])) == 2  # times have their places


def test_an_exception_abandons_the_whole_batch(host, batches):
    """One bad message brings its batch back; what the queue's count of tries allows is tried again."""
    batches.send("good", "fail")
    until(batches.dead, lambda dead: dead == 2)
    tries = [count for batch in host.seen("batch") for count in batch["tries"]]
    assert sorted(tries) == [1, 1, 2, 2]


def test_locks_of_single_messages_are_renewed_those_of_batches_are_lost(host, singles, batches):
    """A single message outlives its lock; a batch is not settled, says so in one line, and comes again."""
    singles.send("gate")
    batches.send("gate")
    until(batches.counts, lambda counts: (counts["active"], counts["locked"]) == (1, 0))
    host.open_gate()
    host.wait_for("batch", lambda seen: [batch["tries"] for batch in seen] == [[1], [2]])
    until(singles.under_way, is_empty)
    until(batches.under_way, is_empty)
    assert len(host.seen("single")) == 1
    assert host.logged("not settled: MessageLockLostError") == host.logged("WARNING") == 1
    assert host.logged("Traceback") == 0
