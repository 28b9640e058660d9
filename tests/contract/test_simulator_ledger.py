"""What a ledger has to do, in memory and on Azurite; and what it costs on a table."""

import asyncio
import re
from dataclasses import replace
from itertools import count
from urllib.parse import parse_qs, urlsplit

import pytest

from engine.azure.connections import Connections
from engine.azure.settings import Settings
from engine.azure.tables.transactions import TableTransactions
from engine.domain.errors import UnavailableError
from samples.simulator.ledger import Ledger
from samples.simulator.rules import (
    FaultInForce,
    Refusal,
    SimulatedEffect,
    SimulatedFault,
    simulated,
)
from shop.business import SHOP
from testkit.memory import of_columns
from tests.support.builders import NOW, seconds
from tests.support.simulated_world import World
from tests.support.transports import Recorder

PAYMENT = simulated(SHOP)["payment"]

RANGE = re.compile(r"PartitionKey eq '[^']+' and RowKey ge '[^']+' and RowKey lt '[^']+'")
ONLY_AZURITE = pytest.mark.parametrize("ledger", ["azurite"], indirect=True)

_numbers = count(1)


@pytest.fixture(scope="module")
async def recorder():
    """What the requests to Azurite go through."""
    return Recorder()


@pytest.fixture(scope="module")
async def table(services, recorder):
    """Table `simulator`."""
    connections = Connections(
        Settings.model_validate(services.app_environment()), transport=lambda: recorder
    )
    yield lambda: connections.table("simulator")
    await connections.close()


@pytest.fixture
async def table_ledger(table):
    """The ledger of one host; it may hold what former tests wrote, so each test has an order of its own."""
    return Ledger(TableTransactions(table))


@pytest.fixture(params=["memory", "azurite"])
def ledger(request):
    """The ledger, of either kind."""
    return (
        Ledger(of_columns())
        if request.param == "memory"
        else request.getfixturevalue("table_ledger")
    )


@pytest.fixture
def order():
    """An order of the test's own."""
    return f"order-{next(_numbers)}"


def effect(order, action="authorise", step="payment", after=0.0) -> SimulatedEffect:
    return SimulatedEffect(
        key=f"{order}:{step}",
        action=action,
        order_id=order,
        at=NOW + seconds(after),
        result={"reference": "r"},
    )


async def actions(ledger, order):
    """The effects of an order, oldest first."""
    return [recorded.action for recorded in (await ledger.contents("payment", order))[1]]


@pytest.mark.proves("AGT-7")
async def test_an_effect_happens_once(ledger, order):
    """A repetition gets the result of the first, with the time of the first."""
    first = effect(order)
    assert await ledger.effect("payment", first, forbids=None) == first
    again = replace(first, at=NOW + seconds(9), result={"reference": "other"})
    assert await ledger.effect("payment", again, forbids=None) == first
    assert (await ledger.contents("payment", order))[1] == [first]


async def test_a_refusal_is_kept_for_its_key_until_that_is_forgotten(ledger, order):
    """It takes the place of the effect; a key with an answer is not refused."""
    key, refusal = f"{order}:payment", Refusal(reason="declined", at=NOW)
    await ledger.refuse("payment", key, "authorise", refusal)
    assert await ledger.effect("payment", effect(order), forbids=None) is None
    assert await ledger.refusal("payment", key, "authorise") == refusal
    await ledger.forget("payment", key, "authorise", NOW)
    assert await ledger.refusal("payment", key, "authorise") == refusal
    await ledger.forget("payment", key, "authorise", NOW + seconds(1))
    done = effect(order, after=2)
    assert await ledger.effect("payment", done, forbids=None) == done
    await ledger.refuse("payment", key, "authorise", refusal)
    assert await ledger.refusal("payment", key, "authorise") is None


async def test_an_effect_whose_key_was_forgotten_stays_and_may_happen_again(ledger, order):
    """Nothing is hidden of what a service did."""
    key = f"{order}:payment"
    await ledger.effect("payment", effect(order), forbids=None)
    await ledger.forget("payment", key, "authorise", NOW + seconds(1))
    await ledger.forget("payment", key, "authorise", NOW + seconds(1))
    await ledger.effect("payment", effect(order, after=2), forbids=None)
    assert await actions(ledger, order) == ["authorise", "authorise"]


async def test_what_is_done_later_was_accepted_once(ledger, order):
    """Its time counts from the first call."""
    key = f"{order}:payment"
    assert await ledger.accept("payment", key, "authorise", NOW) == NOW
    assert await ledger.accept("payment", key, "authorise", NOW + seconds(5)) == NOW
    assert await ledger.accept("payment", key, "void", NOW + seconds(5)) == NOW + seconds(5)


async def test_actions_keys_and_services_do_not_share_effects(ledger, order):
    """An effect is one of a key and an action, at one service."""
    for other in (effect(order), effect(order, "capture"), effect(order, step="deposit")):
        await ledger.effect("payment", other, forbids=None)
    await ledger.effect("shipping", effect(order, "ship"), forbids=None)
    assert sorted(await actions(ledger, order)) == ["authorise", "authorise", "capture"]


async def test_an_undo_that_comes_first_is_recorded_and_bars_what_it_undoes(ledger, order):
    """What arrives late does not take effect (UND-2)."""
    undo = effect(order, "void")
    assert await ledger.effect("payment", undo, forbids="authorise") == undo
    assert await ledger.effect("payment", effect(order), forbids=None) is None
    assert await actions(ledger, order) == ["void"]


async def test_what_was_done_and_undone_is_refused_from_then_on(ledger, order):
    """The ledger still shows that it happened, but a repetition is no longer told so (UND-2)."""
    await ledger.effect("payment", effect(order), forbids=None)
    undo = effect(order, "void", after=1)
    assert await ledger.effect("payment", undo, forbids="authorise") == undo
    assert await ledger.effect("payment", effect(order), forbids=None) is None
    assert (
        await ledger.effect("payment", effect(order, "void", after=2), forbids="authorise") == undo
    )
    assert await actions(ledger, order) == ["authorise", "void"]


async def test_an_undo_bars_one_action_under_one_key(ledger, order):
    """Other actions under the key, and the action under other keys, are free."""
    await ledger.effect("payment", effect(order, "void"), forbids="authorise")
    for expected in (effect(order, "capture"), effect(order, step="deposit")):
        assert await ledger.effect("payment", expected, forbids=None) == expected


@pytest.mark.proves("AGT-7")
async def test_fifty_at_once_have_one_effect(ledger, order):
    """All of them get the same result, and all are counted."""

    async def call(number):
        await ledger.count_call("payment", f"{order}:payment", "authorise")
        return await ledger.effect("payment", effect(order, after=number), forbids=None)

    stands = await asyncio.gather(*(call(number) for number in range(50)))
    calls, effects = await ledger.contents("payment", order)
    assert (calls, effects) == (50, [stands[0]])
    assert stands == [stands[0]] * 50


async def test_doing_and_undoing_at_once_ends_undone(ledger):
    """Whoever is first, both undos find the same effect, and nothing is done after it."""
    for _ in range(5):
        order = f"order-{next(_numbers)}"
        done, undone, undone_too = await asyncio.gather(
            ledger.effect("payment", effect(order), forbids=None),
            ledger.effect("payment", effect(order, "void", after=1), forbids="authorise"),
            ledger.effect("payment", effect(order, "void", after=1), forbids="authorise"),
        )
        assert undone == undone_too == effect(order, "void", after=1)
        assert await actions(ledger, order) == (["authorise", "void"] if done else ["void"])


async def test_the_effects_of_all_orders_are_shown_oldest_first(ledger):
    """The order of keys is not the order of time."""
    orders = [f"sorted-{next(_numbers)}" for _ in range(3)]
    for order, after in zip(orders, (2, 1, 3), strict=True):
        await ledger.effect("inventory", effect(order, "reserve", after=after), forbids=None)
        await ledger.count_call("inventory", f"{order}:payment", "reserve")
    calls, effects = await ledger.contents("inventory", None)
    assert calls == 3
    assert [kept.order_id for kept in effects] == [orders[1], orders[0], orders[2]]


@pytest.mark.parametrize(
    "key",
    [
        "~",
        "a|b:step",
        "=7c=",
        "it's:100%",
        "x" * 200,
        "|" * 200,
        "o:" + "é" * 198,
        ":",
        "o:a|authorise",
    ],
)
async def test_a_key_may_hold_anything(ledger, order, key):
    """Whatever a key looks like, its effect is found again, and belongs to no other key."""
    like_it = [
        SimulatedEffect(key=other_key, action="capture", order_id=order, at=NOW, result={})
        for other_key in (key, key + "!")
    ]
    for similar in like_it:
        assert await ledger.effect("payment", similar, forbids=None) == similar
        assert (
            await ledger.effect("payment", replace(similar, at=NOW + seconds(1)), forbids=None)
            == similar
        )


async def test_an_order_whose_id_begins_alike_is_another_one(ledger, order):
    """The filter takes the whole id."""
    for other in (f"{order}0", f"{order}|x", f"{order}-x"):
        await ledger.count_call("payment", f"{other}:payment", "authorise")
        await ledger.effect("payment", effect(other), forbids=None)
    assert await ledger.contents("payment", order) == (0, [])


async def test_faults_stand_side_by_side(ledger):
    """One for each kind of call: the last one set stands, and each is lifted by itself or with all."""
    for_all, for_tea = (
        SimulatedFault(mode="down"),
        SimulatedFault.model_validate({"mode": "hang", "match": {"sku": "TEA"}}),
    )
    entries = [FaultInForce(**dict(for_all), until=NOW), FaultInForce(**dict(for_tea))]
    for entry in (FaultInForce(**dict(for_all)), *entries):
        await ledger.set_fault("shipping", entry)
    found = await ledger.faults("shipping")
    assert sorted(found, key=lambda entry: entry.mode) == entries
    await ledger.clear_faults("shipping", for_all.key())
    assert await ledger.faults("shipping") == entries[1:]
    await ledger.clear_faults("shipping", for_all.key())  # again changes nothing
    await ledger.clear_faults("shipping", None)
    assert await ledger.faults("shipping") == []


@ONLY_AZURITE
async def test_reads_are_ranges_of_keys(ledger, order, recorder):
    """No query looks at a row that it does not return."""
    recorder.requests.clear()
    await ledger.count_call("payment", f"{order}:payment", "authorise")
    await ledger.effect("payment", effect(order), forbids=None)
    await ledger.effect("payment", effect(order, "void"), forbids="authorise")
    for wanted in (order, None):
        await ledger.contents("payment", wanted)
    await ledger.faults("payment")
    await ledger.clear_faults("payment", None)
    filters = [
        parse_qs(urlsplit(url).query).get("$filter", [""])[0]
        for method, url in recorder.requests
        if method == "GET" and "PartitionKey=" not in url  # what names both keys reads one row
    ]
    assert len(filters) == 6
    assert [query for query in filters if not RANGE.fullmatch(query)] == []


@ONLY_AZURITE
@pytest.mark.parametrize(
    ("action", "requests"),
    [
        pytest.param("authorise", ["POST", "POST"], id="an action: count, write"),
        pytest.param("void", ["POST", "GET", "POST"], id="an undo looks at what it undoes too"),
    ],
)
async def test_a_call_costs_few_requests(ledger, order, recorder, action, requests):
    """What happens is one write, however many rows it takes."""
    recorder.requests.clear()
    await ledger.count_call("payment", f"{order}:payment", action)
    await ledger.effect("payment", effect(order, action), forbids=PAYMENT.undoes.get(action))
    assert [method for method, _ in recorder.requests] == requests


@ONLY_AZURITE
@pytest.mark.proves("AGT-7")
async def test_an_effect_whose_answer_was_lost_is_found_again(ledger, order, recorder):
    """The caller does not know, tries again, and gets the one result."""
    first = effect(order)
    recorder.lose_answers = 1
    try:
        stands = await ledger.effect("payment", first, forbids=None)
    except UnavailableError:
        stands = await ledger.effect("payment", effect(order, after=1), forbids=None)
    assert recorder.lose_answers == 0
    assert stands == first
    assert await actions(ledger, order) == ["authorise"]


@ONLY_AZURITE
async def test_an_effect_that_appears_between_read_and_write_is_undone(ledger, order, table):
    """The undo conflicts with what another host writes, looks again, and then bars it."""

    class OtherHostWritesFirst(TableTransactions):
        async def submit(self, partition, operations):
            await other.effect("payment", effect(order), forbids=None)
            await super().submit(partition, operations)

    other = ledger
    undo = effect(order, "void", after=1)
    assert (
        await Ledger(OtherHostWritesFirst(table)).effect("payment", undo, forbids="authorise")
        == undo
    )
    assert await ledger.effect("payment", effect(order), forbids=None) is None
    assert await actions(ledger, order) == ["authorise", "void"]


@ONLY_AZURITE
@pytest.mark.proves("AGT-7")
async def test_several_hosts_share_a_ledger(ledger, table, order):
    """Fifty calls over three hosts have one effect, and a host that starts later knows it."""
    hosts = [World(Ledger(TableTransactions(table))) for _ in range(3)]
    answers = await asyncio.gather(*(hosts[n % 3].call(key=f"{order}:payment") for n in range(50)))
    assert {answer.status for answer in answers} == {200}
    assert len({str(answer.result) for answer in answers}) == 1
    assert await World(ledger).effects(order) == (50, ["authorise"])
