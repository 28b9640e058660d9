"""The broker under load: kills, a hundred thousand messages. Each has its own broker."""

import asyncio
import contextlib
import gc
import uuid
from pathlib import Path

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusReceiveMode
from azure.servicebus.exceptions import ServiceBusError

from functions_alone.tests.support.broker_process import BrokerProcess, running_broker
from functions_alone.tests.support.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.soak

MANY = 100_000
KILLS = 10


class Load:
    """Sends and completes all the time, and notes what the broker has answered."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker
        self.sent: set[str] = set()
        self.completed: set[str] = set()
        self.again: set[str] = set()
        self.stopping = False

    async def send(self) -> None:
        while not self.stopping:
            with contextlib.suppress(ServiceBusError):
                async with (
                    self.broker.connect(retry_total=0) as client,
                    client.get_queue_sender("q") as sender,
                ):
                    while not self.stopping:
                        bodies = [uuid.uuid4().hex for _ in range(20)]
                        await sender.send_messages([ServiceBusMessage(body) for body in bodies])
                        self.sent.update(bodies)

    async def receive(self) -> None:
        while not (self.stopping and self.sent <= self.completed):
            with contextlib.suppress(ServiceBusError):
                async with (
                    self.broker.connect(retry_total=0) as client,
                    client.get_queue_receiver("q") as receiver,
                ):
                    while not (self.stopping and self.sent <= self.completed):
                        for message in await receiver.receive_messages(20, max_wait_time=0.5):
                            await self._complete(receiver, message)

    async def _complete(self, receiver, message) -> None:
        body = str(message)
        if body in self.completed:
            self.again.add(body)
        await receiver.complete_message(message)
        self.completed.add(body)


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # the SDK leaves broken sockets open
async def test_kills_under_load_lose_nothing_and_undo_nothing(tmp_path):
    """Of ten SIGKILLs: what was accepted is received, and what was completed does not come again."""
    async with running_broker(tmp_path, {"q": {"LockDuration": "PT2S"}}) as broker:
        load = Load(broker)
        async with asyncio.timeout(300), asyncio.TaskGroup() as group:
            for task in (load.send, load.receive):
                group.create_task(task())
            for _ in range(KILLS):
                done = len(load.completed)
                await eventually(lambda done=done: more_than(load.completed, done + 200))
                await broker.kill()
                await broker.start()
            load.stopping = True
        assert load.sent <= load.completed
        assert load.again == set()
        assert len(load.sent) > KILLS * 200
    gc.collect()  # those sockets are this test's


async def more_than(what, count):
    assert len(what) > count
    return True


async def send(sender, count: int, body: bytes = b"x") -> None:
    for _ in range(count // 100):
        await sender.send_messages([ServiceBusMessage(body) for _ in range(100)])


async def test_old_lock_does_not_stall_its_link(tmp_path):
    """While one message is held, more deliveries pass on its link than rhea has room for; then it can be completed."""
    async with (
        running_broker(tmp_path, {"q": {"LockDuration": "PT5M"}}) as broker,
        broker.connect() as client,
        client.get_queue_sender("q") as sender,
        client.get_queue_receiver("q", prefetch_count=1000) as receiver,
    ):
        await sender.send_messages(ServiceBusMessage("held"))
        [held] = await receiver.receive_messages(1, max_wait_time=PATIENCE_SECONDS)
        passed = 0
        while passed < 70_000:
            await send(sender, 1000)
            for message in await receiver.receive_messages(1000, max_wait_time=PATIENCE_SECONDS):
                await receiver.complete_message(message)
                passed += 1
            await receiver.renew_message_lock(held)
        await receiver.complete_message(held)


def memory_mb(broker: BrokerProcess) -> int:
    """The resident memory of the broker."""
    status = Path(f"/proc/{broker.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) // 1024


async def test_memory_is_given_back(tmp_path):
    """After a hundred thousand messages of a kilobyte have come and gone the broker has little more than before."""
    async with (
        running_broker(tmp_path, {"q": {}}) as broker,
        broker.connect() as client,
        client.get_queue_sender("q") as sender,
    ):
        before = memory_mb(broker)
        await send(sender, MANY, b"x" * 1024)
        full = memory_mb(broker)
        mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE
        async with client.get_queue_receiver(
            "q", receive_mode=mode, prefetch_count=1000
        ) as receiver:
            received = 0
            while received < MANY:
                received += len(
                    await receiver.receive_messages(1000, max_wait_time=PATIENCE_SECONDS)
                )
        assert full > before + 100

        async def given_back():
            assert memory_mb(broker) < before + 110, (
                f"{before} MB before, {full} MB full, {memory_mb(broker)} MB now"
            )
            return True

        await eventually(given_back)
