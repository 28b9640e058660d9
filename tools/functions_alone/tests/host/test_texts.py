"""Messages of a trigger that does not say `data_type=BINARY` are texts, and are read on the way (host.md 2 and 3)."""

from azure.core.exceptions import ResourceNotFoundError

from functions_alone.tests.support.waiting import until


def poisoned(queue):
    try:
        return [message.content for message in queue.poison.peek_messages()]
    except ResourceNotFoundError:
        return []


def test_one_message_that_is_no_json_spoils_its_batch(host, bus_queue):
    """Its neighbours are dead letters too; what is JSON alone arrives, written anew."""
    queue = bus_queue("texts-together")
    queue.send("1", "hello", "2")
    until(queue.dead, lambda dead: dead == 3)
    queue.send('{"amount": 1.50}')
    [batch] = host.wait_for("texts-from-bus")
    assert batch["bodies"] == ['{"amount": 1.5}']


def test_a_body_of_one_message_replaces_its_metadata(host, bus_queue):
    """What is not UTF-8 is replaced."""
    queue = bus_queue("texts")
    queue.send('{"messageId": "theirs"}', message_id="m")
    queue.send(b"\xff", message_id="m")
    seen = host.wait_for("text-from-bus", lambda seen: len(seen) == 2)
    assert {(message["body"], message["id"]) for message in seen} == {
        ('{"messageId": "theirs"}', "theirs"),
        ("\ufffd", "m"),
    }


def test_a_storage_queue_does_the_same_but_for_what_is_no_text(host, text_queue):
    """That reaches no function, and is poison after its tries (webjobs.md 7)."""
    text_queue.send_message('{"id": 5}')
    [message] = host.wait_for("text-from-queue")
    assert message == {"body": '{"id": 5}', "id": "5"}
    text_queue.send_message('{"insertionTime": "never"}')
    until(lambda: poisoned(text_queue), lambda found: found == ['{"insertionTime": "never"}'])
    assert host.seen("text-from-queue") == [message]
