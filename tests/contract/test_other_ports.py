"""What the other ports have to do, in memory and on the real services."""

import asyncio
import json
import random
import ssl
from dataclasses import replace
from datetime import timedelta
from unittest.mock import AsyncMock
from uuid import uuid4

import pytest
from azure.servicebus.aio import ServiceBusClient
from azure.storage.queue.aio import QueueClient

from engine.alerts.events import Acknowledgement
from engine.azure.clock import utc_now
from engine.azure.connect import connect
from engine.azure.connections import Connections
from engine.azure.lease import BlobLeadership
from engine.azure.messaging.queues import StorageQueue
from engine.azure.settings import Settings, SettingsError
from engine.azure.tables.store_clock import StoreClock
from engine.decisions.transitions import OperatorEvent
from engine.declarations.faults import FaultCode
from engine.domain.errors import InvalidError, UnavailableError, UnknownMessageError
from engine.domain.keys import sortable
from engine.domain.messages import OrderReady
from engine.storage.agent_health import FRESH, OPERATOR, AgentHealth
from engine.storage.alert_log import AlertLog
from engine.storage.figures import Durations, Figures
from engine.storage.outbox import EVENT
from engine.storage.poison import Arrival
from engine.storage.submission_keys import Binding
from engine.storage.sweeps import Sweep
from engine.storage.tables import Delete, Put, first
from functions_alone.tests.support.delivered_events import take_events
from functions_alone.tests.support.waiting import eventually
from operations.api.requests import AlertsPage
from samples.simulator.ledger import Ledger
from samples.simulator.rules import FaultInForce, SimulatedEffect, SimulatedFault
from shop.business import SHOP
from testkit.memory import MemoryLeadership, MemoryLease
from tests.support.builders import NOW, refusal, seconds


def alert(number: int) -> OperatorEvent:
    return OperatorEvent(
        event_id=f"a:{number}",
        type="T",
        subject="orders/x",
        at=NOW + seconds(number),
        data={"n": number},
    )


async def test_alerts_are_kept_once_and_shown_newest_first(made):
    """An alert that arrives again is the same alert."""
    for number in (1, 3, 2, 3):
        await made.operations.alert_log.record(alert(number))
    newest = await made.operations.alert_log.newest(2)
    assert [logged.event for logged in newest] == [alert(3), alert(2)]
    assert [logged.event for logged in await made.operations.alert_log.newest(100)] == [
        alert(3),
        alert(2),
        alert(1),
    ]
    assert [
        logged.event for logged in await made.operations.alert_log.newest(100, newest[-1].key)
    ] == [alert(1)]


async def test_the_first_fingerprint_of_a_workflow_is_the_one_that_is_kept(made):
    """Of each version by itself; also when several instances start at once."""
    name = f"w{uuid4().hex[:20]}"
    for version, text, kept in ((1, "one", "one"), (1, "other", "one"), (2, "other", "other")):
        row = {f"{name}|{version}": {"Fingerprint": text}}
        assert await first(made.engine.adapters.table("agents"), "workflows", row) == {
            "Fingerprint": kept
        }


async def test_an_alert_that_comes_again_with_another_time_is_kept_once(made):
    """Its event id says that it is the same, to any process; it may come again once it is removed."""
    event = replace(alert(-900), event_id=str(uuid4()))
    for late in (0, 5):
        another = AlertLog(made.operations.alert_log._table)
        await another.record(replace(event, at=event.at + seconds(late)))
    assert [
        logged.event
        for logged in await made.operations.alert_log.newest(100)
        if logged.event.event_id == event.event_id
    ] == [event]
    assert await made.operations.alert_log.remove_before(event.at + seconds(1), 1000) == 1
    await made.operations.alert_log.record(event)
    assert [
        logged.event
        for logged in await made.operations.alert_log.newest(100)
        if logged.event.event_id == event.event_id
    ] == [event]
    assert await made.operations.alert_log.remove_before(event.at + seconds(1), 1000) == 1


async def test_of_several_who_acknowledge_an_alert_the_first_stands(made):
    """Also when both do it at once, and when the alert comes again."""
    await made.operations.alert_log.record(
        event := replace(alert(9), event_id=f"{uuid4()}|'\"/\\\u202e")
    )
    (key,) = [
        logged.key
        for logged in await made.operations.alert_log.newest(100)
        if logged.event == event
    ]
    words = [Acknowledgement(by=by, at=NOW, note="'; -- <b>") for by in ("grace", "alan")]
    await asyncio.gather(*(made.operations.alert_log.acknowledge(key, word) for word in words))
    await made.operations.alert_log.record(event)
    (kept,) = [
        logged for logged in await made.operations.alert_log.newest(100) if logged.key == key
    ]
    assert kept.acknowledged in words
    assert await made.operations.alert_log.acknowledge(
        key, Acknowledgement(by="linus", at=NOW, note="late")
    )
    assert kept in await made.operations.alert_log.newest(100)
    assert not await made.operations.alert_log.acknowledge("no such key", words[0])


async def test_a_submission_key_is_bound_once(made):
    """Of many claims of one key the first stands, whatever the key looks like."""
    key = "k/\\#?\u00e9" * 10
    claims = [
        made.engine.submission_keys.claim(key, bound_to(number, {"price": f"{number}.00"}))
        for number in range(5)
    ]
    assert await made.engine.submission_keys.find(key) is None
    first, *others = await asyncio.gather(*claims)
    assert [first] * 4 == others
    assert await made.engine.submission_keys.find(key) == first


def bound_to(number, offer=None):
    """What a key stands for."""
    return Binding(order_id=f"order-{number}", fingerprint=f"print-{number}", offer=offer or {})


async def test_a_submission_key_is_forgotten_by_its_age(made):
    """Those that were bound before a time, and no others."""
    began, old, young = made.engine.adapters.clock(), str(uuid4()), str(uuid4())
    claim = made.engine.submission_keys.claim
    await claim(old, bound_to(1))
    await made.engine.submission_keys.remove_before(began)
    assert await claim(old, bound_to(2)) == bound_to(1)
    between = made.engine.adapters.clock() + seconds(0.000001)
    await claim(young, bound_to(3))
    assert await made.engine.submission_keys.remove_before(between) >= 1
    assert await claim(old, bound_to(2)) == bound_to(2)
    assert await claim(young, bound_to(4)) == bound_to(3)


def effect(key: str, action: str) -> SimulatedEffect:
    return SimulatedEffect(
        key=key, action=action, order_id=key.partition(":")[0], at=NOW, result={"reference": "r"}
    )


def ledger_of(made):
    return Ledger(made.engine.adapters.table("simulator"))


@pytest.mark.proves("AGT-7")
async def test_an_effect_happens_once_for_every_key(made):
    """Fifty calls at once: one effect, fifty calls in the ledger."""

    async def call():
        await ledger_of(made).count_call("payment", "o1:payment", "authorise")
        return await ledger_of(made).effect(
            "payment", effect("o1:payment", "authorise"), forbids=None
        )

    stands = await asyncio.gather(*(call() for _ in range(50)))
    calls, effects = await ledger_of(made).contents("payment", "o1")
    assert (calls, len(effects)) == (50, 1)
    assert all(state == stands[0] for state in stands)


async def test_what_was_undone_cannot_happen_later(made):
    """An undo that comes before what it undoes keeps that from ever taking effect."""
    await ledger_of(made).effect("payment", effect("o2:payment", "void"), forbids="authorise")
    assert (
        await ledger_of(made).effect("payment", effect("o2:payment", "authorise"), forbids=None)
        is None
    )
    _, effects = await ledger_of(made).contents("payment", "o2")
    assert [recorded.action for recorded in effects] == ["void"]
    await ledger_of(made).effect("payment", effect("o3:payment", "authorise"), forbids=None)
    undone = await ledger_of(made).effect(
        "payment", effect("o3:payment", "void"), forbids="authorise"
    )
    assert undone is not None


async def test_faults_stand_side_by_side_until_they_are_lifted(made):
    """One fault for each kind of call; lifting one leaves the others."""
    for_all, for_tea = (
        SimulatedFault(mode="down"),
        SimulatedFault.model_validate({"mode": "hang", "match": {"sku": "TEA"}}),
    )
    for fault in (for_all, for_tea):
        await ledger_of(made).set_fault("shipping", FaultInForce(**dict(fault), until=NOW))
    await ledger_of(made).clear_faults("shipping", for_tea.key())
    assert await ledger_of(made).faults("shipping") == [FaultInForce(**dict(for_all), until=NOW)]
    await ledger_of(made).clear_faults("shipping", None)
    assert await ledger_of(made).faults("shipping") == []


class Pair:
    """Two who want to lead, and what lets the lease lapse."""

    def __init__(self, first, second, lapse):
        self.first, self.second, self.lapse = first, second, lapse


@pytest.fixture
def pair_in_memory():
    now = [0.0]
    lease, clock = MemoryLease(), lambda: NOW + seconds(now[0])
    return Pair(
        *(MemoryLeadership(lease, name, clock, 15) for name in "ab"),
        lambda: now.__setitem__(0, 20.0),
    )


@pytest.fixture
async def pair_on_azurite(services):
    now = [0.0]
    pool = Connections(Settings.model_validate(services.app_environment()))
    container = pool.container("leases")
    leaders = [BlobLeadership(lambda: container, 15, lambda: now[0]) for _ in "ab"]
    yield Pair(*leaders, lambda: now.__setitem__(0, 20.0))
    await pool.close()


@pytest.fixture(params=["pair_in_memory", "pair_on_azurite"], ids=["memory", "azurite"])
def pair(request):
    return request.getfixturevalue(request.param)


@pytest.mark.proves("FLT-9")
@pytest.mark.parametrize("ahead", [0, 70, -70])
async def test_the_store_says_what_time_it_is_there(services, ahead):
    """With each answer, whatever was asked: so whoever reads and writes knows how far its own clock is off."""
    settings = Settings.model_validate(services.app_environment())
    pool = Connections(settings)
    pool.store_clock = StoreClock(seconds(2), lambda: utc_now() + seconds(ahead))
    parts = connect(settings, pool)
    table = parts.table("agents")
    await table.submit("clocks", [Put("a", {"X": 1})])
    await table.rows("clocks", "a", "b")
    await table.get("clocks", "nothing")
    skew = await pool.store_clock.skew(AsyncMock(side_effect=AssertionError))
    assert (skew.by.total_seconds() if skew else 0) == pytest.approx(ahead, abs=2)
    assert await parts.clock_check() == skew
    await parts.close()


@pytest.mark.proves("FLT-9")
async def test_the_time_of_the_store_can_be_read(services):
    """By whoever has not heard from it."""
    settings = Settings.model_validate(services.app_environment())
    pool = Connections(settings)
    pool.store_clock = StoreClock(seconds(2), lambda: utc_now() + seconds(70))
    parts = connect(settings, pool)
    assert await parts.clock_check() is not None
    await parts.close()


@pytest.mark.proves("SUP-5")
async def test_one_of_two_leads_and_knows_when_its_lease_may_have_lapsed(pair):
    """The second is refused, the first may renew, and after a pause it no longer believes to lead."""
    assert await pair.first.acquire()
    assert pair.first.held()
    assert not await pair.second.acquire()
    assert not pair.second.held()
    assert await pair.first.acquire()
    pair.lapse()
    assert not pair.first.held()


async def test_a_message_reaches_its_queue_with_all_that_it_says(services, on_azurite):
    """Ids, body and addressing arrive; a burst goes out in batches and complete."""
    order_ids = [f"b00-{number:026d}" for number in range(300)]
    bus = on_azurite.engine.adapters.bus
    await asyncio.gather(
        *(bus.send([OrderReady(order_id=order_id).to_bus()]) for order_id in order_ids)
    )
    received = await received_from(services, "scheduler-requests", 300)
    assert {message.correlation_id for message in received} == set(order_ids)
    first = min(received, key=lambda message: message.correlation_id)
    assert first.message_id == f"{order_ids[0]}:ready"
    body = {
        "schemaVersion": 1,
        "orderId": order_ids[0],
        "steps": [],
        "priority": "normal",
        "again": False,
    }
    assert json.loads(str(first)) == body


async def test_the_certificates_are_read_once_for_all_queues(services, monkeypatch):
    """To read them takes a while in which the process stands still; each sender has a connection of its own."""
    read = []
    for loader in ("load_default_certs", "load_verify_locations"):
        original = getattr(ssl.SSLContext, loader)
        monkeypatch.setattr(
            ssl.SSLContext, loader, lambda *a, _to=original, **k: (read.append(1), _to(*a, **k))
        )
    settings = Settings.model_validate(services.app_environment())
    parts = connect(settings, Connections(settings))
    try:
        await parts.bus.probe(["scheduler-requests", "payment-requests", "inventory-requests"])
    finally:
        await parts.close()
    assert len(read) == 1


async def test_a_message_arrives_no_sooner_than_it_says(services, on_azurite):
    """It is in nobody's way until then."""
    due = on_azurite.engine.adapters.clock() + seconds(0.5)
    await on_azurite.engine.adapters.bus.send(
        [replace(OrderReady(order_id=f"b00-{1:026d}").to_bus(), not_before=due)]
    )
    (arrived,) = await received_from(services, "scheduler-requests", 1)
    assert abs(arrived.scheduled_enqueue_time_utc - due) <= seconds(
        0.001
    )  # in whole milliseconds on the wire
    assert arrived.enqueued_time_utc >= arrived.scheduled_enqueue_time_utc


async def received_from(services, queue, count):
    """Take so many messages off a queue, in the order in which they come."""
    received = []
    async with (
        ServiceBusClient.from_connection_string(services.service_bus_connection_string) as client,
        client.get_queue_receiver(queue) as receiver,
    ):
        while len(received) < count:
            batch = await receiver.receive_messages(max_message_count=count, max_wait_time=5)
            assert batch, f"only {len(received)} of {count} arrived"
            for message in batch:
                await receiver.complete_message(message)
            received += batch
    return received


NOT_IN_XML = ["\x00", "\x0b", "\ufffe", "\uffff", "\ud800"]
"""Azure refuses them, and Azurite takes them, and then cannot give them out again, nor what lies beside them."""


@pytest.mark.proves("SUB-4")
@pytest.mark.parametrize("character", NOT_IN_XML, ids=ascii)
async def test_what_a_queue_cannot_give_out_again_is_not_put_into_it(services, made, character):
    """The sender hears of it; the messages after it come out."""
    submissions = made.engine.adapters.queue("order-submissions")
    with pytest.raises(InvalidError, match="not-for-queues"):
        await submissions.put(f"a{character}b")
    await submissions.put("\t\n\r \x7f\x85\ud7ff\ue000\ufffd\U0001ffff")
    assert await submissions.waiting() == 1
    if texts := getattr(submissions, "texts", None):
        assert len(texts) == 1
        return
    async with QueueClient.from_connection_string(
        services.storage_connection_string, "order-submissions"
    ) as queue:
        (message,) = [message async for message in queue.receive_messages()]
        await queue.delete_message(message)


@pytest.mark.proves("SUB-4")
async def test_a_message_waits_until_somebody_takes_it(services, on_azurite):
    """Azure drops one after seven days unless it says otherwise, and with it an order that was accepted."""
    submissions = on_azurite.engine.adapters.queue("order-submissions")
    await submissions.put("x")
    since = await submissions.oldest()
    async with QueueClient.from_connection_string(
        services.storage_connection_string, "order-submissions"
    ) as queue:
        (message,) = [message async for message in queue.receive_messages()]
        await queue.delete_message(message)
    assert since == message.inserted_on
    assert await submissions.oldest() is None
    assert message.expires_on - message.inserted_on > timedelta(days=365)


async def test_a_text_that_is_put_off_is_there_for_nobody_before(services, on_azurite):
    """And is kept meanwhile."""
    submissions, clock = (
        on_azurite.engine.adapters.queue("order-submissions"),
        on_azurite.engine.adapters.clock,
    )
    due = clock() + seconds(2)
    await submissions.put("later", seconds(2))
    assert (await submissions.waiting(), await submissions.oldest()) == (1, None)
    async with QueueClient.from_connection_string(
        services.storage_connection_string, "order-submissions"
    ) as queue:

        async def taken():
            return [message async for message in queue.receive_messages()]

        (message,) = await eventually(taken)
        assert clock() >= due
        assert message.content == "later"
        await queue.delete_message(message)


async def test_events_reach_the_operators_queue_through_event_grid(services, on_azurite):
    """The official client sends CloudEvents; they arrive in base64, one to a message."""
    await on_azurite.engine.adapters.events.publish([alert(7), alert(8)])
    arrived = await take_events(services)
    assert [(event["id"], event["specversion"], event["data"]) for event in arrived] == [
        ("a:7", "1.0", {"n": 7}),
        ("a:8", "1.0", {"n": 8}),
    ]


def test_every_wrong_setting_is_named_at_once(monkeypatch):
    """One message lists all that is missing or wrong."""
    for name, value in {
        "BUCKETS": "0",
        "LEASE_SECONDS": "5",
        "STEP_TIMEOUT_SECONDS": "soon",
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        Settings.read(SHOP.agents)
    assert {(fault.place, fault.code) for fault in caught.value.faults} >= {
        ("BUCKETS", FaultCode.SETTING_INVALID),
        ("LEASE_SECONDS", FaultCode.SETTING_INVALID),
        ("STEP_TIMEOUT_SECONDS", FaultCode.SETTING_INVALID),
        ("StateStorage", FaultCode.CONNECTION_MISSING),
        ("ServiceBus", FaultCode.CONNECTION_MISSING),
        ("PAYMENT_URL", FaultCode.ADDRESS_MISSING),
    }


@pytest.mark.proves("AGT-10")
async def test_an_agent_instance_is_known_by_its_last_report(made):
    """In the place of what it said before; what is too old is not returned."""

    def health(instance, at):
        return AgentHealth(
            agent="payment", instance=instance, at=NOW + seconds(at), running=3, rate=1.5
        )

    before, after, other = health("i1", 0), health("i1", 2), health("i2", 0)
    for published in (before, other):
        await made.engine.agent_health.publish(published)
    await made.engine.agent_health.publish(after, before)
    assert await made.engine.agent_health.since(NOW) == [other, after]
    assert await made.engine.agent_health.since(NOW + FRESH + seconds(1)) == [after]


@pytest.mark.proves("AGT-8", "AGT-10")
async def test_an_open_circuit_is_known_until_its_time_is_over(made):
    """However old the row is, since its instance makes no calls meanwhile; then it may be removed."""
    opened = AgentHealth(agent="payment", instance="o1", at=NOW, open_until=NOW + seconds(60))
    probing = replace(opened, instance="o2", paused_until=NOW + seconds(70))
    for health in (opened, probing):
        await made.engine.agent_health.publish(health)
    assert await made.engine.agent_health.since(NOW + seconds(59)) == [opened, probing]
    assert await made.engine.agent_health.since(NOW + seconds(61)) == [probing]
    await made.engine.agent_health.remove_before(NOW + seconds(61))
    assert await made.engine.agent_health.since(NOW) == [probing]


@pytest.mark.proves("OPR-9")
async def test_a_hold_takes_the_place_of_the_one_before_and_vanishes_by_itself(made):
    """Of its own agent alone; the reports beside it stay."""
    now = NOW + timedelta(days=1)  # after the rows of other tests
    first = AgentHealth(
        agent="payment",
        instance=OPERATOR,
        at=now,
        paused_until=now + seconds(60),
        paused_by="grace",
        paused_because="maintenance",
    )
    other = replace(first, agent="shipping")
    report = AgentHealth(agent="payment", instance="i1", at=now)
    longer = replace(first, at=now + seconds(1), paused_until=now + seconds(90), paused_by="ada")
    await made.engine.agent_health.publish(report)
    for hold in (first, other, longer):
        await made.engine.agent_health.pause(hold)
    assert await made.engine.agent_health.since(now) == [report, other, longer]
    assert await made.engine.agent_health.since(now + seconds(61)) == [longer]
    ended = replace(longer, at=now + seconds(5), paused_until=now + seconds(5))
    await made.engine.agent_health.pause(ended)
    assert await made.engine.agent_health.since(now + seconds(30)) == [other]
    await made.engine.agent_health.remove_before(now + seconds(90))
    assert await made.engine.agent_health.since(NOW) == []


GARBAGE = f"{sortable(NOW)}|garbage|1"


def garbage_alerts():
    """Rows that hold no alert: each has one column that says nonsense, or lacks one."""
    good = EVENT.columns(alert(1))
    for data in ("[]", "5", "null", '"x"', "{", "[" * 20_000, 5):
        yield good | {"Data": data}
    for at in ("yesterday", NOW.isoformat(), 5, True):
        yield good | {"At": at}
    yield from (good | {name: 7} for name in ("EventId", "Type", "Subject"))
    yield from ({name: good[name] for name in good.keys() - {gone}} for gone in good)


@pytest.mark.proves("AGT-10", "FLT-6")
async def test_a_row_that_nobody_can_read_takes_no_other_along(made):
    """Of what agents tell, and of the alerts: one garbage row would stop all claims, or hide all alerts."""
    report = AgentHealth(agent="reads", instance="i1", at=NOW, running=1)
    await made.engine.agent_health.publish(report)
    await made.operations.alert_log.record(event := alert(77))
    await made.engine.agent_health._table.submit("health", [Put(GARBAGE, {"SchemaVersion": 99})])
    rows = {f"0|garbage {number}": row for number, row in enumerate(garbage_alerts())}
    await made.operations.alert_log._table.submit("alerts", [Put(*row) for row in rows.items()])
    assert report in await made.engine.agent_health.since(NOW)
    await made.engine.sweeps._table.submit("sweeps", [Put("last", {"Instance": "v1"})])
    assert await made.engine.sweeps.last() is None
    found = await made.operations.alert_log.newest(1000)
    assert event in [row.event for row in found]
    assert not [rows[row.key] for row in found if row.key in rows]
    assert event.event_id in str(await made.operations.services.alerts.list(AlertsPage()))
    await made.operations.alert_log._table.submit("alerts", [Delete(key) for key in rows])
    await made.engine.agent_health._table.submit("health", [Delete(GARBAGE)])


async def test_the_figures_of_processes_stand_side_by_side_until_they_are_removed(made):
    """The same minute counted by two; a later one stays."""
    took = Durations(count=2, total=1500, longest=1000)
    one, other, later = (
        Figures(at=NOW, processed=3, failed=1, steps={"payment": took}),
        Figures(at=NOW, processed=4),
        Figures(at=NOW + seconds(60), failed=2),
    )
    for figures in (one, other, later):
        await made.engine.figures.add(figures)
    found = await made.engine.figures.between(NOW, NOW + seconds(60))
    assert sorted(found, key=lambda figures: figures.processed) == [one, other]
    await made.engine.figures.remove_before(NOW + seconds(60))
    assert await made.engine.figures.between(NOW, NOW + seconds(120)) == [later]


@pytest.mark.proves("SUP-7")
async def test_since_when_a_sweep_is_awaited_is_what_the_first_one_recorded(made):
    """Also if several say it at once; a sweep changes nothing of it."""
    answers = await asyncio.gather(
        *(made.engine.sweeps.awaited_since(NOW + seconds(late)) for late in (0, 1, 2))
    )
    assert len(set(answers)) == 1
    await made.engine.sweeps.record(Sweep(at=NOW + seconds(5), instance="v1", recovered=0))
    assert await made.engine.sweeps.awaited_since(NOW + seconds(9)) == answers[0]


@pytest.mark.proves("SUP-7")
async def test_since_when_a_sweep_is_missed_is_what_the_first_one_recorded_after_the_last(made):
    for start in (NOW, NOW + seconds(60)):
        last = Sweep(at=start, instance="v1", recovered=0)
        await made.engine.sweeps.record(last)
        assert await made.engine.sweeps.last() == last
        answers = [
            await made.engine.sweeps.missed_since(last, start + seconds(late)) for late in (9, 10)
        ]
        assert answers == [start + seconds(9)] * 2


@pytest.fixture
async def source(made):
    """A queue that is no other test's; what is kept of it is removed at the end."""
    name = f"src-{uuid4().hex[:8]}"
    yield name
    await made.engine.poison_store.remove_before(name, NOW + seconds(3600), 100)


@pytest.mark.proves("SUB-4", "FLT-6")
async def test_a_poison_message_is_kept_once_and_shown_in_the_order_of_arrival(made, source):
    """However often a crash has it kept: with all that is known of it. Another delivery is another message."""
    second, first = (Arrival(at=NOW + seconds(number), number="7") for number in (2, 1))
    assert await made.engine.poison_store.page(source, 10) == []
    for arrival in (second, first, second):
        await made.engine.poison_store.put(
            source, b"{broken", refusal("Invalid JSON"), arrival, "order-1:payment:1:do"
        )
    await made.engine.poison_store.put(
        source, b"{broken", refusal("Invalid JSON"), replace(second, number="8")
    )
    one, *others = await made.engine.poison_store.page(source, 10)
    assert (one.source, one.body, one.reason, one.at) == (
        source,
        b"{broken",
        refusal("Invalid JSON"),
        first.at,
    )
    assert (one.correlation_id, one.shortened) == ("order-1:payment:1:do", False)
    assert {message.correlation_id for message in others} == {"order-1:payment:1:do", None}
    assert len(others) == 2
    assert await made.engine.poison_store.page(source, 1) == [one]
    assert await made.engine.poison_store.page(source, 10, one.message_id) == others
    assert await made.engine.poison_store.get(source, one.message_id) == one


@pytest.mark.proves("SUB-4")
async def test_a_poison_message_is_removed_and_nothing_else(made, source):
    """Also where somebody else has removed it; by itself, or with all that arrived before a time."""
    for number in range(4):
        await made.engine.poison_store.put(
            source, b"x", refusal("r"), Arrival(at=NOW + seconds(number))
        )
    _, second, third, fourth = await made.engine.poison_store.page(source, 10)
    for _ in range(2):
        await made.engine.poison_store.remove(source, second.message_id)
    with pytest.raises(UnknownMessageError):
        await made.engine.poison_store.get(source, second.message_id)
    assert await made.engine.poison_store.remove_before(source, third.at, 100) == 1
    assert await made.engine.poison_store.page(source, 10) == [third, fourth]


UNWIELDY = {
    "empty": b"",
    "what XML cannot carry": b"\x00\x01]]>\r\n" * 5000,
    "as long as a message may be": random.Random(1).randbytes(256 * 1024),
    "long text": "é\U0001f375".encode() * 40_000,
}


@pytest.mark.proves("SUB-4", "FLT-6")
@pytest.mark.parametrize("label", UNWIELDY)
async def test_a_poison_message_is_kept_whole(made, source, label):
    """Whatever its bytes, and whatever the reason."""
    await made.engine.poison_store.put(
        source, UNWIELDY[label], refusal("why\ud800\x00"), Arrival(at=NOW), "c" * 128
    )
    (kept,) = await made.engine.poison_store.page(source, 10)
    assert (kept.body, kept.reason, kept.correlation_id) == (
        UNWIELDY[label],
        refusal("why?\x00"),
        "c" * 128,
    )


@pytest.mark.proves("SUB-4")
async def test_what_no_row_can_hold_is_kept_shortened(made, source):
    """It says so, and blocks nothing; only Service Bus Premium takes such messages."""
    body = random.Random(1).randbytes(10**6)
    await made.engine.poison_store.put(
        source, body, refusal("\U0001f375" * 10_000), Arrival(at=NOW), "c" * 128
    )
    (kept,) = await made.engine.poison_store.page(source, 10)
    assert kept.shortened
    assert body.startswith(kept.body)
    assert len(kept.body) > 256 * 1024


async def test_a_queue_that_does_not_exist_is_away(on_azurite, services):
    """What is there answers; what is not is of no use."""
    await on_azurite.engine.adapters.queue("order-submissions").waiting()
    async with QueueClient.from_connection_string(
        services.storage_connection_string, "missing"
    ) as queue:
        with pytest.raises(UnavailableError):
            await StorageQueue(lambda: queue).waiting()
