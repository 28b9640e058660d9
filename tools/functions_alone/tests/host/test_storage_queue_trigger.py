"""Storage Queue: tries, poison, how many at once, locks."""

import asyncio
import math

from azure.core.exceptions import AzureError, HttpResponseError, ResourceNotFoundError
from azure.storage.queue import QueueMessage

from functions_alone.host.host_json import QueueOptions
from functions_alone.host.index import StorageQueueTrigger
from functions_alone.host.storage_queue import LeasedMessage, StorageQueueListener
from functions_alone.tests.support.waiting import until


def messages_in(queue):
    return queue.get_queue_properties().approximate_message_count


def poisoned(queue):
    try:
        return [message.content for message in queue.poison.peek_messages(max_messages=32)]
    except ResourceNotFoundError:
        return []


def is_empty(messages):
    return messages == 0


def test_a_message_is_handled_and_deleted(host, shared_queue):
    """The function gets body, number of tries and time; when it returns, the message is gone."""
    shared_queue.send_message("hello ä <x>")
    [message] = host.wait_for("queue")
    until(lambda: messages_in(shared_queue), is_empty)
    assert (message["body"], message["tries"]) == ("hello ä <x>", 1)
    assert message["inserted"].endswith("+00:00")


def test_after_too_many_tries_a_message_is_poison(host, shared_queue):
    """A function that always fails is called maxDequeueCount times, then the message is set aside."""
    shared_queue.send_message("fail")
    shared_queue.send_message("fine")
    until(lambda: poisoned(shared_queue), lambda found: found == ["fail"])
    until(lambda: messages_in(shared_queue), is_empty)
    tries = [message["tries"] for message in host.seen("queue") if message["body"] == "fail"]
    assert tries == [1, 2]
    assert host.logged("function from_queue failed") == 2


def test_no_more_run_at_once_than_allowed(host, shared_queue):
    """batchSize 4 with newBatchThreshold 0 fetches four, and more only when all have ended."""
    shared_queue.send_message("gate")
    until(lambda: host.running("queue"), lambda running: running == (1, 1))
    for _ in range(11):
        shared_queue.send_message("slow 0.05")
    host.let_time_pass(seconds=1)
    assert host.running("queue") == (1, 1)
    host.open_gate()
    host.wait_for("queue", lambda seen: len(seen) == 12)
    assert host.running("queue")[1] == 4


def test_a_lock_is_renewed_while_the_function_runs(host, shared_queue):
    """A call that takes longer than the lock of two seconds keeps its message, and can still delete it."""
    shared_queue.send_message("gate")
    host.wait_for("queue")
    host.let_time_pass(seconds=3)
    host.open_gate()
    until(lambda: messages_in(shared_queue), is_empty)
    assert len(host.seen("queue")) == 1


class Answering:
    """A queue that answers renewals as it is told."""

    def __init__(self, *answers):
        self.answers = iter(answers)

    async def update_message(self, message_id, receipt, visibility_timeout):
        assert visibility_timeout == 600
        if answer := next(self.answers):
            raise answer
        return QueueMessage(pop_receipt=f"{receipt}+")


async def test_a_renewal_that_failed_is_tried_sooner_and_never_again_once_the_message_is_lost():
    """As in Azure: at half the time, then after half of that, but not within a tenth."""
    mismatch = HttpResponseError("not your message")
    mismatch.error_code = "PopReceiptMismatch"
    away = AzureError("away")
    trigger = StorageQueueTrigger(queue="q", connection="")
    listener = StorageQueueListener(
        trigger=trigger, call=Called(), options=QueueOptions(), lock_seconds=600
    )
    listener._queue = Answering(away, away, away, away, None, mismatch)
    held = LeasedMessage(message=QueueMessage(id="m"), receipt="r", renew_after=300, renew_at=0)
    pauses = []
    for _ in range(6):
        await listener._renew(held)
        pauses.append(held.renew_after)
    assert pauses == [150, 75, 60, 60, 300, math.inf]
    assert held.receipt == "r+"


async def test_what_fails_in_a_poison_queue_stays_there():
    """It has no poison queue of its own, as in Azure: however often it was tried, nothing is done with it."""
    trigger = StorageQueueTrigger(queue="q-poison", connection="")
    listener = StorageQueueListener(
        trigger=trigger, call=Called(), options=QueueOptions(), lock_seconds=600
    )
    for tries in (1, 1000):
        message = QueueMessage(id="m", dequeue_count=tries)
        held = LeasedMessage(message=message, receipt="r", renew_after=300, renew_at=0)
        await listener._settle(
            held, listener._verdict(message, succeeded=False)
        )  # there is no queue to call


class Noting:
    """Both queues of a listener: notes what is done to them, and is away for the first messages."""

    queue_name = "q-poison"

    def __init__(self, away=0):
        self.away, self.done = away, []

    async def send_message(self, content):
        if self.away:
            self.away -= 1
            raise AzureError("away")
        self.done.append(("sent", content))

    async def update_message(self, message_id, receipt, visibility_timeout):
        await asyncio.sleep(0)
        self.done.append(("renewed", receipt))
        return QueueMessage(pop_receipt=f"{receipt}+")

    async def delete_message(self, message_id, receipt):
        self.done.append(("deleted", receipt))


def holding(queues):
    """A listener that works on a message, on these queues."""
    trigger = StorageQueueTrigger(queue="q", connection="", binary=True)
    listener = StorageQueueListener(
        trigger=trigger, call=Called(), options=QueueOptions(), lock_seconds=600
    )
    listener._queue = listener._poison = queues
    message = QueueMessage(id="m", content="body")
    return listener, LeasedMessage(message=message, receipt="r", renew_after=300, renew_at=0)


async def test_a_message_is_in_the_poison_queue_before_it_is_deleted():
    """While that queue is away it stays where it is."""
    listener, held = holding(queues := Noting(away=1))
    await listener._settle(held, listener._move_to_poison)
    assert queues.done == [("sent", "body"), ("deleted", "r")]


async def test_a_message_is_settled_under_the_receipt_of_a_renewal_that_was_under_way():
    """The one before counts no more."""
    listener, held = holding(queues := Noting())
    held.renewing = asyncio.create_task(listener._renew(held))
    await listener._handle(held)
    assert queues.done == [("renewed", "r"), ("deleted", "r+")]


class Called:
    """Stands for the function."""

    def __init__(self):
        self.bodies = []

    async def succeeds(self, body, metadata):
        self.bodies.append(body.value)
        return True


async def test_what_is_not_base64_is_poison_without_a_call(services, work_queue):
    """With messageEncoding base64, which is the default, plain text never reaches the function."""
    trigger = StorageQueueTrigger(
        queue=work_queue.queue_name, connection=services.storage_connection_string, binary=True
    )
    called, stopping = Called(), asyncio.Event()
    listener = StorageQueueListener(
        trigger=trigger, call=called, options=QueueOptions(), lock_seconds=60
    )
    work_queue.send_message("not base64!")
    work_queue.send_message("aGVsbG8=")
    serving = asyncio.create_task(listener.run(stopping))
    await asyncio.to_thread(
        until, lambda: poisoned(work_queue), lambda found: found == ["not base64!"]
    )
    await asyncio.to_thread(until, lambda: messages_in(work_queue), is_empty)
    stopping.set()
    await serving
    assert called.bodies == [b"hello"]
