"""Who is told that an answer from outside is awaited, and what operators can change of that."""

import json
from base64 import b64encode

import pytest
from azure.functions import FunctionApp
from azure.functions.queue import QueueMessage

from engine.alerts import events as alerts
from engine.domain.causes import Cause, Code
from engine.domain.errors import UnknownOrderError
from engine.domain.events import StepStarted
from engine.domain.keys import bucket_of
from engine.features.external_events.notifications import EVENT_AWAITED, EVENT_REMINDED, NEWS
from engine.storage import outbox
from engine.storage.alert_log import AlertLog
from engine.storage.order_rows import state_record
from engine.storage.orders import columns_of_record, state_key
from engine.storage.tables import Replace
from engine.words.causes import words_of
from operations.alerts.triggers import alert_functions
from operations.api.external_events import ExtendRequest
from operations.api.requests import OperatorRequest, OrdersPage
from testkit import WorkflowTestEnvironment
from testkit.memory import of_columns
from tests.support.acting import is_refused
from tests.support.asking import ADA, ASKING, DAYS, SENT
from tests.support.builders import NOW, orders

GRACE = OperatorRequest(operator="grace", note="they are away")
QUEUE = "status-example"


def begun(business=ASKING):
    environment = WorkflowTestEnvironment(business)
    return environment, environment.submit(ADA)


def desk(environment):
    return environment._world.operations.services.external_events


def snapshot(environment, order):
    return environment._world.run(environment._world.engine.store.load(order.id))


def events(environment):
    """The events about answers that were published, with what they say."""
    found = [event for event in environment._world.events.published if event.type in NEWS]
    assert [event.subject for event in found] == [
        f"orders/{event.data['orderId']}" for event in found
    ]
    return [(event.type, event.data["step"], event.data["until"]) for event in found]


def extend(environment, order, until, step="pictures"):
    request = ExtendRequest(operator="grace", note="they are away", until=until)
    return environment._world.run(desk(environment).extend_deadline(order.id, step, request))


def remind(environment, order, step="pictures"):
    return environment._world.run(desk(environment).remind(order.id, step, GRACE))


# Who is told


@pytest.mark.proves("ANS-7")
def test_whoever_subscribes_learns_what_is_awaited_and_of_every_reminder():
    """By events that are no alerts, with neither the question nor the link."""
    environment, _ = begun()
    until = environment.now + 5 * DAYS
    environment.advance(minutes=1)
    assert events(environment) == [(EVENT_AWAITED, "pictures", until.isoformat())]
    environment.advance(days=5)
    assert [event[0] for event in events(environment)] == [EVENT_AWAITED, EVENT_REMINDED]
    published = repr(environment._world.events.published)
    assert "Ada" not in published
    assert "right" not in published
    data = environment._world.events.published[0].data
    assert (data["actionRequired"], data["actions"]) == (False, [])
    assert environment.alerts() == []


@pytest.mark.proves("ANS-7")
def test_a_reminder_of_an_operator_is_an_event_of_its_own():
    """Also before the time is up for the first time."""
    environment, order = begun()
    environment.advance(minutes=1)
    remind(environment, order)
    environment.advance(minutes=1)
    assert [event[0] for event in events(environment)] == [EVENT_AWAITED, EVENT_REMINDED]


@pytest.mark.proves("ANS-6", "ANS-7")
def test_a_new_link_is_no_news_for_those_who_subscribe():
    """Only the operator who asked for it gets it: the answer was awaited before, and is awaited until then."""
    environment, order = begun()
    environment.advance(minutes=1)
    before = events(environment)
    environment._world.run(desk(environment).new_callback_url(order.id, "pictures", GRACE))
    environment.advance(minutes=1)
    assert events(environment) == before


@pytest.mark.proves("ANS-7", "ALR-2")
def test_the_sender_gets_the_link_with_every_notice():
    """So the shop writes the mail; the question is behind the link."""
    environment, order = begun()
    waiting = snapshot(environment, order)
    subscribed = orders.having(waiting, reply_to=QUEUE)
    entry = next(
        entry
        for entry in environment._world.run(environment._world.engine.store.history(order.id))
        if any(isinstance(event, StepStarted) and event.is_external for event in entry.events)
    )
    notices = [
        json.loads(notice.body)
        for notice in outbox.notices_of(waiting, subscribed, entry, "https://in.memory")
    ]
    awaited = [notice for notice in notices if notice["event"] == "answer-awaited"]
    token = waiting.step("pictures").callback_token
    assert [(notice["step"], notice["until"], notice["callbackUrl"]) for notice in awaited] == [
        (
            "pictures",
            (environment.now + 5 * DAYS).isoformat(),
            f"https://in.memory/api/answers/{order.id}/pictures?token={token}",
        )
    ]
    assert "Ada" not in repr(notices)
    without = [json.loads(notice.body) for notice in outbox.notices_of(waiting, subscribed, entry)]
    assert "callbackUrl" not in without[-1]


@pytest.mark.proves("ALR-2")
def test_the_sender_learns_of_an_answer_as_of_any_step():
    """And gets the address of the app from what the store was told."""
    environment, order = begun()
    store = environment._world.engine.store
    with_sender = orders.having(snapshot(environment, order), reply_to=QUEUE)
    environment._world.run(store.table.submit(*_state_of(store, with_sender)))
    remind(environment, order)
    environment.answer(order, "pictures", SENT)
    environment.advance(minutes=1)
    sent = [
        message for message in environment._world.engine.adapters.bus.sent if message.queue == QUEUE
    ]
    notices = [json.loads(message.body) for message in sent]
    assert [(notice["event"], notice["step"]) for notice in notices] == [
        ("answer-reminded", "pictures"),
        ("step-completed", "pictures"),
        ("answer-awaited", "approval"),
    ]
    assert notices[0]["callbackUrl"].startswith(
        f"https://in.memory/api/answers/{order.id}/pictures?"
    )


def _state_of(store, order):
    row = columns_of_record(state_record(order))
    return bucket_of(order.order_id), [Replace(state_key(order.order_id), row, order.etag)]


async def test_an_event_about_an_answer_is_no_alert_of_the_operators():
    """Their list has what needs them; the list Waiting has these orders."""
    log, triggers = AlertLog(of_columns()), FunctionApp()
    triggers.register_functions(alert_functions(log, None, None, None, lambda _: []))
    (record,) = (
        function
        for function in triggers.get_functions()
        if function.get_function_name() == "alerts_record"
    )
    for kind in (EVENT_AWAITED, EVENT_REMINDED, alerts.STALLED):
        event = {
            "specversion": "1.0",
            "id": kind,
            "type": kind,
            "time": NOW.isoformat(),
            "data": {},
        }
        body = b64encode(json.dumps(event).encode())
        await record.get_user_function()(QueueMessage(body=body, id="m", insertion_time=NOW))
    assert [alert.event.type for alert in await log.newest(10)] == [alerts.STALLED]


# What operators change


@pytest.mark.proves("ANS-7")
def test_an_operator_waits_longer_for_an_answer():
    """The order's deadline moves, it is due later in the list, and the sender is told."""
    environment, order = begun()
    until = environment.now + 20 * DAYS
    assert extend(environment, order, until).status == "extended"
    extended = snapshot(environment, order)
    assert extended.step("pictures").complete_by == extended.derived.complete_by == until
    assert "wait-extended: pictures until 2026-01-25 09:00:00 UTC: they are away" in order.history
    environment.advance(days=6)
    assert snapshot(environment, order).step("pictures").counts.failures == 0
    assert events(environment)[-1] == (EVENT_AWAITED, "pictures", until.isoformat())
    environment.advance(days=15)
    assert snapshot(environment, order).step("pictures").counts.failures == 1


@pytest.mark.proves("ANS-7", "OPR-1")
def test_the_list_of_what_is_awaited_begins_with_the_first_that_is_due():
    """Whichever came first."""
    environment, first = begun()
    second = environment.submit(ADA)
    extend(environment, first, environment.now + 9 * DAYS)
    page = OrdersPage(state="Waiting")
    listed = environment._world.run(environment._world.operations.orders.list(page)).orders
    assert [order.order_id for order in listed] == [second.id, first.id]
    assert [order.waits_for for order in listed] == [["pictures"]] * 2


# What operators see


@pytest.mark.proves("ANS-5", "ANS-7")
def test_operators_read_the_question_without_personal_data():
    """With the fields of the answer, until when it waits, and how often it was asked for."""
    environment, order = begun()
    environment.advance(days=6)
    shown = question(environment, order, "pictures")
    assert shown.question == {"text": "Please send pictures, hidden"}
    assert (shown.requests_sent, shown.asks, shown.fields) == (2, 3, ["urls", "by"])
    assert shown.until == snapshot(environment, order).step("pictures").complete_by
    assert shown.why_closed is None
    environment.answer(order, "pictures", SENT)
    shown = question(environment, order, "pictures")
    assert (shown.why_closed, shown.until) == (
        words_of(Cause(Code.EVENT_AFTER_COMPLETION, {"step": "pictures"})),
        None,
    )


def test_a_question_that_cannot_be_made_yet_is_null():
    """That of the approval needs the pictures; it can be answered all the same."""
    environment, order = begun()
    shown = question(environment, order, "approval")
    assert (shown.question, shown.until, shown.requests_sent, shown.fields) == (
        None,
        None,
        0,
        ["limit"],
    )
    with is_refused(Code.NOT_EXTERNAL, step="check"):
        question(environment, order, "check")
    with pytest.raises(UnknownOrderError):
        environment._world.run(desk(environment).show("b00-01JZZZZZZZZZZZZZZZZZZZZZZZ", "pictures"))


def test_a_step_says_whether_an_answer_to_it_counts_now():
    """An early one does; one to a step of a service, or after it was answered, does not."""
    environment, order = begun()

    def open_steps():
        view = environment._world.run(environment._world.operations.orders.inspect(order.id))
        return {step.name for step in view.steps if step.takes_answer}

    assert open_steps() == {"pictures", "approval"}
    environment.answer(order, "pictures", SENT)
    assert open_steps() == {"approval"}


def question(environment, order, step):
    return environment._world.run(desk(environment).show(order.id, step))
