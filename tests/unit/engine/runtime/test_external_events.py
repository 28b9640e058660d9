"""Answers from outside as messages on the queue `answers`."""

import json
from datetime import timedelta
from unittest.mock import patch

import pytest

from engine.domain.causes import Cause, Code
from engine.domain.errors import UnavailableError, UnreadableRowError
from engine.domain.messages import ANSWERS
from engine.runtime.external_events import MAX_REDELIVERIES
from engine.storage.orders import OrderStore
from engine.storage.poison import Arrival
from engine.words.catalogue import text
from engine.words.causes import words_of
from testkit import WorkflowTestEnvironment
from testkit.memory import in_memory
from tests.support.apps import app as app_of
from tests.support.apps import bootstrap, functions, set_to
from tests.support.asking import ADA, ASKING, SENT
from tests.support.builders import ORDER_ID

PICTURES = SENT.model_dump(mode="json")


class Queue:
    """A test environment in which an order waits, and the function that takes answers off the queue."""

    def __init__(self):
        self.environment = WorkflowTestEnvironment(ASKING)
        self.order = self.environment.submit(ADA)
        self.world = self.environment._world

    def take(self, body=None, **content):
        message = {"orderId": self.order.id, "step": "pictures"} | content
        text = json.dumps(message) if body is None else body
        arrival = Arrival(at=self.environment.now, number="7")
        self.world.run(self.world.engine.external_event_inbox.take(text.encode(), None, arrival))
        self.environment.advance(seconds=1)

    def poison(self):
        found = self.world.run(self.world.engine.poison_store.page(ANSWERS, 10))
        return [words_of(message.reason) for message in found]

    def sent_again(self):
        return [
            message for message in self.world.engine.adapters.bus.sent if message.queue == ANSWERS
        ]


@pytest.fixture
def queue():
    return Queue()


@pytest.mark.proves("ANS-9", "ANS-3")
def test_a_message_answers_a_step_once(queue):
    """It needs no right; the same again changes nothing."""
    for _ in range(2):
        queue.take(answer=PICTURES)
    assert queue.order.steps["pictures"] == "Completed"
    assert (queue.poison(), queue.sent_again()) == ([], [])
    assert sum("step-answered" in line or "answered" in line for line in queue.order.history) == 1


@pytest.mark.proves("ANS-9")
def test_a_message_may_be_a_refusal(queue):
    """The step has failed then."""
    queue.take(refusal="there are none")
    assert (queue.order.outcome, queue.poison()) == ("undone", [])


@pytest.mark.proves("ANS-9")
@pytest.mark.parametrize(
    ("content", "reasons"),
    [
        ({"answer": {"urls": 1, "more": 2}}, ["answer.urls", "answer.more"]),
        ({}, ["either an answer or a refusal"]),
        ({"answer": PICTURES, "refusal": "no"}, ["either an answer or a refusal"]),
        ({"answer": PICTURES, "step": "check"}, ["check does not wait for an external event"]),
        ({"answer": PICTURES, "step": "X"}, ["step"]),
        ({"answer": PICTURES, "orderId": "1"}, ["orderId"]),
        ({"answer": PICTURES, "schemaVersion": 2}, ["schemaVersion"]),
        ({"body": "{"}, ["JSON"]),
    ],
)
def test_what_cannot_be_recorded_is_kept_as_poison_with_every_reason(queue, content, reasons):
    """And the order still waits."""
    queue.take(**content)
    (reason,) = queue.poison()
    assert [expected for expected in reasons if expected not in reason] == []
    assert (queue.order.steps["pictures"], queue.sent_again()) == ("Running", [])


@pytest.mark.proves("ANS-9", "ANS-4")
def test_an_answer_that_comes_too_late_is_kept_with_the_reason(queue):
    """Nothing is lost: an operator reads it."""
    queue.environment.act(queue.order, "cancel")
    queue.take(answer=PICTURES)
    (reason,) = queue.poison()
    assert text("cause.event-during-undo", why="").rstrip(": ") in reason


@pytest.mark.proves("ANS-9")
def test_an_answer_to_an_order_that_is_not_recorded_yet_comes_again(queue):
    """Later and later, for some minutes; then it is kept."""
    unknown = f"{queue.order.id[:4]}01JZZZZZZZZZZZZZZZZZZZZZZZ"
    queue.take(orderId=unknown, answer=PICTURES)
    for number in range(1, MAX_REDELIVERIES + 1):
        message = queue.sent_again()[-1]
        content = json.loads(message.body)
        assert content["again"] == number
        assert (content["orderId"], content["answer"]) == (unknown, PICTURES)
        assert queue.poison() == []
        queue.take(body=message.body)
    assert len({sent.message_id for sent in queue.sent_again()}) == MAX_REDELIVERIES
    pauses = [sent.not_before for sent in queue.sent_again()]
    assert pauses[-1] - pauses[0] > timedelta(minutes=4)
    (reason,) = queue.poison()
    assert unknown in reason


@pytest.mark.proves("ANS-9")
def test_an_answer_to_an_order_that_cannot_be_read_comes_again_and_is_kept_with_the_reason(queue):
    """A newer host may be able to read it."""
    unreadable = UnreadableRowError(Cause(Code.ROW_MISSING))
    with patch.object(OrderStore, "load", side_effect=unreadable):
        queue.take(answer=PICTURES)
        assert (queue.poison(), len(queue.sent_again())) == ([], 1)
        queue.take(answer=PICTURES, again=MAX_REDELIVERIES)
    assert queue.poison() == [text("cause.row-missing")]
    queue.take(body=queue.sent_again()[0].body)
    assert queue.order.steps["pictures"] == "Completed"


def test_the_log_repeats_nothing_that_an_outsider_wrote(queue, caplog):
    """Neither the names of fields nor the reason of a refusal; the poison row has them."""
    queue.take(answer={"grace@example.org": 1})
    queue.take(refusal="Ada is on holiday")
    queue.take(answer=PICTURES)
    first, second = queue.poison()
    assert "grace@example.org" in first
    assert "Ada is on holiday" in second
    logged = [str(vars(record)) for record in caplog.records]
    assert len([line for line in logged if "customers.answer_rejected" in line]) == 2
    assert [line for line in logged if "grace@" in line or "holiday" in line] == []


@pytest.mark.proves("ANS-9")
async def test_the_queue_is_there_only_where_a_workflow_waits(monkeypatch):
    """So no other app listens to it; where it is there, outages are waited for."""
    shop = {
        function.get_function_name() for function in functions(app_of(in_memory())).get_functions()
    }
    assert "customers_answers" not in shop
    assert ANSWERS not in app_of(in_memory()).engine.bus_queues
    app = bootstrap(set_to(addresses={"office": "http://office"}), ASKING, in_memory())
    assert ANSWERS in app.engine.bus_queues
    bound = {function.get_function_name(): function for function in functions(app).get_functions()}
    trigger = bound["customers_answers"].get_trigger().get_dict_repr()
    assert trigger["queueName"] == ANSWERS
    body = {"orderId": ORDER_ID, "step": "pictures", "answer": PICTURES}
    taken = []

    async def take(_self, body, correlation_id, arrival):
        taken.append((json.loads(body), correlation_id))
        if len(taken) == 1:
            raise UnavailableError

    monkeypatch.setattr(type(app.engine.external_event_inbox), "take", take)
    await bound["customers_answers"].get_user_function()(_Message(json.dumps(body).encode()))
    assert taken == [(body, None)] * 2


class _Message:
    """What the host hands over."""

    correlation_id, sequence_number, enqueued_time_utc = "", 1, None

    def __init__(self, body):
        self.body = body

    def get_body(self):
        return self.body
