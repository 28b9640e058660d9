"""What an operator may do with a poison message."""

import json
import random

import pytest

from adapters.memory import in_memory
from adapters.poison_envelope import seal, unseal
from core.errors import RefusedError, UnavailableError, UnknownMessageError
from core.poison import PoisonMessage
from operators.poison import PoisonService, shown
from operators.requests import OperatorRequest
from operators.words import poison_text

GRACE = OperatorRequest(operator="grace", note="mended")


class World:
    """One storage queue and one bus queue."""

    def __init__(self):
        self.parts = in_memory()
        self.service = PoisonService(
            poison=self.parts.poison,
            bus=self.parts.bus,
            storage_queues={"order-submissions": self.parts.submissions},
            bus_queues=("payment-responses",),
        )

    async def keep(self, source, body, **more):
        await self.parts.poison.put(source, body, "why", **more)
        return self.parts.poison.kept[-1].message_id


@pytest.fixture
def world():
    return World()


@pytest.mark.proves("SUB-4", "FLT-6")
async def test_a_message_goes_back_with_what_it_means_nothing_without(world):
    """A reply with its correlation id, under a message id of its own: duplicate detection must not swallow it."""
    message_id = await world.keep("payment-responses", b'{"a": "\xc3\xa9"}', correlation_id="o:payment:1:do")
    await world.service.redrive("payment-responses", message_id, GRACE)
    (sent,) = world.parts.bus.sent
    assert (sent.queue, sent.body, sent.correlation_id) == ("payment-responses", '{"a": "é"}', "o:payment:1:do")
    assert sent.time_to_live is None
    assert world.parts.poison.kept == []


@pytest.mark.proves("SUB-4")
async def test_a_message_of_which_no_correlation_id_is_known_goes_back_under_its_own_id(world):
    """Nothing is sent without one: the ids of a batch would move up."""
    message_id = await world.keep("payment-responses", b"{}")
    await world.service.redrive("payment-responses", message_id, GRACE)
    (sent,) = world.parts.bus.sent
    assert sent.correlation_id == sent.message_id


@pytest.mark.proves("SUB-4")
async def test_a_message_that_cannot_be_put_back_is_not_removed(world, caplog):
    """The queue is away: it stays, and nobody is on record for having put it back."""
    message_id = await world.keep("order-submissions", b"{}")

    async def away(text):
        raise UnavailableError

    world.parts.submissions.put = away
    with pytest.raises(UnavailableError):
        await world.service.redrive("order-submissions", message_id, GRACE)
    assert [kept.message_id for kept in world.parts.poison.kept] == [message_id]
    assert "operators.poison_settled" not in caplog.messages


@pytest.mark.proves("SUB-4")
async def test_what_would_not_be_the_same_message_is_refused(world):
    """Bytes that are no text, and what was kept shortened: both stay, and can be dropped."""
    no_text = await world.keep("payment-responses", b"\xff")
    shortened = PoisonMessage(source="payment-responses", message_id="s", body=b"begin", shortened=True)
    world.parts.poison.kept.append(shortened)
    for message_id in (no_text, "s"):
        with pytest.raises(RefusedError):
            await world.service.redrive("payment-responses", message_id, GRACE)
    assert len(world.parts.poison.kept) == 2
    for message_id in (no_text, "s"):
        await world.service.drop("payment-responses", message_id, GRACE)
    assert world.parts.poison.kept == []
    assert world.parts.bus.sent == []


@pytest.mark.parametrize("action", ["redrive", "drop"])
async def test_who_did_it_and_why_is_logged(world, caplog, action):
    """The log is the only record of it."""
    message_id = await world.keep("order-submissions", b"{}")
    await getattr(world.service, action)("order-submissions", message_id, GRACE)
    (line,) = [record for record in caplog.records if record.message == "operators.poison_settled"]
    assert (line.operator, line.note, line.queue, line.message_id) == (
        "grace",
        "mended",
        "order-submissions",
        message_id,
    )


@pytest.mark.parametrize("source", ["order-submissions", "status-x", "", "../order-submissions", "leases"])
async def test_an_unknown_message_is_unknown_in_any_queue(world, source):
    """Also in one that is not the app's."""
    for action in (world.service.redrive, world.service.drop):
        with pytest.raises(UnknownMessageError):
            await action(source, "m7", GRACE)


def test_what_an_earlier_version_kept_can_be_read():
    """Without the fields that came later."""
    text = json.dumps({"reason": "r", "receivedAt": "t", "bodyBase64": "//4="})
    kept = unseal("q", "1", text, "")
    assert (kept.body, kept.reason, kept.kept_at, kept.correlation_id) == (b"\xff\xfe", "r", "t", None)


def test_bytes_that_are_no_text_are_shown_escaped_and_shortened():
    """Nothing that is shown fails to be JSON, or fills a page."""
    view = shown(PoisonMessage(source="q", message_id="1", body=b"a\xff\x00" + b"x" * 10_000)).model_dump()
    assert view["body"].startswith("a\\xff\x00xxx")
    assert len(view["body"]) == 4000
    assert view["reason"] == "it failed too often"


@pytest.mark.proves("SUB-4")
async def test_the_list_says_how_many_there_are(world):
    """Azure shows 32 messages of a queue: that there are more is said."""
    for number in range(3):
        await world.keep("payment-responses", b"%d" % number)
    listed = await world.service.list()
    assert (listed.counts, await world.service.count()) == ({"payment-responses": 3}, {"payment-responses": 3})
    answer = listed.model_dump(mode="json", by_alias=True)
    assert "there are more" not in poison_text(answer)
    answer["counts"] = {"payment-responses": 35}
    assert "(there are more from payment-responses: about 35 are kept)" in poison_text(answer)


@pytest.mark.proves("SUB-4")
def test_what_is_kept_says_whose_it_was_and_whether_it_is_whole():
    """Only what is whole can be put back, and a reply only with its id."""
    short = unseal("q", "m", seal(b"{}", "why", "then", "c-1"), "now")
    assert (short.correlation_id, short.shortened, short.kept_at) == ("c-1", False, "then")
    assert unseal("q", "m", seal(random.Random(1).randbytes(100_000), "why", "then"), "now").shortened
