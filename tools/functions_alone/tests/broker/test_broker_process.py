"""The broker as a process: configuration, ports, restart, and clients that misbehave."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusSubQueue

from functions_alone.tests.support.broker_process import (
    opened,
    run_node,
    running_broker,
    write_config,
)
from functions_alone.tests.support.waiting import PATIENCE_SECONDS

FAULTY = {
    "LockDuration": "PT6M",
    "DefaultMessageTimeToLive": "P1D",
    "DuplicateDetectionHistoryTimeWindow": "PT10M",
    "MaxDeliveryCount": 2001,
    "RequiresSession": True,
    "ForwardTo": "elsewhere",
    "ForwardDeadLetteredMessagesTo": 7,
    "RequiresDuplicateDetection": "yes",
    "LockDurration": "PT1S",
}


async def outcome(*arguments) -> tuple[int, str]:
    """Exit code and error text of a broker that should not start."""
    process = await run_node(*arguments)
    _, error = await process.communicate()
    return process.returncode, error.decode()


async def test_every_fault_of_a_configuration_is_named(tmp_path):
    """A faulty Config.json ends the broker with code 2 and one message that names every fault."""
    config = write_config(
        tmp_path / "Config.json", {"good": {}, "Good": {}, "bad name": {}, "faulty": FAULTY}
    )
    content = json.loads(config.read_text())
    content["UserConfig"]["Namespaces"][0] |= {"Name": "mine", "Topics": [{"Name": "t"}]}
    config.write_text(json.dumps(content))
    code, error = await outcome("--config", config, "--data", tmp_path)
    assert code == 2
    for named in (*FAULTY, "sbemulatorns", "Topics", '"bad name"', '"Good" is there twice'):
        assert named in error
    assert len(error.strip().splitlines()) == 1 + len(FAULTY) + 4


@pytest.mark.parametrize(
    ("target", "fault"),
    [
        ("nowhere", 'there is no queue "nowhere"'),
        ("b", "itself forwards"),
        ("a", "itself forwards"),
    ],
)
async def test_dead_letters_are_forwarded_once_and_to_a_queue_that_is_there(
    tmp_path, target, fault
):
    """So they never go round in a circle."""
    forwards = {"ForwardDeadLetteredMessagesTo": target}
    queues = {"a": forwards, "b": {"ForwardDeadLetteredMessagesTo": "c"}, "c": {}}
    config = write_config(tmp_path / "Config.json", queues)
    code, error = await outcome("--config", config, "--data", tmp_path)
    assert (code, fault in error) == (2, True)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        pytest.param(None, "no such file", id="no file"),
        pytest.param("{", "JSON", id="no JSON"),
        pytest.param("{}", "exactly one namespace", id="no namespace"),
        pytest.param("null", "exactly one namespace", id="null"),
    ],
)
async def test_unreadable_configuration_is_refused(tmp_path, content, named):
    """A configuration that is missing or no configuration ends the broker with code 2 and says so."""
    config = tmp_path / "Config.json"
    if content is not None:
        config.write_text(content)
    code, error = await outcome("--config", config, "--data", tmp_path)
    assert code == 2
    assert named in error


async def test_missing_arguments_are_refused():
    """Without --config the broker says what it needs, with code 2."""
    code, error = await outcome("--port", "0")
    assert (code, error.strip()) == (2, "--config and --data are needed.")


async def test_taken_port_is_one_clear_line(broker, tmp_path):
    """A port that is taken ends the broker with code 1 and one line, before it touches a journal."""
    config = write_config(tmp_path / "Config.json", {"q": {}})
    code, error = await outcome("--config", config, "--data", tmp_path, "--port", str(broker.port))
    assert (code, error.strip()) == (1, f"Port {broker.port} is taken by another process.")
    assert not (tmp_path / "broker.journal").exists()


async def test_killed_broker_has_lost_nothing(tmp_path):
    """After SIGKILL and a new start every message is there, in its state, and the duplicate window goes on."""
    queues = {"q": {"LockDuration": "PT1M"}, "u": {"RequiresDuplicateDetection": True}}
    far = datetime.now(UTC) + timedelta(hours=1)
    async with running_broker(tmp_path, queues) as broker:
        async with (
            broker.connect() as client,
            opened(*links_of(client)) as (sender, unique_sender, receiver, _),
        ):
            await sender.send_messages(
                [ServiceBusMessage(f"m{i}", subject="kept") for i in range(5)]
            )
            deferred, dead, completed, abandoned, locked = await receiver.receive_messages(
                5, max_wait_time=PATIENCE_SECONDS
            )
            await receiver.defer_message(deferred)
            await receiver.dead_letter_message(dead, reason="Why", error_description="because")
            await receiver.complete_message(completed)
            await receiver.abandon_message(abandoned)
            [scheduled] = await sender.schedule_messages(ServiceBusMessage("s"), far)
            await unique_sender.send_messages(ServiceBusMessage("first", message_id="one"))
        before = (await broker.health())["queues"]
        await broker.kill()
        await broker.start()
        assert (await broker.health())["queues"] == before
        async with (
            broker.connect() as client,
            opened(*links_of(client)) as (sender, unique_sender, receiver, dead_letters),
        ):
            await sender.send_messages(ServiceBusMessage("new"))
            await unique_sender.send_messages(ServiceBusMessage("second", message_id="one"))
            again, new = await receiver.receive_messages(2, max_wait_time=PATIENCE_SECONDS)
            assert (str(again), again.subject, again.delivery_count) == ("m3", "kept", 1)
            assert new.sequence_number > scheduled
            [deferred] = await receiver.receive_deferred_messages(deferred.sequence_number)
            assert str(deferred) == "m0"
            # A lock belongs to the message: it outlives the link, and even the broker.
            await receiver._settle_message_via_mgmt_link("completed", [locked.lock_token])
            [dead] = await dead_letters.receive_messages(1, max_wait_time=PATIENCE_SECONDS)
            reasons = (dead.dead_letter_reason, dead.dead_letter_error_description)
            assert (str(dead), *reasons) == ("m1", "Why", "because")
            await sender.cancel_scheduled_messages(scheduled)
        assert (await broker.health())["queues"]["u"]["active"] == 1


def links_of(client):
    """Senders to both queues, and receivers of the first and of its dead letters."""
    dead_letters = client.get_queue_receiver("q", sub_queue=ServiceBusSubQueue.DEAD_LETTER)
    return (
        client.get_queue_sender("q"),
        client.get_queue_sender("u"),
        client.get_queue_receiver("q"),
        dead_letters,
    )


async def test_clients_carry_on_after_a_restart(tmp_path):
    """The broker stops although clients are connected; they send and settle with the next one."""
    async with (
        running_broker(tmp_path, {"q": {}}) as broker,
        broker.connect(retry_backoff_factor=0.1) as client,
        opened(client.get_queue_sender("q"), client.get_queue_receiver("q")) as (sender, receiver),
    ):
        await sender.send_messages(ServiceBusMessage("before"))
        [message] = await receiver.receive_messages(1, max_wait_time=PATIENCE_SECONDS)
        assert await broker.stop() == 0
        await broker.start()
        await sender.send_messages(ServiceBusMessage("after"))
        await receiver.complete_message(message)
        assert (await broker.health())["queues"]["q"]["locked"] == 0
        [message] = await receiver.receive_messages(1, max_wait_time=PATIENCE_SECONDS)
        assert str(message) == "after"
        await receiver.complete_message(message)


@pytest.mark.parametrize(
    "garbage",
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="HTTP"),
        pytest.param(os.urandom(4096), id="random"),
        pytest.param(b"AMQP\x00\x01\x00\x00" + b"\xff" * 64, id="a frame of 4 GB"),
        pytest.param(
            b"AMQP\x00\x01\x00\x00\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x99\x45",
            id="no performative",
        ),
        pytest.param(
            b"AMQP\x03\x01\x00\x00\x00\x00\x00\x10\x02\x01\x00\x00" + b"\x00" * 8, id="no SASL"
        ),
    ],
)
async def test_garbage_closes_only_its_own_connection(broker, plain, garbage):
    """A connection that sends no AMQP is closed by the broker, and everything else goes on."""
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
    writer.write(garbage)
    with contextlib.suppress(ConnectionResetError):
        while await reader.read(4096):
            pass
    writer.close()
    await plain.send("still here")
    await plain.complete(*await plain.receive())


KILLED_CLIENT = """
import asyncio, sys, os, signal
from azure.servicebus.aio import ServiceBusClient
async def main():
    async with ServiceBusClient.from_connection_string(sys.argv[1]) as client:
        async with client.get_queue_receiver("quick", prefetch_count=10) as receiver:
            print(len(await receiver.receive_messages(1, max_wait_time=10)), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


async def test_messages_of_a_killed_client_come_back_when_their_locks_end(broker, special):
    """What a killed client held is delivered to another one after the lock, each once, and counted."""
    queue = special("quick")
    await queue.send("k1", "k2", "k3")
    command = [sys.executable, "-c", KILLED_CLIENT, broker.connection_string]
    killed = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, check=False
    )
    assert (killed.returncode, killed.stdout) == (-9, "1\n"), killed.stderr
    messages = await queue.receive(3)
    await queue.complete(*messages)
    assert sorted(str(message) for message in messages) == ["k1", "k2", "k3"]
    assert {message.delivery_count for message in messages} == {1}


@pytest.mark.soak
async def test_fifty_connections_at_once(broker, special):
    """Fifty clients with a connection each send and receive at the same time; nothing is lost or doubled."""
    queue = special("plain")

    async def send(number):
        async with broker.connect() as client, client.get_queue_sender("plain") as sender:
            await sender.send_messages([ServiceBusMessage(f"{number}-{i}") for i in range(4)])

    await asyncio.gather(*(send(number) for number in range(50)))
    messages = await queue.receive(200)
    await queue.complete(*messages)
    assert sorted(map(str, messages)) == sorted(
        f"{number}-{i}" for number in range(50) for i in range(4)
    )


@pytest.mark.soak
async def test_many_deliveries_on_one_link(special):
    """One link delivers more messages than rhea has room for unsettled ones, also behind one that is held."""
    queue = special("plain")
    await queue.send("held")
    [held] = await queue.receive()
    for _ in range(5):
        await queue.sender.send_messages(
            [ServiceBusMessage(uuid.uuid4().bytes) for _ in range(450)]
        )
    for _ in range(5):
        await queue.complete(*await queue.receive(450))
    await queue.complete(held)
