"""The receiver: a service behind it does everything once for its idempotency key."""

import asyncio
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import ClientSession

from engine.azure.remote import HttpRemoteService
from engine.domain.errors import AppError, DeferredError, ThrottledError, TransientError
from testkit.keys import MemoryKeys, SqliteKeys
from testkit.receiver import MAX_BYTES, Receiver
from tests.support.agency import Agency
from tests.support.banks import CONTENT, UNDOES, AsgiAnswer, Bank, ask, served
from tests.support.builders import seconds

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


class Behind:
    """A bank behind a receiver, whose clock the test holds."""

    def __init__(self, make_store):
        self.now = NOON
        self.bank = Bank()
        self.store = make_store(lambda: self.now)
        self.receiver = self.another()

    def another(self):
        """A receiver of another process: nothing is shared but the store."""
        return Receiver(app=self.bank, store=self.store, undoes=UNDOES, clock=lambda: self.now)

    async def ask(self, *what, **more):
        return await ask(self.receiver, *what, **more)

    async def statuses(self, *paths):
        return [(await self.ask(path)).status for path in paths]


@pytest.fixture(params=["memory", "sqlite"])
def behind(request, tmp_path):
    """Its keys are kept in memory, or in a file."""
    if request.param == "memory":
        return Behind(MemoryKeys)
    return Behind(lambda clock: SqliteKeys(tmp_path / "keys.db", clock))


async def test_a_call_that_comes_again_has_the_first_answer_and_no_effect(behind):
    """Also in another process, with the same content written otherwise."""
    first = await behind.ask(body=b'{"amount": "10.00", "to": "Ada"}')
    behind.receiver = behind.another()
    again = await behind.ask(body=b'{ "to":"Ada", "amount":"10.00"}')
    assert (first.status, again.status) == (200, 200)
    assert json.loads(first.body) == json.loads(again.body) == {"reference": "r-1"}
    assert again.headers == first.headers | {b"idempotent-replayed": b"true"}
    other = await behind.ask(key="o2:pay")
    assert json.loads(other.body) == {"reference": "r-2"}
    assert behind.bank.effects == ["/pay", "/pay"]


HEADERS = [
    (b"retry-after", b"3600"),
    (b"location", b"/jobs/1"),
    (b"link", b"</a>; rel=next"),
    (b"link", b"</b>; rel=prev"),
]


@pytest.mark.parametrize("status", [200, 201, 202, 409, 429, 503])
async def test_an_answer_keeps_its_headers(behind, status):
    """All of them, also when it comes from memory (engine 19)."""
    behind.bank.status, behind.bank.headers = status, HEADERS
    json_ = (b"content-type", b"application/json")
    first, again = [await behind.ask() for _ in range(2)]
    replayed = [(b"idempotent-replayed", b"true")] if status in (200, 201) else []
    assert sorted(first.pairs) == sorted([json_, *HEADERS])
    assert sorted(again.pairs) == sorted([json_, *HEADERS, *replayed])


async def test_a_file_of_an_earlier_copy_is_read(tmp_path):
    """Its answers have no headers (engine 19)."""
    behind = Behind(lambda clock: SqliteKeys(tmp_path / "keys.db", clock))
    await behind.ask()
    with closing(sqlite3.connect(tmp_path / "keys.db")) as database, database:
        (record,) = database.execute("SELECT record FROM keys").fetchone()
        earlier = json.loads(record)
        for call in earlier["calls"]:
            del call["headers"]
        database.execute("UPDATE keys SET record = ?", (json.dumps(earlier),))
    again = await behind.ask()
    assert (again.status, again.headers[b"idempotent-replayed"]) == (200, b"true")


LINK = "https://orders.example/api/answers/b00-1/payment?token=x"
HOUR = seconds(3600)


@pytest.mark.parametrize(
    ("status", "header", "within", "expected"),
    [
        (429, HEADERS[0], None, (ThrottledError, HOUR)),
        (503, HEADERS[0], None, (ThrottledError, HOUR)),
        (202, HEADERS[0], 2 * HOUR, (DeferredError, HOUR)),
        (202, HEADERS[1], None, (TransientError, None)),
    ],
)
async def test_an_agent_learns_behind_it_when_and_where_to_ask(
    behind, status, header, within, expected
):
    """As from the service itself: how long to wait, and that a 202 can be asked for (engine 19)."""
    behind.bank.status, behind.bank.headers = status, [header]
    content = {"amount": "1.00"}
    request = Agency().request.model_copy(update={"callback_url": LINK, "content": content})
    async with served(behind.receiver) as url, ClientSession() as session:
        remote = HttpRemoteService(
            base_url=url,
            session=lambda: session,
            answer_within=within,
            longest_wait=2 * HOUR,
            clock=lambda: NOON,
        )
        with pytest.raises(AppError) as raised:
            await remote.call(request, 60)
    assert (raised.type, getattr(raised.value, "retry_after", None)) == expected


async def test_a_call_is_refused_while_another_one_is_under_way(behind):
    """The undo too, with the same key; when it has ended, they are answered."""
    behind.bank.gate = asyncio.Event()
    first = asyncio.create_task(behind.ask())
    await behind.bank.entered.get()
    second = await behind.ask()
    undo = await behind.ask("/recall")
    assert (second.status, undo.status, undo.headers[b"retry-after"]) == (409, 409, b"1")
    behind.bank.gate.set()
    assert (await first).status == 200
    assert await behind.statuses("/pay", "/recall", "/pay") == [200, 200, 410]
    assert behind.bank.effects == ["/pay", "/recall"]


async def test_of_many_calls_at_once_one_takes_effect(behind):
    """The others are told to wait, or have its answer."""
    receivers = [behind.another() for _ in range(10)]
    answers = await asyncio.gather(*(ask(receiver) for receiver in receivers))
    assert {answer.status for answer in answers} <= {200, 409}
    assert behind.bank.effects == ["/pay"]


async def test_a_key_is_refused_once_it_was_undone(behind):
    """Whether or not the call had come before; the undo itself may come again."""
    assert await behind.statuses("/recall", "/recall", "/pay") == [200, 200, 410]
    assert behind.bank.effects == ["/recall"]


async def test_a_key_is_for_one_content(behind):
    """Other content is refused, while the first call is under way and when it has ended."""
    await behind.ask()
    other = await behind.ask(content=CONTENT | {"amount": "11.00"})
    assert (other.status, json.loads(other.body)["detail"]) == (
        422,
        "this key was used with other content",
    )
    assert behind.bank.effects == ["/pay"]


async def test_a_call_that_did_nothing_may_come_again(behind):
    """A refusal, and a failure, leave the key as it was."""
    refused = await behind.ask(content={"amount": None})
    assert refused.status == 422
    behind.bank.breaks.append(ValueError("broken"))
    with pytest.raises(ValueError, match="broken"):
        await behind.ask()
    assert (await behind.ask()).status == 200


async def test_what_was_only_accepted_is_requested_again(behind):
    """202 says that it is not done yet, so the service itself has to know how it goes on."""
    behind.bank.status = 202
    assert (await behind.ask()).status == 202
    behind.bank.status = 200
    assert (await behind.ask()).status == 200


async def test_a_call_whose_process_has_ended_is_made_again(behind):
    """After the longest time of a call, and not before; the lost one then changes nothing."""
    behind.bank.gate = asyncio.Event()
    lost = asyncio.create_task(behind.ask())
    await behind.bank.entered.get()
    behind.now += timedelta(minutes=5) - timedelta(seconds=1)
    assert (await behind.ask()).status == 409
    behind.now += timedelta(seconds=1)
    second = asyncio.create_task(behind.ask())
    await behind.bank.entered.get()
    lost.cancel()
    await asyncio.wait([lost])
    assert (await behind.ask()).status == 409
    behind.bank.gate.set()
    assert json.loads((await second).body) == json.loads((await behind.ask()).body)
    assert behind.bank.effects == ["/pay"]


async def test_what_was_not_changed_for_long_is_forgotten_on_demand(behind):
    """Then a key is as good as new."""
    await behind.ask(key="old")
    behind.now += timedelta(days=2)
    await behind.ask(key="new")
    assert await behind.store.forget(NOON + timedelta(days=1)) == 1
    answers = [json.loads((await behind.ask(key=key)).body) for key in ("old", "new")]
    assert answers == [{"reference": "r-3"}, {"reference": "r-2"}]


@pytest.mark.parametrize("key", [None, "", "two words", "é", "k" * 201])
async def test_a_call_without_a_usable_key_has_no_effect(behind, key):
    """It is told what is expected."""
    assert (await behind.ask(key=key)).status == 400
    assert behind.bank.effects == []


async def test_what_is_too_long_or_cut_off_has_no_effect(behind):
    """A body is taken whole or not at all."""
    assert (await behind.ask(body=b" " * (MAX_BYTES + 1))).status == 413
    await behind.ask(cut_off=True)
    assert behind.bank.effects == []


async def test_a_handler_that_waits_for_its_caller_to_hang_up_suspends():
    """As at a server: it gets the body once, and then the disconnect when it comes (engine 10)."""
    received, hangs_up = [], asyncio.Event()

    async def app(scope, receive, send):
        received.append(await receive())
        watching = asyncio.create_task(receive())
        await asyncio.sleep(0)
        assert not watching.done()
        hangs_up.set()
        received.append(await watching)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    parts = [{"type": "http.request", "body": b"{}"}]

    async def receive():
        if parts:
            return parts.pop()
        await hangs_up.wait()
        return {"type": "http.disconnect"}

    scope = {"type": "http", "method": "POST", "path": "/pay"}
    scope["headers"] = [(b"idempotency-key", b"o:pay")]
    answer = AsgiAnswer()
    await Receiver(app=app, store=MemoryKeys())(scope, receive, answer.send)
    assert [message["type"] for message in received] == ["http.request", "http.disconnect"]
    assert answer.status == 200


async def test_what_changes_nothing_is_passed_on(behind):
    """Reading needs no key, and the server's own events are none of its business."""
    assert (await behind.ask(key=None, method="GET")).status == 200
    assert (await behind.ask(key=None, kind="lifespan")).status == 200
