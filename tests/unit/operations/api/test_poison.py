"""What an operator may do with a poison message."""

from base64 import b64encode
from dataclasses import replace
from datetime import timedelta

import azure.functions as func
import pytest
from azure.functions.queue import QueueMessage
from azure.functions.servicebus import ServiceBusMessage

from engine.domain.causes import Code
from engine.domain.errors import RefusedError, UnavailableError, UnknownMessageError
from engine.domain.messages import DEAD_LETTERS
from engine.storage.poison import MAX_BODY_BYTES, PART, Arrival, PoisonMessage
from engine.storage.tables import Put
from operations.api.poison import MAX_COUNTED, PoisonView, source_of
from operations.api.requests import OperatorRequest, PoisonPage
from operations.api.triggers import given_up, poison_functions
from operations.api.views import Count
from testkit.memory import in_memory
from tests.support.acting import is_refused
from tests.support.apps import app
from tests.support.away import away
from tests.support.builders import NOW, ORDER_ID, refusal
from tests.support.kept import SUBMISSIONS, kept, poison_on

GRACE = OperatorRequest(operator="grace", note="mended")
PAYMENT = "payment-responses"


class World:
    """One storage queue and one bus queue."""

    def __init__(self):
        self.number = 0
        self.app = app(in_memory(clock=lambda: NOW))
        self.poison, self.bus = self.app.engine.poison_store, self.app.engine.adapters.bus
        self.service = poison_on(self.app, PAYMENT)

    async def keep(self, source, body, correlation_id=None):
        self.number += 1
        arrival = Arrival(at=NOW + timedelta(seconds=self.number), number=str(self.number))
        await self.poison.put(source, body, refusal("why"), arrival, correlation_id)
        return (await self.poison.page(source, 1000))[-1].message_id

    async def redrive(self, source, message_id):
        await self.service.redrive(source, message_id, GRACE)

    async def ids(self):
        return [message.message_id for message in await kept(self.poison)]


@pytest.fixture
def world():
    return World()


@pytest.mark.proves("SUB-4", "FLT-6")
async def test_a_message_goes_back_with_what_it_means_nothing_without(world):
    """A reply keeps its correlation id; its new message id escapes duplicate detection."""
    message_id = await world.keep(PAYMENT, b'{"a": "\xc3\xa9"}', "o:payment:1:do")
    await world.redrive(PAYMENT, message_id)
    (sent,) = world.bus.sent
    assert (sent.queue, sent.body, sent.correlation_id) == (PAYMENT, '{"a": "é"}', "o:payment:1:do")
    assert sent.time_to_live is None
    assert await world.ids() == []


@pytest.mark.proves("SUB-4")
async def test_a_message_of_which_no_correlation_id_is_known_goes_back_under_its_own_id(world):
    """Nothing is sent without one: the ids of a batch would move up."""
    await world.redrive(PAYMENT, await world.keep(PAYMENT, b"{}"))
    (sent,) = world.bus.sent
    assert sent.correlation_id == sent.message_id


@pytest.mark.proves("SUB-4", "FLT-6")
async def test_every_message_that_is_put_back_is_a_message_of_its_own(world):
    """Else a queue that knows ids would drop the second."""
    for message_id in [await world.keep(PAYMENT, b"{}", "c-1") for _ in range(2)]:
        await world.redrive(PAYMENT, message_id)
    assert [message.correlation_id for message in world.bus.sent] == ["c-1", "c-1"]
    assert len({message.message_id for message in world.bus.sent}) == 2


@pytest.mark.proves("SUB-4", "FLT-6")
async def test_what_was_interrupted_is_put_back_as_the_same_message(world, monkeypatch):
    """A crash before the row is removed: it is there still, and goes under the same id again."""
    message_id = await world.keep(PAYMENT, b"{}")
    with monkeypatch.context() as dying:
        dying.setattr(world.poison, "remove", away)
        with pytest.raises(UnavailableError):
            await world.redrive(PAYMENT, message_id)
    assert await world.ids() == [message_id]
    await world.redrive(PAYMENT, message_id)
    assert await world.ids() == []
    first, again = world.bus.sent
    assert first == again


@pytest.mark.proves("SUB-4", "FLT-6")
@pytest.mark.parametrize("other", ["redrive", "drop"])
async def test_whoever_else_settles_a_message_that_is_being_put_back_is_in_nobodys_way(
    world, monkeypatch, other
):
    """Both have read it: it is sent, the same one each time, and kept no more."""
    message_id, send = await world.keep(PAYMENT, b"{}"), world.bus.send

    async def meanwhile(messages):
        await send(messages)
        monkeypatch.undo()
        await getattr(world.service, other)(PAYMENT, message_id, GRACE)

    monkeypatch.setattr(world.bus, "send", meanwhile)
    await world.redrive(PAYMENT, message_id)
    assert [sent.body for sent in world.bus.sent] == ["{}"] * (2 if other == "redrive" else 1)
    assert len({sent.message_id for sent in world.bus.sent}) == 1
    assert await world.ids() == []


def exactly(count):
    return Count(count=count, at_least=False)


async def test_a_count_that_ends_early_says_so(world):
    """A hundred are counted of each queue; a hundred does not stand for thousands."""
    for number in range(MAX_COUNTED):
        await world.keep(SUBMISSIONS, str(number).encode())
    assert await world.service.count() == {SUBMISSIONS: exactly(MAX_COUNTED)}
    await world.keep(SUBMISSIONS, b"one more")
    assert await world.service.count() == {SUBMISSIONS: Count(count=MAX_COUNTED, at_least=True)}


@pytest.mark.proves("SUB-4")
async def test_a_message_that_cannot_be_put_back_is_not_removed(world, caplog, monkeypatch):
    """The queue is away: it stays, and nobody is on record for having put it back."""
    message_id = await world.keep(SUBMISSIONS, b"{}")
    monkeypatch.setattr(world.app.operations.storage_queues[SUBMISSIONS], "put", away)
    with pytest.raises(UnavailableError):
        await world.redrive(SUBMISSIONS, message_id)
    assert await world.ids() == [message_id]
    assert "operators.poison_settled" not in caplog.messages


@pytest.mark.proves("SUB-4")
async def test_what_would_not_be_the_same_message_is_refused(world):
    """Bytes that are no text, and what was kept shortened: both stay, and can be dropped."""
    ids = [await world.keep(PAYMENT, body) for body in (b"\xff", b"x" * (MAX_BODY_BYTES + 1))]
    for message_id in ids:
        with pytest.raises(RefusedError):
            await world.redrive(PAYMENT, message_id)
    assert await world.ids() == ids
    for message_id in ids:
        await world.service.drop(PAYMENT, message_id, GRACE)
    assert (await world.ids(), world.bus.sent) == ([], [])


@pytest.mark.parametrize("action", ["redrive", "drop"])
async def test_who_did_it_and_why_is_logged(world, caplog, action):
    """The log is the only record of it."""
    message_id = await world.keep(SUBMISSIONS, b"{}")
    await getattr(world.service, action)(SUBMISSIONS, message_id, GRACE)
    (line,) = [record for record in caplog.records if record.message == "operators.poison_settled"]
    assert line.operator == "grace"
    assert line.note == "mended"
    assert line.queue == SUBMISSIONS
    assert line.message_id == message_id


@pytest.mark.parametrize("source", [SUBMISSIONS, "status-y", "", "../order-submissions", "leases"])
@pytest.mark.parametrize("message_id", ["m7", "", "\ud800", "a/b"], ids=range(4))
async def test_an_unknown_message_is_unknown_in_any_queue(world, source, message_id):
    """Also in one that is not the app's, and whatever it is called."""
    await world.poison.put("status-x", b"{}", refusal("r"), Arrival(at=NOW))
    for action in (world.service.redrive, world.service.drop):
        for message_name in (message_id, *await world.ids()):
            with pytest.raises(UnknownMessageError):
                await action(source, message_name, GRACE)
    assert len(await world.ids()) == 1


def test_bytes_that_are_no_text_are_shown_escaped_and_shortened():
    """Nothing that is shown fails to be JSON, or fills a page; what is cut says so (bugs2 53)."""
    message = PoisonMessage(
        source="q", message_id="1", body=b"a\xff\x00" + b"x" * 10_000, reason=refusal("r"), at=NOW
    )
    view = PoisonView.model_validate(message).model_dump()
    assert view["body"].startswith("a\\xff\x00xxx")
    assert (len(view["body"]), view["cut"]) == (4000, True)
    short = PoisonView.model_validate(replace(message, body=b"x" * 4000))
    assert (len(short.body), short.cut) == (4000, False)


@pytest.mark.proves("SUB-4")
async def test_the_list_goes_through_all_queues_page_by_page_and_oldest_first(world):
    """Each message stands on one page, whatever queue it is from; the counts are of all."""
    ids = [
        await world.keep(source, b"{}")
        for source in (PAYMENT, SUBMISSIONS, PAYMENT, PAYMENT, SUBMISSIONS)
    ]
    pages = [await world.service.list(PoisonPage(limit=2))]
    while pages[-1].continuation:
        pages.append(
            await world.service.list(PoisonPage(limit=2, continuation=pages[-1].continuation))
        )
    assert [[message.id for message in page.messages] for page in pages] == [
        ids[:2],
        ids[2:4],
        ids[4:],
    ]
    assert (
        pages[0].counts
        == await world.service.count()
        == {SUBMISSIONS: exactly(2), PAYMENT: exactly(3)}
    )


@pytest.mark.proves("SUB-4", "FLT-6")
async def test_a_row_that_nobody_can_read_hides_none_behind_it_and_can_be_dropped(world):
    """It stands in the list with its fault, and can not be put back."""
    first, spoilt, *others = [await world.keep(PAYMENT, b"{}") for _ in range(5)]
    await world.poison._table.submit(PAYMENT, [Put(spoilt, {"SchemaVersion": 99})])
    page = await world.service.list(PoisonPage(limit=2))
    assert [message.id for message in page.messages] == [first, spoilt]
    assert page.counts == {PAYMENT: exactly(5)}
    assert [
        message.id
        for message in (
            await world.service.list(PoisonPage(continuation=page.continuation))
        ).messages
    ] == others
    with pytest.raises(RefusedError):
        await world.redrive(PAYMENT, spoilt)
    await world.service.drop(PAYMENT, spoilt, GRACE)
    assert await world.ids() == [first, *others]


SPOILT_BODIES = {
    "none": {"Body00": ..., "Body01": ..., "Body02": ...},
    "without its beginning": {"Body00": ...},
    "without its middle": {"Body01": ...},
    "without its end": {"Body02": ...},
    "no base64": {"Body01": "?" * PART},
    "with something between": {"Body01": f"{'A' * (PART // 2)}\n{'A' * (PART // 2)}"},
    "no text": {"Body01": 5},
    "with more": {"Body03": "AAAA"},
    "with something else": {"Body": ""},
}


@pytest.mark.proves("SUB-4", "FLT-6")
@pytest.mark.parametrize("label", SPOILT_BODIES)
async def test_a_body_that_is_not_there_whole_is_not_put_back(world, label):
    """What is left of it would be another message; it can be dropped."""
    message_id = await world.keep(PAYMENT, b"x" * (PART * 3 // 4 * 2))
    stored = await world.poison._table.get(PAYMENT, message_id)
    row = {
        name: value
        for name, value in (stored.row | SPOILT_BODIES[label]).items()
        if value is not ...
    }
    await world.poison._table.submit(PAYMENT, [Put(message_id, row)])
    (shown,) = (await world.service.list(PoisonPage())).messages
    assert message_id in shown.reason
    with is_refused(Code.MESSAGE_CUT):
        await world.redrive(PAYMENT, message_id)
    await world.service.drop(PAYMENT, message_id, GRACE)
    assert (await world.ids(), world.bus.sent) == ([], [])


@pytest.mark.proves("SUB-4")
@pytest.mark.parametrize(
    "spoilt", [{"Body01": ...}, {"Body02": 5}, {"Body00": "AAA"}, {"SchemaVersion": 99}], ids=str
)
async def test_a_row_that_nobody_can_read_is_forgotten_with_the_order_that_it_names(world, spoilt):
    """What is left of it may say who the customer is."""
    filling = b"x" * (PART * 3 // 4)
    bodies = [(text + filling) * 2 for text in (ORDER_ID.encode(), b"other")]
    ours, other = [await world.keep(PAYMENT, body) for body in bodies]
    for message_id in (ours, other):
        stored = await world.poison._table.get(PAYMENT, message_id)
        row = {name: value for name, value in (stored.row | spoilt).items() if value is not ...}
        await world.poison._table.submit(PAYMENT, [Put(message_id, row)])
    await world.service.forget(ORDER_ID)
    assert await world.ids() == [other]


@pytest.mark.proves("SUB-4", "FLT-6")
@pytest.mark.parametrize(
    "size", [0, 1, PART * 3 // 4 - 1, PART * 3 // 4, PART * 3 // 4 + 1, MAX_BODY_BYTES]
)
async def test_a_body_of_any_length_is_put_back_whole(world, size):
    """Also where it just fills its columns."""
    await world.redrive(PAYMENT, await world.keep(PAYMENT, b"x" * size))
    assert [sent.body for sent in world.bus.sent] == ["x" * size]


@pytest.mark.proves("SUB-4")
async def test_messages_of_an_order_are_forgotten_whoever_could_read_them(world):
    """However many others are kept: only those that name it go."""
    for number in range(150):
        await world.keep(SUBMISSIONS, b'{"orderId": "other %d"' % number)
    naming = b'{"name": "Ada", "orderId": "%s"' % ORDER_ID.encode()
    ours = [
        await world.keep(source, body)
        for source in (SUBMISSIONS, PAYMENT)
        for body in (naming, b64encode(naming), naming.decode().encode("utf-16"))
    ]
    before = await world.ids()
    await world.service.forget(ORDER_ID)
    assert await world.ids() == [
        message_name for message_name in before if message_name not in ours
    ]


@pytest.mark.proves("SUB-4", "FLT-6")
async def test_what_the_platform_gave_up_is_kept_under_the_queue_that_it_came_from(world):
    """With what is known of the reason, and its id; again after a crash, it is there once (host.md 4)."""
    app = func.FunctionApp()
    app.register_functions(poison_functions(world.poison, [SUBMISSIONS], [PAYMENT]))
    functions = {
        function.get_trigger().get_dict_repr()["queueName"]: function
        for function in app.get_functions()
    }
    assert functions.keys() == {f"{SUBMISSIONS}-poison", DEAD_LETTERS}
    messages = {
        f"{SUBMISSIONS}-poison": QueueMessage(body=b"a", id="m", insertion_time=NOW),
        DEAD_LETTERS: ServiceBusMessage(
            body=b"b",
            message_id="m",
            application_properties={
                "DeadLetterReason": "Why",
                "DeadLetterErrorDescription": "because",
            },
            user_properties={},
            correlation_id="c",
            sequence_number=1,
            enqueued_time_utc=NOW,
            dead_letter_source=PAYMENT,
        ),
    }
    for _ in range(2):
        for queue, message in messages.items():
            await functions[queue].get_user_function()(message)
    kept_now = [
        (message.source, message.body, message.reason, message.correlation_id)
        for message in await kept(world.poison)
    ]
    assert kept_now == [
        (SUBMISSIONS, b"a", given_up(""), None),
        (PAYMENT, b"b", given_up("Why, because"), "c"),
    ]


@pytest.mark.parametrize(
    ("named", "source"),
    [
        (PAYMENT, PAYMENT),
        (PAYMENT.upper(), PAYMENT),
        (f"{PAYMENT}/$DeadLetterQueue", PAYMENT),
        ("scheduler-requests", "scheduler-requests"),
        ("of-another-app", DEAD_LETTERS),
        ("", DEAD_LETTERS),
        (None, DEAD_LETTERS),
    ],
)
def test_a_dead_letter_belongs_to_the_queue_that_it_names(named, source):
    """However Service Bus writes it; one of a queue that the app does not have stays with the dead letters."""
    assert source_of(named, ["scheduler-requests", PAYMENT]) == source


@pytest.mark.proves("SUB-4", "FLT-6")
async def test_a_dead_letter_of_an_unknown_queue_is_shown_and_can_be_dropped(world):
    """Nobody knows where to put it back."""
    message_id = await world.keep(DEAD_LETTERS, b"{}")
    listed = await world.service.list(PoisonPage())
    assert [(message.queue, message.id) for message in listed.messages] == [
        (DEAD_LETTERS, message_id)
    ]
    with pytest.raises(RefusedError):
        await world.redrive(DEAD_LETTERS, message_id)
    await world.service.drop(DEAD_LETTERS, message_id, GRACE)
    assert (await world.ids(), world.bus.sent) == ([], [])


# Personal data


@pytest.mark.proves("FLT-6")
async def test_the_messages_of_an_agent_that_is_gone_are_seen_erased_and_removed(world):
    """They hold what its requests held, whatever the app declares by now (engine 17)."""
    gone = "old-payments-requests"
    message_id = await world.keep(gone, f'{{"orderId": "{ORDER_ID}"}}'.encode())
    listed = await world.service.list(PoisonPage())
    assert [(message.queue, message.id) for message in listed.messages] == [(gone, message_id)]
    assert listed.counts == {gone: exactly(1)}
    with is_refused(Code.MESSAGE_OF_NO_QUEUE):
        await world.redrive(gone, message_id)
    await world.service.forget(ORDER_ID)
    assert await world.ids() == []
    old = await world.keep(gone, b"{}")
    await world.service.remove_before(NOW + timedelta(days=1))
    assert old not in await world.ids()
    dropped = await world.keep(gone, b"{}")
    await world.service.drop(gone, dropped, GRACE)
    assert await world.ids() == []


SPELLINGS = {
    "at the beginning": b'{"email": "Ada@Example.com"}',
    "behind what the API shows": b'{"wish": "%s", "email": "ada@example.com"}' % (b"w" * 5000),
    "broken": b"{broken ada@example.com",
    "in base64": b64encode(b'{"email": "ada@example.com"}'),
    "too long to be kept whole": b"x" * (MAX_BODY_BYTES + 1),
}


@pytest.mark.parametrize("how", SPELLINGS)
async def test_a_message_that_holds_an_address_is_found_wherever_it_stands(world, how):
    """In the whole of it, or if it was cut: an erasure lists what it cannot reach (engine 17)."""
    await world.keep(SUBMISSIONS, b'{"email": "grace@example.com"}')
    message_id = await world.keep(SUBMISSIONS, SPELLINGS[how])
    found = await world.service.naming("ada@example.com")
    assert [(named.queue, named.id) for named in found] == [(SUBMISSIONS, message_id)]


async def test_an_address_that_json_escapes_is_found(world):
    """As the senders of most languages write it."""
    message_id = await world.keep(PAYMENT, rb'{"email": "\u00fcda@example.com"}')
    assert [named.id for named in await world.service.naming("üda@example.com")] == [message_id]
